"""Rendering a page as one HTML file, or in a frame inside a notebook.

The file contains the data as lines of JSON in an inert script element; the page's own code builds every element from it
with `textContent`. Three measures prevent the execution of untrusted text: `<`, `>` and `&` are escaped in the JSON,
nothing is ever parsed as HTML, and a content security policy that lists the page's own scripts by hash forbids every
other script, every request and (in browsers with trusted types) every string that would be parsed as markup.
"""

import base64
import hashlib
import html
import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from llama_index.ragkit.atomic import write_atomically
from llama_index.ragkit.html.data import page_lines
from llama_index.ragkit.html.model import Graph, Page

__all__ = ["InlinePage", "framed", "render", "write"]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_GRAPH = ("text.js", "style.js", "elements.js", "names.js", "graph.js")
_SCRIPTS = {
    "tree": ("cytoscape.min.js", "tree.js", *_GRAPH),
    "force": ("cytoscape.min.js", "fcose.min.js", "force.js", *_GRAPH),
    "grid": ("text.js", "grid.js"),
}


def render(page: Page) -> str:
    """Return the whole HTML file of a page; equal pages give equal files.

    The result can be encoded as UTF-8 whatever the page contains. The drawing library of a graph takes about 0.6 MB,
    the code of a grid 0.03 MB; each text is stored once.
    """
    data = "\n".join(page_lines(page))
    view = page.view.layout if isinstance(page.view, Graph) else "grid"
    scripts = [_asset(name) for name in ("data.js", "base.js", *_SCRIPTS[view], "panels.js", "page.js")]
    style = _asset("page.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            "script-src " + " ".join(map(_hash, scripts)),
            "style-src " + _hash(style),
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    title = html.escape(_LONE_SURROGATE.sub("\ufffd", page.title))
    code = "\n".join(f"<script>{script}</script>" for script in scripts)
    # Cytoscape adds a style element unless one with this id exists; the policy would block it.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title}</title>
<style id="__________cytoscape_stylesheet">{style}</style>
</head>
<body>
<noscript>This page requires JavaScript, which is disabled.</noscript>
<script type="application/json" id="data">{data}</script>
{code}
</body>
</html>
"""


def write(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write the page to a file atomically, and return its path. Missing folders are created."""
    return write_atomically(path, render(page).encode("utf-8"))


def _asset(name: str) -> str:
    return (resources.files("llama_index.ragkit.html") / "assets" / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii") + "'"


def framed(source: str, title: str, height: int) -> str:
    """The element with which a notebook shows a whole HTML file in a frame of its own.

    The file's own scripts run, without access to the notebook.

    Parameters
    ----------
    source : the HTML file
    title : of the frame, for screen readers
    height : in CSS pixels
    """
    style = f"width:100%;height:{int(height)}px;border:1px solid #8884"
    name, text = html.escape(title, quote=True), html.escape(source, quote=True)
    return f'<iframe title="{name}" sandbox="allow-scripts" style="{style}" srcdoc="{text}"></iframe>'


@dataclass(frozen=True, repr=False)
class InlinePage:
    """A page that a notebook shows in a frame of its own, as the result of a cell.

    The frame runs the page's own scripts and nothing else: it has no access to the notebook, and the page's content
    security policy forbids every request.

    Attributes
    ----------
    page : the content
    height : of the frame, in CSS pixels
    """

    page: Page
    height: int = 640

    def __repr__(self) -> str:
        view = self.page.view
        size = (
            f"{len(view.nodes)} nodes" if isinstance(view, Graph) else f"{len(view.rows)} x {len(view.columns)} cells"
        )
        return f"<page {self.page.title!r}: {size}; a notebook shows it, visualize(path) writes it>"

    def _repr_html_(self) -> str:
        """The frame."""
        return framed(render(self.page), self.page.title, self.height)
