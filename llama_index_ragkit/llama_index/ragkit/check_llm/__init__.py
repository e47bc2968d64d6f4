"""Which steps of the installed methods can a language model do? Tries each on a few chunks, and says.

    python -m llama_index.ragkit.check_llm --model qwen3:8b

or in a notebook::

    from llama_index.ragkit.check_llm import check_llm

    print(check_llm(llm))
"""

from llama_index.ragkit.check_llm.checking import LLMCheck, StepCheck, check_llm

__all__ = ["LLMCheck", "StepCheck", "check_llm"]
