"""What the first fact paths of PG-RAG hold."""

import gzip
import json

from benchmarks import fact_paths

from llama_index.ragkit.testing import HashEmbedding


def test_facts_that_hold_the_answer_and_their_passages_are_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(fact_paths.MODELS, "minilm", lambda: HashEmbedding(dim=256))
    texts = [
        f"Lamp {i} burned in harbour {i}. It was tended by keeper_{i} alone. Its oil came by ship." for i in range(30)
    ]
    passages = [{"id": f"p{i}", "title": f"Lamp {i}", "text": text} for i, text in enumerate(texts)]
    questions = [
        {"id": "held", "question": "Who tended keeper_7?", "answer": "KEEPER_7", "gold": ["p7"]},
        {"id": "not held", "question": "Who tended keeper_9?", "answer": "nobody at all", "gold": ["p9", "p20"]},
    ]
    for name, rows in (("corpus", passages), ("queries", questions)):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    fact_paths.main(["--data", str(tmp_path)])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()]
    table = {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows}
    assert set(table) == {"facts", "---", "pgrag", "cosines", "published", "pgrag - cosines", "pgrag - published"}
    assert table["pgrag"]["answer in 1"].startswith("0.500 ")
    assert table["pgrag"]["passages of 1"].startswith("0.750 ")
    fact_paths.main(["--data", str(tmp_path), "--half", "1"])
    assert "| pgrag | 0.000 [0.000, 0.000] | 0.500 [0.500, 0.500]" in capsys.readouterr().out
