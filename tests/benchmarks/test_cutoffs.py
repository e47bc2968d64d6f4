"""What cutoffs keep and drop: measured once, resumed, written into its page and drawn."""

import json
from pathlib import Path

import pytest
from benchmarks import cutoffs
from tests.benchmarks.made import two_hops

from llama_index.ragkit.testing import HashEmbedding


def test_shares_are_measured_once_and_fall_and_rise_with_the_cutoff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(cutoffs.MODELS, "minilm", lambda: HashEmbedding(dim=64))
    two_hops(tmp_path / "musique")
    (tmp_path / "pictures").mkdir()
    page, kept = tmp_path / "nearness.md", tmp_path / "kept.jsonl"
    page.write_text(f"before\n{cutoffs.BEGIN}\nold\n{cutoffs.END}\nafter\n")
    given = ["--data", str(tmp_path), "--sets", "musique", "--systems", "nearness", "sprag", "--docs", str(tmp_path)]
    cutoffs.main([*given, "--kept", str(kept)])
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [row["system"] for row in rows] == ["nearness", "sprag"]
    for row in rows:
        falling, *rising = (row["shares"][kind] for kind in cutoffs.KINDS)
        assert falling == sorted(falling, reverse=True)
        assert rising == [sorted(shares) for shares in rising]
    text = page.read_text()
    assert text.startswith(f"before\n{cutoffs.BEGIN}\n")
    assert text.endswith(f"{cutoffs.END}\nafter\n")
    assert "old" not in text
    assert (tmp_path / "pictures" / "cutoffs.svg").read_text().count("<polyline") == 3
    monkeypatch.setattr(cutoffs, "_measured", None)
    cutoffs.main([*given, "--kept", str(kept)])
    assert page.read_text() == text
