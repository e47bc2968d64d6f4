"""The error classes of these packages.

RagKitError
├── ConfigurationError (ValueError)    a parameter or a component is invalid; nothing was changed
│   └── ToolArgumentError              an argument of an agent's tool is invalid; the message is for the agent
├── StorageError                       the stored data do not match the request
│   ├── FormatVersionError             written by another version of the format
│   ├── MissingSpaceError              a vector space that the index needs is not in the storage context
│   ├── HalfWrittenError               the parts of a persisted index are of different generations
│   ├── ReadOnlyError                  what may only be read was to be written to
│   └── UnsupportedStoreError          a store lacks an operation that the method needs
├── EmbeddingError (ValueError)        vectors of the wrong length, or not finite
│   └── EmbeddingModelMismatchError    not the model that the index was built with
├── ExtractorMismatchError             not the extractor or summarizer that the index was built with
├── ExtractionError                    an LLM step failed for a node after all retries
│   ├── ParseError (ValueError)        the model's output could not be read
│   └── LanguageModelError             every further call would fail too: wrong key, unknown model, no server
├── CacheRequiredError                 a delete must also clear the cache, and no cache was passed
└── ConcurrentWriteError               another writer has written, or is writing, to the index
"""

__all__ = [
    "CacheRequiredError",
    "ConcurrentWriteError",
    "ConfigurationError",
    "EmbeddingError",
    "EmbeddingModelMismatchError",
    "ExtractionError",
    "ExtractorMismatchError",
    "FormatVersionError",
    "HalfWrittenError",
    "LanguageModelError",
    "MissingSpaceError",
    "ParseError",
    "RagKitError",
    "ReadOnlyError",
    "StorageError",
    "ToolArgumentError",
    "UnsupportedStoreError",
]


class RagKitError(Exception):
    """Base of every error that these packages raise deliberately."""


class ConfigurationError(RagKitError, ValueError):
    """A parameter or a component is invalid; nothing was changed."""


class ToolArgumentError(ConfigurationError):
    """An argument of an agent's tool is invalid. The message holds nothing but what the agent sent and may send."""


class StorageError(RagKitError):
    """The stored data do not match the request."""


class FormatVersionError(StorageError):
    """The index was written by another version of the storage format."""


class MissingSpaceError(StorageError):
    """A vector space that the index needs is not in the storage context."""


class HalfWrittenError(StorageError):
    """The parts of a persisted index are of different generations."""


class ReadOnlyError(StorageError):
    """A database or a file that this process may only read was to be written to; nothing was changed."""


class UnsupportedStoreError(StorageError):
    """A store lacks an operation that the method needs."""


class EmbeddingError(RagKitError, ValueError):
    """Vectors of the wrong length, or with values that are not finite."""


class EmbeddingModelMismatchError(EmbeddingError):
    """The embedding model is not the one that the index was built with."""


class ExtractorMismatchError(RagKitError):
    """The extractor or summarizer is not the one that the index was built with."""


class ExtractionError(RagKitError):
    """An LLM step failed for a node after all retries.

    Attributes
    ----------
    step : the name of the prompt, if it has one
    """

    step: str = ""


class ParseError(ExtractionError, ValueError):
    """The output of a model could not be read.

    Attributes
    ----------
    hint : what was wrong, for the model, without what it wrote; "" for the message of the error
    """

    hint: str = ""


class LanguageModelError(ExtractionError):
    """The language model cannot be used: a wrong API key, an unknown model, no server, or the same failure again and
    again.
    """


class CacheRequiredError(RagKitError):
    """A delete must also clear the extraction cache, and no cache was passed."""


class ConcurrentWriteError(RagKitError):
    """Another writer has written, or is writing, to the index.

    It is another process or index object, or a coroutine of the same event loop for which a synchronous write would
    wait.

    Attributes
    ----------
    begun : whether this write had begun; otherwise nothing was changed
    """

    def __init__(self, message: str, *, begun: bool = True) -> None:
        super().__init__(message)
        self.begun = begun
