"""The pages of the documentation, and the Python blocks in them."""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

__all__ = ["PAGES", "ROOT", "Block", "blocks", "page_name"]

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("llama_index_*/README.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?P<above>[^\n]*)\n+(?P<indent>[ \t]*)```python[^\n]*\n(?P<code>.*?)\n(?P=indent)```", re.DOTALL)
# <!-- notest: needs a server; untyped: its library has no types -->
EXCUSE = re.compile(r"<!-- notest: *(?P<reason>[^>;]*?) *(?:; untyped: *(?P<untyped>[^>]*?) *)?-->")


class Block(NamedTuple):
    """A Python block.

    Attributes
    ----------
    line : lines of the page above the code
    code : without the indentation of the block
    excuse : why it is not run; None if it is
    untyped : why its types are not checked; None if they are
    """

    line: int
    code: str
    excuse: str | None
    untyped: str | None


def page_name(page: Path) -> str:
    """The path of a page in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The Python blocks of a page in its order."""
    text = "\n" + page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        excuse = EXCUSE.search(match["above"])
        line = text.count("\n", 0, match.start("code")) - 1
        reasons = (excuse["reason"], excuse["untyped"]) if excuse else (None, None)
        found.append(Block(line, textwrap.dedent(match["code"]), *reasons))
    return found
