"""Worked examples of a chain of thought, in the form of IRCoT (Trivedi et al., ACL 2023), which HippoRAG's data have.

A file has an example after each line "# METADATA": passages as "Wikipedia Title: ..." and the text below, "Q: ..." and
"A: ...".
"""

import re
from pathlib import Path

from llama_index.hipporag import Demonstration
from llama_index.ragkit.text.sentences import split_sentences

__all__ = ["FOLDER", "demonstration"]

FOLDER = "ircot_prompts"  # beside the data folders
_FILE = "gold_with_3_distractors_context_cot_qa_codex.txt"
_NAMES = {"2wiki": "2wikimultihopqa"}
_TITLE = "Wikipedia Title: "


def demonstration(data: Path, folder: str) -> Demonstration | None:
    """The first example for the questions of a data folder, as in HippoRAG's paper; None if there is no file.

    Parameters
    ----------
    data : the folder that holds the data folders, and `ircot_prompts`
    """
    path = data / FOLDER / _NAMES.get(folder, folder) / _FILE
    return _first(path.read_text(encoding="utf-8")) if path.exists() else None


def _first(text: str) -> Demonstration:
    example = re.split(r"^# METADATA.*\n", text, flags=re.MULTILINE)[1]
    context, question, answer = re.split(r"^[QA]: ", example, flags=re.MULTILINE)
    passages = [part.strip() for part in context.split(_TITLE) if part.strip()]
    return Demonstration(passages, question.strip(), split_sentences(answer.strip()))
