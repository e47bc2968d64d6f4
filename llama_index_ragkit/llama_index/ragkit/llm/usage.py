"""What calls of language models came to: counted for a build, or for a check of a model, as they are made."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

__all__ = [
    "RulesUsage",
    "StepUsage",
    "Usage",
    "counted",
    "is_counting",
    "note_failure",
    "note_read",
    "note_repeated",
    "note_reply",
    "note_rules",
    "status",
]

_EXAMPLE = 200  # characters of a reply that is shown
_KINDS = 100  # of reasons that are told apart
_PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|\d+|\([^()]*\)")


@dataclass
class StepUsage:
    """The calls for one prompt."""

    replies: int = 0  # that came, those to further attempts too
    read: int = 0  # questions that were answered
    failed: int = 0  # questions that were not, after all attempts
    prompt_tokens: int = 0  # by LlamaIndex's tokenizer
    completion_tokens: int = 0
    seconds: float = 0.0  # that calls took together
    reasons: Counter[str] = field(default_factory=Counter)  # of failures, by their wording without particulars
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)  # a reason in full, and how a reply begins

    def add(self, other: "StepUsage") -> None:
        """Count what another has counted."""
        for name in ("replies", "read", "failed", "prompt_tokens", "completion_tokens", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, count in other.reasons.items():
            if kind in self.reasons or len(self.reasons) < _KINDS:
                self.reasons[kind] += count
                self.examples.setdefault(kind, other.examples[kind])


@dataclass
class RulesUsage:
    """What rules have done in place of a component that asks a model."""

    first: str  # why the model failed at the first piece of work, without secrets
    done: int = 0  # pieces of work
    among: int = 0  # how many


class Usage:
    """Calls by the names of their prompts; may be counted in several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.steps: dict[str, StepUsage] = {}  # the calls for each prompt
        self.rules: dict[str, RulesUsage] = {}  # by what rules did in place of the model, in words
        self.repeated = 0  # how often replies repeated their ends, or a sentence, which was cut
        self.status: Callable[[], str] | None = None  # tells how it stands, for progress bars

    @property
    def by_rules(self) -> int:
        """How much rules have done in place of the model."""
        with self.lock:
            return sum(rules.done for rules in self.rules.values())

    @property
    def total(self) -> StepUsage:
        """All steps together."""
        together = StepUsage()
        with self.lock:
            for step in self.steps.values():
                together.add(step)
        return together


_counting: ContextVar[tuple[Usage, ...]] = ContextVar("llm_usage", default=())  # all that count, the innermost last


@contextmanager
def counted() -> Iterator[Usage]:
    """Count the calls that are made meanwhile, also in the threads and tasks that are started for them.

    Who counts around this block counts them too, and its `status` is that of the block.
    """
    outer, own = _counting.get(), Usage()
    own.status = outer[-1].status if outer else None
    _counting.set((*outer, own))
    try:
        yield own
    finally:
        _counting.set(outer)  # not by its token, which belongs to the context of another thread where steps ran there


def is_counting() -> bool:
    """Whether anybody counts: tokens cost time to count."""
    return bool(_counting.get())


def status() -> str:
    """How what is being counted stands; "" where nobody says it."""
    told = _counting.get()[-1].status if is_counting() else None
    return "" if told is None else told()


def note_rules(what: str, done: int, among: int, first: str) -> None:
    """Count what rules have done in place of a model, by who did what for whom, in words; see :class:`RulesUsage`."""
    for usage in _counting.get():
        with usage.lock:
            rules = usage.rules.setdefault(what, RulesUsage(first))
            rules.done += done
            rules.among += among


def note_repeated(count: int) -> None:
    """Count what was cut of a reply that repeats itself."""
    for usage in _counting.get():
        with usage.lock:
            usage.repeated += count


def note_reply(step: str, prompt_tokens: int, completion_tokens: int, seconds: float) -> None:
    """Count a reply, whether it can be used or not."""
    _note(step, StepUsage(1, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, seconds=seconds))


def note_read(step: str) -> None:
    """Count a question that was answered."""
    _note(step, StepUsage(read=1))


def note_failure(step: str, reason: str, reply: str) -> None:
    """Count a question that was not answered: why, and the last reply or "", both without secrets."""
    kind = _PARTICULARS.sub("…", reason)
    reply = " ".join(reply.split())
    shown = reply if len(reply) <= _EXAMPLE else reply[:_EXAMPLE] + "…"
    _note(step, StepUsage(failed=1, reasons=Counter([kind]), examples={kind: (reason, shown)}))


def _note(step: str, more: StepUsage) -> None:
    for usage in _counting.get():
        with usage.lock:
            usage.steps.setdefault(step, StepUsage()).add(more)
