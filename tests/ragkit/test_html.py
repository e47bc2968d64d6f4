"""The pages: their structure, what hostile texts can do to them (nothing), and what a browser makes of them."""

import base64
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chromium import CHROMIUM, Browser
from tests.page_data import read_data

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.html import Edge, Facts, Graph, Grid, Group, Node, Page, Result, Results, render, write

HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<!--<script>",
    "]]><svg onload=\"document.title='owned'\">",
    "\u2028document.title='owned'\u2029",
    "lone \ud800 and \udfff surrogates",
    "controls \x00\x01\x07\x1b[31m\r\n\t\x85",
    "direction \u202e override",
    "javascript:document.title='owned'",
    "&lt;script&gt; &amp; \\u003c",
    "${document.title='owned'} `{{7*7}}`",
    "__proto__",
]


def hostile_page(layout: Any = "tree") -> Page:
    nodes = [Node("root", text="The root.", level=1)]
    nodes += [
        Node(f"{i} {text}", label=text, text=text * 3, group=text, score=0.5, highlighted=i == 3, details={text: text})
        for i, text in enumerate(HOSTILE)
    ]
    return Page(
        title=HOSTILE[0],
        subtitle=HOSTILE[1],
        view=Graph(
            nodes,
            [Edge("root", node.id, label=node.text, highlighted=node.highlighted) for node in nodes[1:]],
            [Group(HOSTILE[2], label=HOSTILE[0], colour="#336699")],
            layout=layout,
        ),
        panels=[
            Results(HOSTILE[0], [Result(text, snippet=text, node=nodes[i + 1].id) for i, text in enumerate(HOSTILE)]),
            Facts(HOSTILE[1], {text: text for text in HOSTILE}),
        ],
        legend=HOSTILE,
        highlight_label=HOSTILE[0],
    )


class Parsed(HTMLParser):
    """What an HTML parser finds in a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.content: list[str] = []
        self.within = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.content.append("")
        self.within = True

    def handle_endtag(self, tag: str) -> None:
        self.within = False

    def handle_data(self, data: str) -> None:
        if self.within:
            self.content[-1] += data

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        pairs = zip(self.tags, self.content, strict=True)
        return [(attrs, content) for (name, attrs), content in pairs if name == tag]

    def data(self) -> dict[str, Any]:
        return read_data(next(content for attrs, content in self.all("script") if attrs.get("id") == "data"))

    def policy(self) -> str:
        metas = [attrs for attrs, _ in self.all("meta") if attrs.get("http-equiv") == "Content-Security-Policy"]
        return metas[0]["content"] or ""


@pytest.mark.parametrize("layout", ["tree", "force"])
def test_hostile_texts_add_no_element_and_arrive_unchanged(layout: str) -> None:
    parsed = Parsed(render(hostile_page(layout)))
    plain = Parsed(render(Page("t", Graph([Node("a")], layout=layout))))  # type: ignore[arg-type]
    assert [tag for tag, _ in parsed.tags] == [tag for tag, _ in plain.tags]
    data = parsed.data()
    assert [node["text"] for node in data["view"]["nodes"][1:]] == [text * 3 for text in HOSTILE]
    assert data["panels"][1]["rows"] == [[text, text] for text in HOSTILE]
    assert data["title"] == HOSTILE[0]


def test_page_is_valid_utf8_whatever_is_in_it() -> None:
    assert render(hostile_page()).encode("utf-8")
    assert render(Page("title \ud800", Graph([])))


def test_every_script_and_style_is_named_by_the_policy_and_nothing_else_is_allowed() -> None:
    parsed = Parsed(render(hostile_page("force")))
    policy = parsed.policy()
    code = [content for attrs, content in parsed.all("script") if "type" not in attrs]
    styles = [content for _, content in parsed.all("style")]
    assert len(code) > 5
    for content in code + styles:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"unsafe|https?:|\*", policy)


def test_page_refers_to_nothing_outside_itself() -> None:
    for tag, attrs in Parsed(render(hostile_page("force"))).tags:
        for name in ("src", "href", "srcset", "action", "data"):
            assert attrs.get(name) in (None, "data:,"), tag


def test_assets_survive_an_html_parser_byte_for_byte() -> None:
    import llama_index.ragkit.html as package

    for path in (Path(package.__file__).parent / "assets").iterdir():
        text = path.read_bytes().decode("utf-8")
        assert not re.search(r"</(script|style)|<!--|[\r\x00]", text, re.IGNORECASE), path.name


def test_equal_pages_give_equal_files_in_every_process() -> None:
    code = (
        "import hashlib\nfrom llama_index.ragkit.html import *\n"
        "nodes = [Node(str(i), group='ab'[i % 2], details={'s': {'x', 'y', 'z'}, 'f': 1 / 3}) for i in range(9)]\n"
        "page = Page('t', Graph(nodes, [Edge('0', '1')]))\n"
        "print(hashlib.sha256(render(page).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1


def test_size_is_that_of_the_library_and_of_the_texts() -> None:
    text = "word " * 200
    small = len(render(Page("t", Graph([]))))
    large = len(render(Page("t", Graph([Node(str(i), text=text) for i in range(500)]))))
    assert small < 600_000
    assert large - small < 500 * (len(text) + 60)
    assert len(render(Page("t", Grid([], [], [])))) < 60_000


def test_values_that_json_has_no_word_for_are_told_in_words() -> None:
    details = {
        "nan": float("nan"),
        "inf": float("inf"),
        "numpy": np.float32(0.5),
        "int": np.int64(3),
        "big": 2**70,
        "none": None,
        "list": [1, 2],
        "tuple keys": {(1, 2): 3},
        "set": {"b", "a"},
        "path": Path("a"),
    }
    page = Page("t", Graph([Node("a", score=float("nan"), details=details)]))
    node = Parsed(render(page)).data()["view"]["nodes"][0]
    assert node["score"] == "nan"
    assert dict(node["details"]) == {
        "nan": "nan",
        "inf": "inf",
        "numpy": 0.5,
        "int": 3,
        "big": str(2**70),
        "none": None,
        "list": "[\n 1,\n 2\n]",
        "tuple keys": "{(1, 2): 3}",
        "set": "a, b",
        "path": "a",
    }


def test_groups_without_a_colour_get_distinct_ones() -> None:
    nodes = [Node(str(i), group=f"g{i}") for i in range(40)]
    groups = Parsed(render(Page("t", Graph(nodes, groups=[Group("g3", colour="#4e79a7")])))).data()["view"]["groups"]
    assert len({group["colour"] for group in groups}) == 40
    assert groups[0] == {"name": "g3", "label": "g3", "colour": "#4e79a7"}


def test_grid_keeps_rows_columns_and_gaps() -> None:
    values = np.array([[0.123456789, np.nan, -1.0], [0.0, 2.0, np.inf]])
    grid = Grid([Node("r0"), Node("r1")], [Node("c0"), Node("c1"), Node("c2")], values, label="cosine")
    view = Parsed(render(Page("t", grid))).data()["view"]
    assert view["rows"] == 2
    assert view["values"] == [[0.123457, None, -1.0], [0.0, 2.0, None]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph([Node("a"), Node("a")]), "Two nodes have the id 'a'"),
        (lambda: Graph([Node("a")], [Edge("a", "b")]), "names 'b', which is not a node"),
        (lambda: Graph([Node("a")], [Edge("a", "a", weight=-1)]), "must be 0 or more"),
        (lambda: Graph([Node("a", size=0)]), "must be above 0"),
        (lambda: Graph([Node(7)]), "must be a string, not 7"),  # type: ignore[arg-type]
        (lambda: Graph([], layout="circle"), "'tree', 'force', not 'circle'"),  # type: ignore[arg-type]
        (lambda: Group("g", colour="red;background:url(x)"), "'#rrggbb'"),
        (lambda: Grid([Node("a")], [Node("b")], [[1, 2]]), r"\(1, 1\), not \(1, 2\)"),
        (lambda: Grid([Node("a")], [Node("a")], [[1]]), "Two nodes have the id 'a'"),
        (lambda: Page("t", Graph([]), panels=[Results("r", [Result("x", node="gone")])]), "names 'gone'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_write_leaves_the_old_file_when_it_fails(tmp_path: Path) -> None:
    target = write(Page("first", Graph([])), tmp_path / "deep" / "page.html")
    unwritable = Page("second", Graph([Node("a", text=object())]))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        write(unwritable, target)
    assert "<title>first</title>" in target.read_text(encoding="utf-8")
    assert [path.name for path in target.parent.iterdir()] == ["page.html"]


# ---------------------------------------------------------------------------------------------- in a browser

in_browser = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs {CHROMIUM}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


def tree(count: int) -> Page:
    """A tree of `count` nodes, five children a parent, the last leaf and the way to it highlighted."""
    parent = {i: (i - 1) // 5 for i in range(1, count)}
    highlighted = {count - 1}
    while 0 not in highlighted and count > 1:
        highlighted |= {parent[i] for i in highlighted}
    nodes = [
        Node(str(i), text=f"Passage number {i}. The keeper lit the lamp.", highlighted=i in highlighted)
        for i in range(count)
    ]
    edges = [
        Edge(str(above), str(i), highlighted=i in highlighted and above in highlighted) for i, above in parent.items()
    ]
    return Page("A tree", Graph(nodes, edges), panels=[Results("Retrieved", [Result("last", node=str(count - 1))])])


@in_browser
@pytest.mark.parametrize("layout", ["tree", "force"])
def test_hostile_page_opens_quietly_and_nothing_in_it_runs(browser: Browser, tmp_path: Path, layout: str) -> None:
    browser.problems.clear()
    browser.open(write(hostile_page(layout), tmp_path / "page.html"))
    for i in range(len(HOSTILE)):
        browser.run(f"document.querySelectorAll('.fixed .result')[{i}].click()")
        browser.wait(0.05)
        assert browser.run("document.querySelector('.detail .text').textContent.length") == len(HOSTILE[i] * 3)
    browser.wait(0.3)
    assert browser.problems == []
    assert browser.run("document.title") == HOSTILE[0]
    assert browser.run("document.querySelectorAll('img, svg, iframe, object, embed').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == browser.run(
        "document.querySelectorAll('body > script').length"
    )


@in_browser
def test_policy_blocks_a_script_that_got_into_the_page(browser: Browser, tmp_path: Path) -> None:
    owned = "document.title='owned'"
    intruders = f'<script>{owned}</script><img src="data:,x" onerror="{owned}"><a href="javascript:{owned}">x</a>'
    (tmp_path / "page.html").write_text(render(tree(3)).replace("</body>", intruders + "</body>"), encoding="utf-8")
    browser.problems.clear()
    browser.open(tmp_path / "page.html")
    browser.run("document.querySelector('a').click()")
    browser.wait(0.2)
    assert len([problem for problem in browser.problems if "Content Security Policy" in problem]) >= 3
    assert browser.run("document.title") == "A tree"


@in_browser
def test_a_label_that_ends_the_text_is_stored_once_and_shown_whole(browser: Browser, tmp_path: Path) -> None:
    label = "the lamp \U0001f3ee burned"
    html = render(Page("t", Graph([Node("a", label=label, text=f"Lamps. {label}")], layout="force")))
    assert html.count("burned") == 1
    assert Parsed(html).data()["view"]["nodes"][0]["label"] == label
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    browser.problems.clear()
    browser.open(tmp_path / "page.html")
    browser.key("/")
    browser.write("burned")
    browser.key("Enter")
    assert browser.run("document.querySelector('.detail h2').textContent") == label
    assert browser.problems == []


@in_browser
def test_a_long_list_shows_its_first_items_and_the_others_on_demand(browser: Browser, tmp_path: Path) -> None:
    given = tree(500)
    panel = Results("All", [Result(f"result {i}", node=str(i)) for i in range(500)])
    browser.problems.clear()
    browser.open(write(Page("t", given.view, panels=[panel]), tmp_path / "page.html"))
    count = "document.querySelectorAll('.fixed .result').length"
    assert browser.run(count) < 100
    assert browser.run("document.querySelector('.fixed .action').textContent") == "Show all 500"
    browser.run("document.querySelector('.fixed .action').click()")
    assert browser.run(count) == 500
    browser.run("[...document.querySelectorAll('.fixed .result')].at(-1).click()")
    assert "number 499." in browser.run("document.querySelector('.detail h2').textContent")
    assert browser.problems == []


@in_browser
@pytest.mark.parametrize("count", [0, 1, 30, 5000])
@pytest.mark.parametrize("layout", ["tree", "force", "grid"])
def test_pages_of_every_size_open_quietly(browser: Browser, tmp_path: Path, layout: Any, count: int) -> None:
    page = tree(count) if count else Page("Empty", Graph([]))
    assert isinstance(page.view, Graph)
    if layout == "grid":
        view: Graph | Grid = Grid([Node("head")], page.view.nodes, np.zeros((1, count)))
    else:
        view = Graph(page.view.nodes, page.view.edges, layout=layout)
    browser.problems.clear()
    browser.open(write(Page(page.title, view, panels=page.panels), tmp_path / "page.html"))
    assert browser.problems == []
    shown = browser.run("document.querySelector('.status').textContent")
    expected = {"tree": "of 5,000 nodes shown", "grid": "of 5,000 columns"}.get(layout, "of 5,000 nodes shown")
    assert expected in shown if count == 5000 else shown


@in_browser
@pytest.mark.parametrize("layout", ["tree", "force"])
def test_equal_pages_look_equal(browser: Browser, tmp_path: Path, layout: Any) -> None:
    given = tree(120).view
    assert isinstance(given, Graph)
    path = write(Page("t", Graph(given.nodes, given.edges, layout=layout)), tmp_path / "page.html")
    pictures = []
    for name in ("first.png", "second.png"):
        browser.open(path)
        browser.wait(0.5)
        browser.screenshot(tmp_path / name)
        pictures.append((tmp_path / name).read_bytes())
    assert pictures[0] == pictures[1]


@in_browser
def test_search_select_and_escape(browser: Browser, tmp_path: Path) -> None:
    browser.problems.clear()
    browser.open(write(tree(400), tmp_path / "page.html"))
    browser.key("/")
    browser.write("number 39")
    count, title = "document.querySelector('.count').textContent", "document.querySelector('.detail h2')?.textContent"
    assert browser.run(count) == "11"
    browser.key("Enter")
    browser.key("Enter")
    assert browser.run(count) == "2 / 11"
    assert "number 390." in browser.run(title)
    browser.key("Escape")
    assert browser.run("document.querySelector('.detail').hidden") is True
    browser.key("Escape")
    assert browser.run(count) == ""
    browser.run("document.querySelector('.fixed .result').click()")
    assert "number 399." in browser.run(title)
    assert "number 79." in browser.run("document.querySelector('.detail .links').textContent")
    assert browser.problems == []


@in_browser
def test_click_opens_a_branch_and_hover_names_it(browser: Browser, tmp_path: Path) -> None:
    page = Page("t", Graph([Node("0", label="The root")] + [Node(str(i)) for i in range(1, 8)],
                           [Edge("0", str(i)) for i in range(1, 8)]))  # fmt: skip
    browser.problems.clear()
    browser.open(write(page, tmp_path / "page.html"))
    status = "document.querySelector('.status').textContent"
    browser.run("[...document.querySelectorAll('.tools button')].find((b) => b.textContent === 'Close all').click()")
    browser.wait(0.3)
    assert browser.run(status) == "1 of 8 nodes shown"
    x, y = browser.run(
        "(() => { const r = document.querySelector('.stage').getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y + r.height / 2] })()"
    )
    browser.hover(x, y)
    assert browser.run("document.querySelector('.tip').textContent") == "The root"
    browser.click(x, y)
    assert browser.run(status) == "8 nodes"
    assert browser.run("document.querySelector('.detail h2').textContent") == "The root"
    assert browser.problems == []


def graph(count: int, groups: int = 1) -> Page:
    """A ring of nodes, of which the first two are the answer."""
    nodes = [Node(str(i), label=f"Node {i}", group=f"A group with a long name, number {i % groups}",
                  highlighted=i < 2) for i in range(count)]  # fmt: skip
    edges = [Edge(str(i), str((i + 1) % count)) for i in range(count)]
    return Page("A graph", Graph(nodes, edges, layout="force"), highlight_label="The way to the answer of the question")


@in_browser
def test_a_graph_begins_with_the_answer_before_a_pale_map(browser: Browser, tmp_path: Path) -> None:
    browser.open(write(graph(60), tmp_path / "page.html"))
    pressed = "document.querySelector('.tools [aria-pressed]')"
    assert browser.run(f"{pressed}.getAttribute('aria-pressed')") == "true"
    browser.screenshot(tmp_path / "answer.png")
    browser.run(f"{pressed}.click()")
    browser.wait(0.5)
    browser.screenshot(tmp_path / "all.png")
    assert (tmp_path / "answer.png").read_bytes() != (tmp_path / "all.png").read_bytes()


@in_browser
def test_a_tree_that_is_opened_whole_can_be_read(browser: Browser, tmp_path: Path) -> None:
    """As an outline at the size of its text: of 400 cards, those at its beginning."""
    browser.open(write(tree(400), tmp_path / "page.html"))
    browser.run("[...document.querySelectorAll('.tools button')].find((b) => b.textContent === 'Open all').click()")
    browser.wait(0.5)
    x, y = browser.run(
        "(() => { const r = document.querySelector('.stage').getBoundingClientRect();"
        " return [r.x + r.width / 2, r.y] })()"
    )
    seen = set()
    for down in range(40, 700, 12):
        browser.hover(x, y + down)
        seen.add(browser.run("document.querySelector('.tip').textContent"))
    assert 8 < len(seen) < 30


@in_browser
def test_a_legend_of_many_groups_is_whole_and_buttons_stand_in_one_row(tmp_path: Path) -> None:
    page = write(graph(60, groups=12), tmp_path / "page.html")
    with Browser(1400, 900) as wide:
        wide.open(page)
        assert wide.run("(({scrollHeight, clientHeight}) => scrollHeight - clientHeight)"
                        "(document.querySelector('.legend'))") == 0  # fmt: skip
    with Browser(390, 844) as narrow:
        narrow.open(page)
        boxes = narrow.run(
            "[...document.querySelectorAll('.tools button')].map((b) => b.getBoundingClientRect())"
            ".map(({top, right}) => [top, right])"
        )
        assert len({top for top, _ in boxes}) == 1
        assert max(right for _, right in boxes) <= 390


@in_browser
def test_a_button_is_whole_on_a_narrow_window(tmp_path: Path) -> None:
    nodes = [Node(str(i), f"Node {i}", highlighted=i < 3) for i in range(9)]
    edges = [Edge("0", str(i), highlighted=i < 3) for i in range(1, 9)]
    page = Page("A tree", Graph(nodes, edges, layout="tree"), highlight_label="Path to the answer")
    with Browser(390, 844) as narrow:
        narrow.open(write(page, tmp_path / "page.html"))
        cut = narrow.run(
            "[...document.querySelectorAll('.tools button')].filter((b) => b.scrollWidth > b.clientWidth)"
            ".map((b) => b.textContent)"
        )
        assert cut == []


_DRAWN = """
(() => {
  const cy = document.querySelector('.stage')._cyreg.cy;
  const box = ({ x1, y1, x2, y2 }, less) => [x1 + less, y1 + less, x2 - less, y2 - less];
  const names = cy.nodes('.named').map((node) =>
    box(node.renderedBoundingBox({ includeNodes: false, includeUnderlays: false, includeOverlays: false }), 6));
  const discs = cy.nodes('.lit').map((node) =>
    box(node.renderedBoundingBox({ includeLabels: false, includeUnderlays: false, includeOverlays: false }), 6));
  return { names, discs, width: cy.width(), height: cy.height() };
})()
"""


@in_browser
@pytest.mark.parametrize("width", [1400, 390])
def test_names_in_a_graph_hide_no_other_name_and_no_disc_of_the_answer(width: int, tmp_path: Path) -> None:
    nodes = [Node(str(i), label=f"A passage with a long name, number {i}", highlighted=i < 9) for i in range(60)]
    edges = [Edge("0", str(i), highlighted=i < 9) for i in range(1, 60)]
    with Browser(width, 844) as browser:
        browser.open(write(Page("t", Graph(nodes, edges, layout="force")), tmp_path / "page.html"), settle=0.6)
        drawn = browser.run(_DRAWN)
    names, discs = drawn["names"], drawn["discs"]
    assert len(discs) == 9
    assert len(names) > 2
    for i, name in enumerate(names):
        assert not any(_touch(name, other) for other in [*names[:i], *discs])
        assert 0 <= name[0] < name[2] <= drawn["width"]
        assert 0 <= name[1] < name[3] <= drawn["height"]


def _touch(a: list[float], b: list[float]) -> bool:
    return a[0] < b[2] and a[2] > b[0] and a[1] < b[3] and a[3] > b[1]
