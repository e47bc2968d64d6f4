"""A page inside a notebook."""

import html
from dataclasses import dataclass

from llama_index.ragkit.html.model import Graph, Page
from llama_index.ragkit.html.render import render

__all__ = ["InlinePage"]


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
        source = html.escape(render(self.page), quote=True)
        title = html.escape(self.page.title, quote=True)
        style = f"width:100%;height:{int(self.height)}px;border:1px solid #8884"
        return f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" srcdoc="{source}"></iframe>'
