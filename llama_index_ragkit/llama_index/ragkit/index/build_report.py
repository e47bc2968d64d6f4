"""`BuildReport`: what the language model of a write has done, while it runs and at its end."""

import logging
import time
from collections.abc import Callable
from functools import cached_property

from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.llm.prices import Prices
from llama_index.ragkit.llm.usage import StepUsage, Usage

__all__ = ["BuildReport"]

logger = logging.getLogger(__name__)

_MOST_FAILED = 0.1  # share of what was asked for, above which reasons are told
_REASONS = 3


class BuildReport:
    """What a write has asked of its language model, against what was expected.

    Parameters
    ----------
    expected : what the write is expected to ask, computed when it is first needed
    """

    def __init__(self, usage: Usage, expected: Callable[[], Estimate], prices: Prices | None) -> None:
        self._usage = usage
        self._expected_work = expected
        self._prices = prices
        self._begun = time.perf_counter()
        usage.status = self.status

    def status(self) -> str:
        """What a progress bar shows beside how much is done: failures, speed, and tokens or cost so far."""
        total = self._usage.total
        parts = [f"{total.failed} failed"] if total.failed else []
        parts += [f"{self._usage.by_rules} by rules"] if self._usage.by_rules else []
        if total.prompt_tokens:  # rules spend nothing
            parts += [f"{self._rate(total):.0f} tokens/s", self._spent(total)]
        return ", ".join(parts)

    def tell(self, method: str, nodes: int) -> None:
        """Log one line about a write, what rules did in place of the model, and why so much failed if over a tenth did.

        What rules did is an error where a model failed at everything that it was to do for a component.
        """
        rules = self._usage.rules
        if rules:
            lines = [f"- {r.done} of {r.among} {what}. The first: {r.first}" for what, r in rules.items()]
            logger.log(
                logging.ERROR if any(r.done == r.among for r in rules.values()) else logging.WARNING,
                "%s: rules stood in for a language model that failed. index.retry_failed() asks it again.\n%s",
                method, "\n".join(lines),
            )  # fmt: skip
        total = self._usage.total
        asked = total.read + total.failed
        if not asked:
            return
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "%s: %d chunks written in %.0f s. The LLM was asked %d questions in %d calls of about %d: %d answered, "
                "%d failed, %d done by rules, %d loops cut; %s, %.0f tokens a second.",
                method, nodes, time.perf_counter() - self._begun, asked, total.replies, self._expected.calls,
                total.read, total.failed, self._usage.by_rules, self._usage.repeated, self._spent(total),
                self._rate(total),
            )  # fmt: skip
        if total.failed > _MOST_FAILED * asked:
            logger.warning(
                "%s: %d of %d questions to the LLM failed. The commonest reasons:\n%s\nTry a larger model, another "
                'mode= of the extractor ("json_schema" where the server enforces schemas, "lines" where it does not), '
                "or ask for less, such as fewer questions a chunk. python -m llama_index.ragkit.check_llm says "
                "which steps a model can do.",
                method, total.failed, asked, _reasons(total),
            )  # fmt: skip

    @cached_property
    def _expected(self) -> Estimate:
        return self._expected_work().priced(self._prices)

    def _spent(self, total: StepUsage) -> str:
        so_far = Estimate(0, total.prompt_tokens, total.completion_tokens).priced(self._prices)
        if so_far.cost is not None:
            return f"{so_far.cost:.4g} of about {self._expected.cost:.4g} paid"
        done, expected = (work.prompt_tokens + work.completion_tokens for work in (so_far, self._expected))
        return f"{done:,} of about {expected:,} tokens"

    def _rate(self, total: StepUsage) -> float:
        return total.completion_tokens / max(1e-3, time.perf_counter() - self._begun)


def _reasons(total: StepUsage) -> str:
    lines = []
    for kind, count in total.reasons.most_common(_REASONS):
        reason, reply = total.examples[kind]
        lines.append(f"- {count} times: {reason}" + (f" The reply: {reply!r}" if reply else ""))
    return "\n".join(lines)
