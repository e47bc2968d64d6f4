"""Every method answers from stores as it does in memory: with its defaults, and with each value of each option.

The ten best are the same nodes with the same scores in both. `REFUSED` has the values that stores refuse; refusals must
only go.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from tests.cases import CASES, Case
from tests.fidelity.test_hipporag import Words
from tests.serving.twins import Twins, random_writes
from tests.together.plugins import postprocessor
from tests.together.temperaments import STEPS

from llama_index.graphrag import PublishedOptions
from llama_index.hipporag import PublishedWalk
from llama_index.pgrag import Control
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import ScriptedLLM
from llama_index.sprag import PublishedSegments, SegmentConfig
from llama_index.sprag.config import PUBLISHED

REFUSED: dict[str, dict[str, set[str]]] = {
    "hipporag": {
        "paper": {"v2"},
        "passage_seeds": {"'each'"},
    },
    "sprag": {
        "context_weight": {"0.0", "0.25"},
    },
}

METHODS = [case for case in CASES if case.name != "toy"]
ARTICLES = Path(__file__).parents[2] / "examples" / "archive" / "articles"
OTHER_SCRIPTS = (
    "灯塔看守人每天晚上点燃油灯。风暴来临时他敲响铜钟，让渔船回到港口。",
    "港口的气压计由一位钟表匠制造，他的女儿记录了四十年的天气。",
    "Смотритель маяка зажигал лампу каждый вечер, а в бурю звонил в медный колокол.",
    "Барометр гавани сделал часовщик, и его дочь сорок лет записывала погоду.",
)
QUESTIONS = (
    "Who was Þórdís Åkerløv?",
    "What did Gideon Rusk sell to Ambrose Tarn?",
    "the wreck of the Constance Amory",
    "How was paper made at Aldermoss, and who started the mill?",
    "Where did the children of Pellow Cove go to school? Who taught them?",
    "cistern barometer vernier",
    "harmonium",
    "gingerbread",
    "xylophone quasar",
    "灯塔看守人敲响铜钟",
    "Кто сделал барометр гавани?",
    "What happened in the summer of 1843 near Marl Head?",
)
TEN = 10
FILTERS = {
    "equal": MetadataFilters(filters=[MetadataFilter(key="shelf", value="a")]),
    "below": MetadataFilters(filters=[MetadataFilter(key="place", value=2, operator=FilterOperator.LT)]),
    "either": MetadataFilters(
        filters=[MetadataFilter(key="shelf", value="c"), MetadataFilter(key="place", value=1)],
        condition=FilterCondition.OR,
    ),
}
TURNS = {
    "defaults": 1,
    "copies": 1,
    "no question": 1,
    "node_ids": 1,
    "doc_ids": 1,
    "filters": 3,
    "paper": 2,
    "key_points": 1,
}
DEALT = 12  # with a value of another option one question is asked, with the next value the next one

_OF_NUMBERS = {int: (0, 1, 40), float: (-1.0, 0.0, 0.25, 1.0), bool: (False, True), NoneType: (None,)}


def entities(question: str) -> list[str]:
    """Recognised by a function of the user's."""
    return [word for word in question.split() if word.istitle()]


# What has no list or range of values, or has more than these.
_VALUES: dict[str, tuple[Any, ...]] = {
    "calibration": ("rank", "constant", "beta", "sigmoid", "min-max", "none"),
    "control": ("signed", "paper", "code", Control(0.1, 0.2)),
    "phrase_encoder": (Words(),),
    "published": (
        PublishedOptions(chunk_order="entities", fill=False),
        PublishedOptions(report_share=0.0, statement_share=1.0, relations_per_entity=1),
        PublishedWalk(passage_nodes=False, counted="mentions", max_steps=1, node_specificity=False),
        PublishedWalk(passage_nodes=False, counted="facts", edges="published", length_normalization=0.5),
        PublishedWalk(ensemble="average"),
        PublishedWalk(ensemble="uncertainty"),
        PublishedWalk(ensemble="none"),
        PublishedSegments(top_k_for_document_selection=1, length_adjustment="none", nearest_first=False),
        PublishedSegments(length_adjustment="unbounded", reference_length=40.0),
    ),
    "question_entities": ("rules", "llm", entities),
    "token_budget": (60, 400),
}
# What an option is of no account without.
_GLOBAL, _DRIFT, _MIXED = {"mode": "global"}, {"mode": "drift"}, {"context": "mixed"}
_BY_ENTITIES, _BY_FACTS, _TRAVERSAL = {"linking": "entities"}, {"linking": "facts"}, {"mode": "tree_traversal"}
_BESIDE: dict[str, dict[str, dict[str, Any]]] = {
    "gemrag": {"edge_weight": {"mode": "best_first"}},
    "graphrag": {
        "published": _MIXED,
        **dict.fromkeys(("level", "rating_threshold", "max_reports"), _GLOBAL),
        **dict.fromkeys(("max_calls", "rounds", "follow_ups"), _DRIFT),
        "link_threshold": {"entities_top_k": 3},
    },
    "hipporag": {
        **dict.fromkeys(("question_entities", "phrase_encoder", "link_threshold"), _BY_ENTITIES),
        **dict.fromkeys(("facts_top_k", "filter_facts"), _BY_FACTS),
        "published": {"passage_seeds": "none"},
    },
    "mrag": {"num_queries": {"aspects": "llm"}},
    "pgrag": {"max_key_points": {"key_points": "llm"}},
    "raptor": dict.fromkeys(("beam_width", "min_cosine", "start_layer", "num_layers"), _TRAVERSAL),
    "sprag": {"max_queries": {"auto_query": True}},
}


_NO_OPTIONS = {"callback_manager", "config", "filters", "num_workers"}  # that could change an answer

Ask = Callable[[Any, str], Sequence[NodeWithScore]]  # an index and a question
Given = tuple[str, dict[str, Any]]  # a value, and the keywords that give it
Value = tuple[str, Ask]


class Answers(NamedTuple):
    """What was asked of both.

    Attributes
    ----------
    same : for each question whether the ten best were equal
    refused : values that memory takes and stores do not
    """

    same: list[bool]
    refused: set[str]


class MethodTwins(Twins):
    """An index of a method in stores and in memory, both after the same writes."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.case = case
        self.cls = case.cls
        self.asked = 0  # values so far, of all options
        options = {"entity_vectors": True} if case.name == "graphrag" else {}
        nodes = corpus()
        super().__init__(folder, nodes[::2], **options)
        changed = {
            step: nodes[4 * step].model_copy(update={"text": f"{nodes[4 * step].text} {step}"}) for step in range(12)
        }
        self.held = random_writes(self, nodes[::2], nodes[1::2], changed.__getitem__, 12)
        left = [node for node in nodes[1::2] if node.node_id not in self.held]
        for index in self:
            index.insert_nodes(left)
        self.held += [node.node_id for node in left]

    def components(self) -> dict[str, Any]:
        return self.case.options(llm=ScriptedLLM(reply), **self.options)

    def check(self) -> None:
        """Both know the same documents."""
        assert self.stored.ref_doc_info == self.memory.ref_doc_info

    def compared(self, option: str, values: Sequence[Value]) -> Answers:
        """The answers with each value of an option."""
        same, refused = list[bool](), set[str]()
        turns = TURNS.get(option, DEALT)
        for label, ask in values:
            questions = QUESTIONS[self.asked % turns :: turns]
            self.asked += 1
            theirs = [ask(self.memory, question)[:TEN] for question in questions]
            try:
                ours = [ask(self.stored, question)[:TEN] for question in questions]
            except ConfigurationError:
                refused.add(label)
                continue
            same += map(equal, ours, theirs)
        return Answers(same, refused)

    def retrieving(self) -> Iterator[tuple[str, list[Value]]]:
        """Each option of the retriever with its values."""
        cls = self.cls.retriever_cls
        kinds = {"similarity_top_k": int, "token_budget": int | None, **get_type_hints(cls.options_cls)}
        kinds = {name: kind for name, kind in kinds.items() if name not in _NO_OPTIONS}
        beside = _BESIDE.get(self.case.name, {})
        for option in ("defaults", "paper", *self.narrowed(), *kinds):
            if option == "paper":
                values = [(", ".join(version), cls.paper(*version)) for version in versions(cls.paper)]
            elif option in kinds:
                values = values_of(option, kinds[option])
                if option not in beside:
                    values = [value for value in values if value[1][option] != cls.defaults()[option]]
            else:
                values = self.narrowed().get(option, [("", {})])
            values = [(label, {**beside.get(option, {}), **given}) for label, given in values]
            taken = [value for value in values if takes(self.memory.as_retriever, value[1])]
            yield option, [(label, partial(retrieved, given=given)) for label, given in taken]

    def reranking(self) -> Iterator[tuple[str, list[Value]]]:
        """Each option of the postprocessor with its values, and what it may be given beside."""
        make = partial(postprocessor, self.case)
        fields = type(make(self.memory)).model_fields
        kinds = {name: field.annotation for name, field in fields.items() if name not in _NO_OPTIONS}
        defaults = {name: field.default for name, field in fields.items()}
        if "config" in fields:
            kinds, defaults = kinds | get_type_hints(SegmentConfig), defaults | vars(SegmentConfig())
        known = self.memory.docstore.get_nodes(sorted(self.held))
        for option in ("defaults", "copies", "no question", "filters", *kinds):
            values = self.narrowed()["filters"] if option == "filters" else [("", {})]
            if option == "copies" and "min_coverage" in kinds:
                values = [("", {"min_coverage": 0.1})]  # so small that some summary replaces chunks
            if option in kinds:
                values = [v for v in values_of(option, kinds[option]) if v[1][option] != defaults[option]]
            taken = [value for value in values if takes(partial(make, self.memory), value[1])]
            nodes = [copied(node) for node in known] if option == "copies" else known
            work = partial(reranked, make, nodes, with_question=option != "no question")
            yield option, [(label, partial(work, given=given)) for label, given in taken]

    def narrowed(self) -> dict[str, list[Given]]:
        """What restricts an answer to a part of the nodes."""
        documents = sorted(self.memory.ref_doc_info)
        return {
            "filters": [(label, {"filters": given}) for label, given in FILTERS.items()],
            "node_ids": [("", {"node_ids": self.held[::3]})],
            "doc_ids": [("", {"doc_ids": documents[::3]})],
        }


def corpus() -> list[TextNode]:
    """Paragraphs of articles, and a few of other scripts."""
    texts = [(path.stem, path.read_text(encoding="utf-8").split("\n\n")) for path in sorted(ARTICLES.iterdir())[:22]]
    made = []
    for number, (document, paragraphs) in enumerate([*texts, ("other-scripts", OTHER_SCRIPTS)]):
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
        for place, text in enumerate(paragraphs):
            metadata = {"shelf": "abc"[number % 3], "place": place}
            made.append(TextNode(id_=f"{document}-{place}", text=text, relationships=source, metadata=metadata))
            made[-1].excluded_embed_metadata_keys = made[-1].excluded_llm_metadata_keys = list(metadata)
    return made


def reply(prompt: str) -> str:
    """What a language model answers well."""
    return next(step.right for step in STEPS if step.marker in prompt)


def values_of(option: str, kind: Any) -> list[Given]:
    """The values of an option by its type; of numbers some, and not all may be in its range."""
    if option in _VALUES:
        values = _VALUES[option]
    elif get_origin(kind) is Literal:
        values = get_args(kind)
    elif kind in _OF_NUMBERS:
        values = _OF_NUMBERS[kind]
    else:
        return [value for part in get_args(kind) for value in values_of(option, part)]
    return [(getattr(value, "__name__", repr(value)), {option: value}) for value in values]


def takes(make: Callable[..., Any], given: dict[str, Any]) -> bool:
    """Whether keywords are in their ranges."""
    try:
        make(**given)
    except ConfigurationError:
        return False
    return True


def versions(paper: Callable[..., Any]) -> list[tuple[str, ...]]:
    """The arguments of a method `paper`: each of the versions that it has."""
    kinds = [kind for name, kind in get_type_hints(paper).items() if name != "return"]
    if not kinds:
        return [()]
    return [(version,) for version in get_args(kinds[0]) or PUBLISHED]


def retrieved(index: Any, question: str, given: dict[str, Any]) -> Sequence[NodeWithScore]:
    found: Sequence[NodeWithScore] = index.as_retriever(**given).retrieve(question)
    return found


def reranked(
    make: Callable[..., Any],
    nodes: Sequence[Any],
    index: Any,
    question: str,
    given: dict[str, Any],
    with_question: bool,
) -> Sequence[NodeWithScore]:
    """What becomes of the nodes that share most words with a question, and of two that no index has."""
    words = set(question.lower().split())
    best = sorted(nodes, key=lambda node: -len(words & set(node.get_content().lower().split())))[:12]
    for place in (1, 6):
        best.insert(place, TextNode(id_=f"foreign {place}", text=f"Nobody has indexed this of {question} {place}"))
    ranked = [NodeWithScore(node=node, score=1 / (1 + place)) for place, node in enumerate(best)]
    found: Sequence[NodeWithScore] = make(index, **given).postprocess_nodes(
        ranked, query_str=question if with_question else None
    )
    return found


def copied(node: Any) -> TextNode:
    """The same text and metadata under another id."""
    return TextNode(**{**node.model_dump(include={"text", "metadata"}), "id_": f"copy of {node.node_id}"})


def equal(ours: Sequence[NodeWithScore], theirs: Sequence[NodeWithScore]) -> bool:
    """The same nodes, with scores that differ by 1e-6 at most."""
    same = [each.node.node_id for each in ours] == [each.node.node_id for each in theirs]
    return same and np.allclose([e.get_score() for e in ours], [e.get_score() for e in theirs], rtol=0, atol=1e-6)


def worse(method: str, prefix: str, found: dict[str, Answers]) -> dict[str, Any]:
    """Options whose answers differ, with the share that is equal, and values that `REFUSED` does not have."""
    fallen: dict[str, Any] = {}
    for option, answers in found.items():
        name = f"{prefix}{option}"
        share = float(np.mean(answers.same or [1.0]))
        if share < 1:
            fallen[name] = round(share, 3)
        if new := answers.refused - REFUSED.get(method, {}).get(name, set()):
            fallen[f"{name}, refused"] = new
    return fallen


@pytest.fixture(scope="module", params=METHODS, ids=lambda case: case.name)
def twins(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MethodTwins:
    return MethodTwins(tmp_path_factory.mktemp(request.param.name), request.param)


@pytest.mark.slow
def test_a_retriever_answers_from_stores_as_in_memory(twins: MethodTwins):
    found = {option: twins.compared(option, values) for option, values in twins.retrieving()}
    assert worse(twins.case.name, "", found) == {}


def test_a_postprocessor_ranks_by_stores_as_by_memory(twins: MethodTwins):
    found = {option: twins.compared(option, values) for option, values in twins.reranking()}
    assert worse(twins.case.name, "postprocessor: ", found) == {}
