"""stub"""
import re
from llama_index.hipporag.phrases import normalise
def question_links(question, known, mode="unicode"):
    words=[(m.start(),m.end()) for m in re.finditer(r"\w+",question)]
    out=[];used=set()
    for n in range(8,0,-1):
        for i in range(len(words)-n+1):
            if used & set(range(i,i+n)): continue
            p=normalise(question[words[i][0]:words[i+n-1][1]],mode)
            if p in known: out.append((p,words[i][0],words[i+n-1][1])); used|=set(range(i,i+n))
    return out
