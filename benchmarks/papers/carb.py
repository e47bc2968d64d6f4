"""CaRB (Bhardwaj et al. 2019): how well extracted triples agree with gold ones, by the words that they share.

Subjects are compared with subjects, relations with relations, and objects with objects; without a word in common of the
relations, two triples have nothing in common. Precision is that of the best pairing of the extracted triples with gold
ones, each at most once; recall that of the nearest extracted triple to each gold one. The extractors of these packages
give no confidence, so that the curve of precision over recall has one point, and its area is that up to precision 1.
Words are compared in lower case.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Agreement", "Triple", "agreement"]

Triple = Sequence[str]  # subject, relation, object
_BE = {"am", "are", "be", "been", "being", "is", "was", "were"}
_SAY = {"say", "says", "said", "saying", "tell", "tells", "told", "telling", "add", "adds", "added", "adding"}


@dataclass(frozen=True)
class Agreement:
    """Precision and recall in [0, 1] over all triples of all passages."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def auc(self) -> float:
        """The area under the line from precision 1 at recall 0."""
        return self.recall * (1 + self.precision) / 2


def agreement(passages: Iterable[tuple[Sequence[Triple], Sequence[Triple]]]) -> Agreement:
    """The agreement of (gold, extracted) triples of passages."""
    precise = recalled = extracted_count = gold_count = 0.0
    for gold, extracted in passages:
        scores = [[_match(one, other) for other in extracted] for one in gold]
        pairs = [(scores[i][j][0], i, j) for i in range(len(gold)) for j in range(len(extracted))]
        rows, columns = set(), set()
        for score, i, j in sorted(pairs, key=lambda pair: -pair[0]):
            if i not in rows and j not in columns:
                rows.add(i)
                columns.add(j)
                precise += score
        recalled += sum(max((recall for _, recall in row), default=0.0) for row in scores)
        extracted_count += len(extracted)
        gold_count += len(gold)
    return Agreement(
        precise / extracted_count if extracted_count else 0.0, recalled / gold_count if gold_count else 0.0
    )


def _match(gold: Triple, extracted: Triple) -> tuple[float, float]:
    """Precision and recall of the words of a triple; with the roles changed too where the gold says who says what."""
    subject, relation, target = extracted
    said = bool(_SAY & set(gold[1].casefold().split()))
    return max(_in_order(gold, extracted), _in_order(gold, (target, relation, subject)) if said else (0.0, 0.0))


def _in_order(gold: Triple, extracted: Triple) -> tuple[float, float]:
    wanted, given = ([Counter(part.casefold().split()) for part in triple] for triple in (gold, extracted))
    shared = [(one & other).total() for one, other in zip(wanted, given, strict=True)]
    if (given[1] - wanted[1])["be"] and _BE & wanted[1].keys():
        shared[1] += 1
    if not shared[1]:
        return 0.0, 0.0
    return sum(shared) / sum(part.total() for part in given), sum(shared) / sum(part.total() for part in wanted)
