"""Links of notebooks to pages lead to their HTML, as those of Markdown pages do.

A hook of MkDocs: it rewrites links of Markdown pages itself, and leaves those of notebooks as they are, which are right
where a notebook is read in the repository.
"""

import re
from typing import Any

__all__ = ["on_page_content"]

LINK = re.compile(r'href="(?!https?:)([^"#]+)\.(?:md|ipynb)((?:#[^"]*)?)"')


def on_page_content(html: str, page: Any, files: Any, **kwargs: Any) -> str:
    """Point links at the pages that MkDocs writes; one without a page ends the build."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html

    def rewritten(match: re.Match[str]) -> str:
        written = {file.url for file in files.documentation_pages()}
        url = f"{match[1]}.html"
        target = re.sub(r"^tutorials/\.\./", "", f"tutorials/{url}")
        if target not in written:
            raise ValueError(f"{page.file.src_uri} links to {match[1]}, which is not a page")
        return f'href="{url}{match[2]}"'

    return LINK.sub(rewritten, html)
