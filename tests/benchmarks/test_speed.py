"""The dispatcher of the speed benchmark."""

import json
import sys
import types

import pytest
from benchmarks import speed


@pytest.fixture
def modules(monkeypatch):
    for name in ("one", "two"):
        module = types.ModuleType(f"made_up.speed_{name}")
        module.measurements = lambda name=name: iter([{"name": f"{name} query", "ours_ms": 1.5}, {"name": "add"}])
        monkeypatch.setitem(sys.modules, f"made_up.speed_{name}", module)
    monkeypatch.setitem(speed.METHODS, "made-up", ("made_up.speed_one", "made_up.speed_two"))


def test_one_json_object_a_measurement(modules, capsys):
    speed.main(["made-up"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["module"], line["name"]) for line in lines] == [
        ("speed_one", "one query"),
        ("speed_one", "add"),
        ("speed_two", "two query"),
        ("speed_two", "add"),
    ]
    assert lines[0]["ours_ms"] == 1.5
    assert lines[0]["on"]["cpus"] >= 1


def test_modules_can_be_picked(modules, capsys):
    speed.main(["made-up", "--only", "two"])
    assert len(capsys.readouterr().out.splitlines()) == 2
    with pytest.raises(SystemExit, match="three"):
        speed.main(["made-up", "--only", "three"])
