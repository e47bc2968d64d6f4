"""The subject, phrases and triples of a passage that a spaCy pipeline has parsed."""

from typing import Any

from llama_index.hipporag.text.normalization import normalise
from llama_index.hipporag.text.noun_phrases import NounPhrases, distinct, sentence_triples, subject_names
from llama_index.hipporag.text.parsed_phrases import chunk_phrases, named_phrases, parsed_phrases
from llama_index.hipporag.text.parsed_triples import SUBJECTS, verb_triples

__all__ = ["read_parsed"]

_RELATIVE_CLAUSES = ("relcl", "acl:relcl", "rc")


def read_parsed(doc: Any, title: str = "") -> NounPhrases:
    """The phrases and triples of a parsed passage.

    Triples consist of subject, verb and object, and their ends are phrases. A pronoun of the third person as subject
    stands for the title, a relative pronoun for the word that its clause modifies. A phrase in no such triple gets one
    with the words between it and the phrase before it: see
    :func:`~llama_index.hipporag.text.noun_phrases.read_passage`.

    Parameters
    ----------
    doc : a `spacy.tokens.Doc` of the text below the title
    """
    subject = subject_names(title)
    spans = [*named_phrases(doc), *chunk_phrases(doc)]
    longest: dict[int, Any] = {}
    for span in spans:
        for token in span:
            if token.i not in longest or len(span) > len(longest[token.i]):
                longest[token.i] = span

    def name_of(token: Any) -> str:
        if token.pos_ == "PRON":
            if not token.morph.get("Person"):  # "which", "who": the word that the clause modifies
                return name_of(token.head.head) if token.head.dep_ in _RELATIVE_CLAUSES else ""
            stands_for_title = bool(subject) and token.morph.get("Person") == ["3"] and token.dep_ in SUBJECTS
            return subject[0] if stands_for_title else ""
        return longest[token.i].text if token.i in longest else ""

    mentions = parsed_phrases(doc)
    triples = verb_triples(doc, name_of)
    known = {normalise(end) for head, _, tail in triples for end in (head, tail)}
    rest = [t for t in sentence_triples(doc.text, subject, mentions) if normalise(t[2]) not in known]
    return NounPhrases(distinct([*subject, *(mention.text for mention in mentions)]), [*triples, *rest], subject)
