"""`LLMCheck`: what a language model could do, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.ragkit.llm.usage import StepUsage

__all__ = ["LLMCheck", "StepCheck"]

_MOST = 0.9  # share of what was asked for that is read of a model that can do a step


@dataclass(frozen=True)
class StepCheck:
    """A step that was tried.

    Attributes
    ----------
    method, step : the method, and the name of its prompt
    usage : what was asked, read, and failed, with reasons
    """

    method: str
    step: str
    usage: StepUsage

    @property
    def asked(self) -> int:
        """How often it was tried."""
        return self.usage.read + self.usage.failed

    @property
    def verdict(self) -> str:
        """Whether the model can do it: "yes", "partly" or "no"."""
        share = self.usage.read / max(1, self.asked)
        return "yes" if share >= _MOST else "partly" if share else "no"

    @property
    def reason(self) -> str:
        """The commonest reason of its failures; "" without any."""
        if not self.usage.reasons:
            return ""
        kind, _ = self.usage.reasons.most_common(1)[0]
        return self.usage.examples[kind][0]

    @property
    def example(self) -> str:
        """How the reply of such a failure begins; "" without one."""
        if not self.usage.reasons:
            return ""
        kind, _ = self.usage.reasons.most_common(1)[0]
        return self.usage.examples[kind][1]


@dataclass(frozen=True)
class LLMCheck:
    """The steps that were tried, in the order of the methods.

    Attributes
    ----------
    model : its name
    chunks : how many were read
    steps : those that were tried
    not_tried : methods that could not be built, and why, by their names
    """

    model: str
    chunks: int
    steps: Sequence[StepCheck]
    not_tried: dict[str, str]

    def __str__(self) -> str:
        rows = [("method", "step", "can", "read", "failed", "tokens", "seconds")]
        for step in self.steps:
            use = step.usage
            tokens = f"{use.prompt_tokens:,} + {use.completion_tokens:,}"
            rows.append(
                (step.method, step.step, step.verdict, str(use.read), str(use.failed), tokens, f"{use.seconds:.1f}")
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        for step in self.steps:
            if step.reason:
                lines += ["", f"{step.method}, {step.step}: {step.reason}"]
                lines += [f"  replied: {step.example}"] if step.example else []
        lines += [f"{name} was not tried: {reason}" for name, reason in self.not_tried.items()]
        return "\n".join([f"{self.model}, {self.chunks} chunks", *lines])
