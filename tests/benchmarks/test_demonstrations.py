"""Worked examples of a chain of thought, read from the files that the data of IRCoT have."""

from pathlib import Path

from benchmarks.papers.demonstrations import demonstration

from llama_index.hipporag import Demonstration

FILE = """# METADATA: {"qid": "one"}
Wikipedia Title: Tern Rock
A lighthouse.

It burned oil.

Wikipedia Title: Ada Hale
She was born in Port Ellis.

Q: Where was the keeper of Tern Rock born?
A: The keeper of Tern Rock was Ada Hale. Ada Hale was born in Port Ellis. So the answer is: Port Ellis.


# METADATA: {"qid": "two"}
Wikipedia Title: Other
Text.

Q: Who?
A: So the answer is: nobody.
"""


def file_of(data: Path, name: str) -> None:
    path = data / "ircot_prompts" / name / "gold_with_3_distractors_context_cot_qa_codex.txt"
    path.parent.mkdir(parents=True)
    path.write_text(FILE, encoding="utf-8")


def test_the_first_example_is_read_whole(tmp_path: Path):
    file_of(tmp_path, "2wikimultihopqa")
    assert demonstration(tmp_path, "musique") is None
    assert demonstration(tmp_path, "2wiki") == Demonstration(
        ["Tern Rock\nA lighthouse.\n\nIt burned oil.", "Ada Hale\nShe was born in Port Ellis."],
        "Where was the keeper of Tern Rock born?",
        [
            "The keeper of Tern Rock was Ada Hale.",
            "Ada Hale was born in Port Ellis.",
            "So the answer is: Port Ellis.",
        ],
    )
