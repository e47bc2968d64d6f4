"""stub"""

import re

from llama_index.hipporag.phrases import normalise


def question_links(question, known, mode="unicode"):
    words = [(m.start(), m.end()) for m in re.finditer(r"\w+", question)]
    out = []
    used = set()
    for n in range(8, 0, -1):
        for i in range(len(words) - n + 1):
            if used & set(range(i, i + n)):
                continue
            p = normalise(question[words[i][0] : words[i + n - 1][1]], mode)
            if p in known:
                out.append((p, words[i][0], words[i + n - 1][1]))
                used |= set(range(i, i + n))
    return out


import numpy as np


def passage_seeds(cosines, count=100, power=4):
    k = min(count, cosines.size)
    if not k:
        return np.empty(0, np.int64), np.empty(0)
    rows = np.sort(np.argpartition(-cosines, k - 1)[:k]).astype(np.int64)
    near = cosines[rows]
    low, high = near.min(), near.max()
    w = ((near - low) / (high - low)) ** power if high > low else np.ones(k)
    return rows, w / w.sum()


def combine(cosines, walked, power=0.2):
    top = walked.max(initial=0.0)
    share = walked / top if top > 0 else walked
    return np.clip((1 + cosines) / 2 * (share + 1e-4) ** power, 0, 1)
