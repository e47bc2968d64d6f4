"""`RecordReader`: the records of an extractor as normalised passages."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.passage import Passage, read_record
from llama_index.hipporag.text.normalization import normal_form

__all__ = ["RecordReader"]

_REMEMBERED = 1 << 16  # texts; a build of millions of passages must not keep every name it has met


class RecordReader:
    """Reads records as the parameters of a graph say; texts that come again soon are normalised once."""

    def __init__(self, config: GraphConfig) -> None:
        self._config = config
        self._normalised = lru_cache(_REMEMBERED)(normal_form(config.normalizer))

    def read(self, record: Mapping[str, Any] | None) -> Passage:
        """A record as phrases and facts."""
        config = self._config
        return read_record(record or {}, self._normalised, config.entity_nodes, empty=config.normalizer == "legacy")
