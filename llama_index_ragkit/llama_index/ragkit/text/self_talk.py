"""Checks a model's prose about texts against these texts, and removes what the model says about itself.

Small models refuse ("I would rather not ..."), apologise, and talk about their task. Such replies are fluent and
in the right language, but not summaries.
"""

import re
from itertools import pairwise

from llama_index.ragkit.errors import ParseError
from llama_index.ragkit.text.held import TextWords
from llama_index.ragkit.text.sentences import sentence_spans

__all__ = ["LEAST_IN_TEXT", "held_prose"]

LEAST_IN_TEXT = 0.2  # of the words of a summary or report; `python -m benchmarks.held_summaries` measures it

# Beginnings of sentences in which a model speaks of itself or to its user, in the languages that models chat in.
_SELF_TALK = re.compile(
    r"\W*(?:(?:unfortunately|however|but|sure|yes|no|oh|well|hm+)[,!.]*\s+)?(?:"
    r"as an? (?:ai|artificial intelligence|(?:large )?language model|assistant)|"
    r"(?:i['’]m|i am) (?:very |so |really )?(?:sorry|afraid|unable|not able|not sure|just an?|an ai|here to)|"
    r"i (?:apologi[sz]e|cannot|can['’]t|can not|can (?:help|do)|won['’]t|will not|could not|couldn['’]t|"
    r"would rather not|do not|don['’]t|have no|need more|would need)|"
    r"i(?:['’]d| would) (?:be (?:happy|glad)|love|need)|(?:i['’]m|i am) happy|"
    r"(?:sorry|my apologies)[,.!]|please (?:provide|share|give|send|let me|note|tell)|"
    r"(?:the )?(?:passages?|texts?|documents?) (?:is|are|was|were) (?:not (?:provided|given)|missing|empty)|"
    r"you (?:have not|haven['’]t|did not|didn['’]t) (?:provide|give)|there is nothing to summari[sz]e|"
    r"als (?:ki|künstliche intelligenz|sprachmodell)|es tut mir leid|tut mir leid|leider kann ich|"
    r"en tant qu['’](?:ia|intelligence artificielle)|(?:je suis )?désolée?|je ne peux pas|"
    r"como (?:una? )?(?:ia|inteligencia artificial|modelo de lenguaje)|lo siento|no puedo|"
    r"mi dispiace|non posso|sinto muito|desculpe|não posso|к сожалению,? я|извините|как (?:ии|языковая модель)|"
    r"(?:很)?抱歉|对不起|作为(?:一个|一名)?(?:人工智能|ai|语言模型)|我无法|我不能|申し訳|すみません|죄송)",
    re.IGNORECASE,
)


def held_prose(text: str, words: TextWords, task: TextWords, least: float) -> str:
    """A model's text without sentences about itself and its task, if the texts hold enough of the rest.

    A sentence in which the model speaks of itself is removed, unless the texts contain its beginning. So is a sentence
    whose words are all in the task or its worked example, if the texts lack some of them.

    Parameters
    ----------
    words : of the texts that the reply is about
    task : the words of the prompt without the texts; they do not show what the reply is about
    least : least share of the reply's words that the texts must hold, in [0, 1]; 0 for no check at all

    Raises
    ------
    ParseError
        If no sentence is left, or the texts hold too few of its words.

    >>> about, task = TextWords("A lamp that burns oil."), TextWords("Summarise the passages.")
    >>> held_prose("Here are the passages. I'm sorry, I cannot say. The lamp burned oil.", about, task, 0.2)
    'The lamp burned oil.'
    """
    if not least:
        return text
    starts = [start for start, _ in sentence_spans(text)]
    sentences = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    kept = [sentence for sentence in sentences if not _is_talk(sentence, words, task)]
    said = text if len(kept) == len(sentences) else "".join(kept).strip()
    if words.share(" ".join(task.lacking(said))) < least and not (said and words.has_all(said)):
        error = ParseError(f"The reply is not about the texts: {text[:80]!r}")
        error.hint = "The answer is not about the texts."
        raise error
    return said


def _is_talk(sentence: str, words: TextWords, task: TextWords) -> bool:
    found = _SELF_TALK.match(sentence)
    if found is not None and not words.has_phrase(found[0]):
        return True
    return not task.lacking(sentence) and bool(words.lacking(sentence))
