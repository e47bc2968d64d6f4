"""The pictures of the pages that the guides show, taken in a window of a desktop.

    make demo && python -m examples.pictures [FOLDER]     of the pages in FOLDER, by default demo

Needs Chromium. They are written to docs/pictures, one for each method.
"""

import sys
from pathlib import Path

from tests.chromium import Browser

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1200, 750


def main(folder: Path) -> None:
    """Take all pictures."""
    for page in [*sorted(folder.glob("*rag.html")), folder / "raptor.html"]:
        with Browser(WIDTH, HEIGHT) as browser:
            browser.open(page)
            browser.wait(1)  # until the window fits
            browser.screenshot(ROOT / "docs" / "pictures" / f"{page.stem}.webp")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "demo")
