"""`RecordReader`: the records of an extractor as normalised passages."""

from collections.abc import Mapping
from typing import Any

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.passage import Passage, read_record
from llama_index.hipporag.text.normalization import Normalizer, normalise

__all__ = ["RecordReader"]


class RecordReader:
    """Reads records as the parameters of a graph say; texts that come again are normalised once."""

    def __init__(self, config: GraphConfig) -> None:
        self._config = config
        self._normalised = _Normalised(config.normalizer)

    def read(self, record: Mapping[str, Any] | None) -> Passage:
        """A record as phrases and facts."""
        known = self._normalised.__getitem__
        return read_record(record or {}, known, self._config.entity_nodes, empty=self._config.normalizer == "legacy")


class _Normalised(dict[str, str]):
    """A cache of normalised texts, which may be empty."""

    def __init__(self, normalizer: Normalizer) -> None:
        super().__init__()
        self._normalizer = normalizer

    def __missing__(self, text: str) -> str:
        phrase = self[text] = normalise(text, self._normalizer)
        return phrase
