"""The data of an HTML page."""

import json
import re
from pathlib import Path
from typing import Any

__all__ = ["page_data"]


def page_data(path: Path) -> dict[str, Any]:
    """What a page draws."""
    html = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data
