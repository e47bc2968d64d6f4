"""`OutlineExtractor` and `GivenMindMaps`: mind maps without a language model."""

from collections.abc import Mapping
from typing import Any, ClassVar

from llama_index.core.schema import BaseNode
from pydantic import Field

from llama_index.pgrag.maps.mind_map import read_mind_map, root_of
from llama_index.pgrag.maps.outline import outline
from llama_index.pgrag.records import to_record
from llama_index.ragkit import ExtractionContext, NodeExtractor, Steps, offload
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.llm.json.output import parse_pairs
from llama_index.ragkit.storage.records import Record

__all__ = ["GivenMindMaps", "OutlineExtractor"]


class OutlineExtractor(NodeExtractor):
    """Extracts a mind map without a model, from headings, key phrases and sentences; the sentences are its facts.

    Deterministic; see :func:`llama_index.pgrag.maps.outline.outline`. Lines that repeat over the chunks of a
    document that are written together (headers, footers, legal lines) are ignored.

    Parameters
    ----------
    title_key : the metadata key of the topic of a node. For a node without this key, a heading at the beginning of its
        text is the topic (:mod:`llama_index.ragkit.text.headings`), else its key phrases. None for only key phrases
    language : ISO 639-1 code for the sentence rules; None to choose them by the script of each text
    """

    method: ClassVar[str] = "pgrag"
    needs_llm: ClassVar[bool] = False

    title_key: str | None = "title"
    language: str | None = None

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Read one node without a call."""
        passage = yield from context.passage(node, self.title_key)
        topic, paths = yield from offload(outline, passage, self.language)
        return to_record(topic, paths)


class GivenMindMaps(NodeExtractor):
    """Uses existing mind maps, whatever their source.

    A node without a map counts as failed: `index.retry_failed()` processes it again.

    Parameters
    ----------
    maps : id of a node -> its mind map: nested dictionaries and lists, `Pairs` of `llama_index.ragkit.llm.json.output`,
        or JSON text (parsed tolerantly, duplicate keys kept). A single root is the topic; a map with several roots
        takes its topic from `topics`
    topics : id of a node -> topic, for maps without a single root
    join_lists : whether a list of texts is one fact

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    method: ClassVar[str] = "pgrag"
    needs_llm: ClassVar[bool] = False

    maps: Mapping[str, Any] = Field(exclude=True)
    topics: Mapping[str, str] = Field(default_factory=dict, exclude=True)
    join_lists: bool = False

    @property
    def fingerprint(self) -> dict[str, str]:
        """The class and `join_lists`, but not the maps, since more may be added later."""
        return {"class": type(self).__name__, "join_lists": str(self.join_lists)}

    def extract_node(self, node: BaseNode, context: ExtractionContext) -> Steps[Record]:
        """Read one node without a call."""
        if node.node_id not in self.maps:
            raise ExtractionError(f"GivenMindMaps has no mind map for the node {node.node_id!r}.")
        value = self.maps[node.node_id]
        if isinstance(value, str):
            value = yield from offload(parse_pairs, value)
        topic = self.topics.get(node.node_id) or root_of(value)
        if not topic:
            raise ExtractionError(
                f"The mind map of the node {node.node_id!r} has no single root: pass its topic in topics=."
            )
        return to_record(topic, read_mind_map(value, topic, join_lists=self.join_lists))
