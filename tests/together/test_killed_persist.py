"""Core's `persist`, which writes file after file, killed at any of them: an error at load, never a wrong answer."""

import json
import shutil
from pathlib import Path

from llama_index.core import Document, StorageContext
from tests.cases import Case, ask, chunks

from llama_index.ragkit.errors import RagKitError


def half_written(old: Path, new: Path, order: list[str], written: int, cut: bool, into: Path) -> None:
    """A folder as a process leaves it that dies in or after the writing of the `written`-th file."""
    shutil.copytree(old, into)
    for name in order[:written]:
        shutil.copy(new / name, into / name)
    if cut:
        data = (new / order[written]).read_bytes()
        (into / order[written]).write_bytes(data[: len(data) // 2])


def test_core_s_persist_killed_anywhere_is_an_error_or_one_of_the_two_states(case: Case, tmp_path):
    index = case.build(chunks("d", 5))
    index.storage_context.persist(str(tmp_path / "old"))
    answers = {"old": ask(index, top_k=50)}
    index.insert(Document(text="Zanzibar exports cloves.", id_="z"))
    index.delete_nodes(["d-1"], delete_from_docstore=True)
    index.storage_context.persist(str(tmp_path / "new"))
    answers["new"] = ask(index, top_k=50)
    order = sorted(path.name for path in (tmp_path / "new").iterdir())
    order.sort(key=lambda name: (tmp_path / "new" / name).stat().st_mtime_ns)
    outcomes = []
    for written in range(len(order) + 1):
        for cut in (False, True) if written < len(order) else (False,):
            folder = tmp_path / f"{written}-{cut}"
            half_written(tmp_path / "old", tmp_path / "new", order, written, cut, folder)
            try:
                loaded = case.load(StorageContext.from_defaults(persist_dir=str(folder)))
            except (RagKitError, json.JSONDecodeError):  # core's own for a document store that is cut
                outcomes.append("error")
            else:
                known = [name for name, answer in answers.items() if ask(loaded, top_k=50) == answer]
                assert known, folder.name
                outcomes += known
    assert outcomes[0] == "old"
    assert outcomes[-1] == "new"
    assert outcomes.count("error") >= 4
