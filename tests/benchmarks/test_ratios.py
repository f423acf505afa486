"""The check of stored ratios, and the page that is made of stored results."""

import json

import pytest

from benchmarks import page, ratios

QUICK = ratios.Case("sum", "fit", "another sum", 1, lambda: (int, int))


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """Ratios of one case as a test says, each time it is measured."""
    monkeypatch.setattr(ratios, "CASES", [QUICK])
    monkeypatch.setattr(ratios, "STORED", tmp_path / "ratios.json")

    def timed(*found):
        turns = iter(found)
        monkeypatch.setattr(ratios, "processor_seconds", lambda *_: [next(turns), 1.0])

    return timed


def test_a_ratio_is_stored_and_compared(timed, capsys):
    timed(0.9, 0.5, 0.8)
    assert ratios.main(["--store"]) == 0
    [case] = json.loads(ratios.STORED.read_text())["cases"]
    assert (case["name"], case["peer"], case["ratio"]) == ("sum", "another sum", 0.5)
    timed(0.59)
    assert ratios.main([]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("stored   0.500  ok")


def test_worse_is_measured_again_before_it_is_an_error(timed, capsys):
    timed(0.5)
    ratios.main(["--store", "--attempts", "1"])
    timed(0.7, 0.65, 0.55)
    assert ratios.main([]) == 0
    timed(0.7, 0.65, 0.62)
    assert ratios.main([]) == 1
    *_, line, verdict = capsys.readouterr().out.splitlines()
    assert line.endswith("WORSE") and " 0.620 " in line
    assert verdict == "1 of 1 are more than 20% worse than stored"


def test_another_processor_is_told_of(timed, capsys, monkeypatch):
    timed(0.5)
    ratios.main(["--store", "--attempts", "1"])
    monkeypatch.setattr(ratios, "processor", lambda: "an abacus")
    timed(0.7)
    assert ratios.main(["--attempts", "1"]) == 1
    assert "; this is an abacus): store those of" in capsys.readouterr().out


def test_a_case_that_is_not_stored_is_new(timed, capsys):
    timed(5.0)
    assert ratios.main(["--attempts", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("new")


def test_all_cases_are_stored():
    stored = json.loads(ratios.STORED.read_text())["cases"]
    assert [(each["group"], each["name"], each["peer"]) for each in stored] == [
        (case.group, case.name, case.peer) for case in ratios.CASES
    ]


def test_the_page_is_that_of_the_stored_results():
    accuracy = (page.DOCS / "accuracy.md").read_text(encoding="utf-8")
    written = (page.DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert written == page.render(accuracy, json.loads(page.RATIOS.read_text()))


def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    cases = [{"name": "a", "group": "fit", "peer": "b", "ratio": ratio} for ratio in (0.5, 2.0)]
    page.draw_ratios(tmp_path / "ratios.png", cases)
    page.draw_bars(tmp_path / "bars.png", ["`Ours`", "other"], {"loss": [0.1, 0.2]})
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())
