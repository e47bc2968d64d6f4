"""`Passage`: the normalised phrases and facts of a passage, from the record of an extractor.

Triples without exactly three elements occur in practice (185 of the 17,419 that one model wrote for 1,890 passages);
they are skipped.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.text.normalization import normal_form

__all__ = ["Fact", "Passage", "read_record", "record_reader"]

Fact = tuple[str, str, str]

_REMEMBERED = 1 << 16  # texts; a build of millions of passages must not keep every name it has met


class Passage(NamedTuple):
    """Phrases and facts of one passage.

    Attributes
    ----------
    named : phrase -> how often it is listed as an entity
    statements : fact (head, relation, tail) -> how often it is stated
    subjects : the subject of the passage: its title
    """

    named: Mapping[str, int]
    statements: Mapping[Fact, int]
    subjects: Sequence[str] = ()

    def phrases(self) -> list[str]:
        """All phrases, each once, in order of first mention."""
        ends = (end for head, _, tail in self.statements for end in (head, tail))
        return list(dict.fromkeys([*self.subjects, *self.named, *ends]))


def read_record(
    record: Mapping[str, Any], normalised: Callable[[str], str], entity_nodes: bool = True, empty: bool = False
) -> Passage:
    """Read `{"entities": [...], "triples": [[head, relation, tail], ...], "subject": [...]}`.

    Elements of other types are converted to text (models write years as numbers). A triple is valid if it has three
    elements and, after normalisation, a head and a tail.

    Parameters
    ----------
    normalised : text -> phrase
    entity_nodes : whether entities and subjects become phrases; otherwise only heads and tails of triples
        do, as in the published code
    empty : whether a head or tail may be empty after normalisation, as in the published code
    """
    named = Counter(_phrases(record.get("entities"), normalised) if entity_nodes else ())
    subjects = dict.fromkeys(_phrases(record.get("subject"), normalised) if entity_nodes else ())
    statements: Counter[Fact] = Counter()
    triples = record.get("triples")
    for triple in triples if isinstance(triples, list) else ():
        if isinstance(triple, (list, tuple)) and len(triple) == 3:
            head, relation, tail = (normalised(str(part)) for part in triple)
            if empty or (head and tail):
                statements[head, relation, tail] += 1
    return Passage(named, statements, list(subjects))


def _phrases(values: Any, normalised: Callable[[str], str]) -> list[str]:
    texts = [str(value) for value in values if isinstance(value, (str, int, float))] if isinstance(values, list) else []
    return [phrase for text in texts if (phrase := normalised(text))]


def record_reader(config: GraphConfig) -> Callable[[Mapping[str, Any] | None], Passage]:
    """Reads records by the parameters of a graph; texts that soon occur again are normalised once."""
    normalised, empty = lru_cache(_REMEMBERED)(normal_form(config.normalizer)), config.normalizer == "legacy"
    return lambda record: read_record(record or {}, normalised, config.entity_nodes, empty)
