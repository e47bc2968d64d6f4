"""Which method for these texts? Builds the installed methods and the baselines, asks questions, and says.

    python -m llama_index.ragkit.compare --docs folder [--questions file]

or in a notebook::

    from llama_index.ragkit.compare import compare

    compare(documents, out="comparison")
"""

from llama_index.ragkit.compare.comparing import compare
from llama_index.ragkit.compare.comparison import Comparison
from llama_index.ragkit.compare.questions import Question, read_questions
from llama_index.ragkit.compare.recommendation import Recommendation
from llama_index.ragkit.compare.system import Hit, Run

__all__ = ["Comparison", "Hit", "Question", "Recommendation", "Run", "compare", "read_questions"]
