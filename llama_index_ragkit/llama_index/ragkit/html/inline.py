"""Pages inside a notebook."""

import html
from dataclasses import dataclass

from llama_index.ragkit.html.model import Graph, Page
from llama_index.ragkit.html.render import render

__all__ = ["InlinePage", "framed"]


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
