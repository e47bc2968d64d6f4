"""docs/troubleshooting.md has every error class, and quotes messages that exist."""

import re

from tests.pages import ROOT

from llama_index.ragkit import errors

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### (\w+Error)$", PAGE, flags=re.MULTILINE)


def test_every_error_class_has_a_section() -> None:
    assert sorted(SECTIONS) == sorted(set(errors.__all__) - {errors.RagKitError.__name__})


def test_a_section_says_which_error_it_is_a_kind_of() -> None:
    for name in SECTIONS:
        parent = getattr(errors, name).__bases__[0]
        section = PAGE.partition(f"### {name}\n")[2].partition("\n###")[0]
        if parent is not errors.RagKitError:
            assert re.match(rf"\s*An? `{parent.__name__}`:", section), name


def test_quoted_messages_are_those_of_the_code() -> None:
    """Each word of a quoted message stands in one source file of ragkit, in its order."""
    sources = [
        " ".join(re.sub(r'"\s*f?"', "", path.read_text(encoding="utf-8")).split())
        for path in (ROOT / "llama_index_ragkit").rglob("*.py")
    ]
    quoted = [re.sub(r"\s+", " ", text) for text in re.findall(r"(?<!\*)\*([^*]{12,}?)\*(?!\*)", PAGE)]
    assert len(quoted) > 10
    for text in quoted:
        parts = [part.strip() for part in re.split(r"\.\.\.|'\w+'", text) if len(part.strip()) > 5]
        assert any(all(part in source for part in parts) for source in sources), text
