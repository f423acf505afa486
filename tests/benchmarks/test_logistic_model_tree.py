"""The comparison of logistic model trees: every classifier in every fold, once."""

import pandas as pd

from benchmarks.comparison import logistic_model_tree

from ..support.paper_data import write_data


def test_every_fold_is_done_once(tmp_path, capsys, monkeypatch):
    folder, store = write_data(tmp_path / "data"), tmp_path / "store.csv"
    given = ["--data-dir", str(folder), "--folds", "2", "--store", str(store)]
    monkeypatch.setattr(logistic_model_tree, "STRENGTHS", (0.0, 0.01))
    logistic_model_tree.main([*given, "--datasets", "vote"])
    results = pd.read_csv(store)
    names = list(logistic_model_tree.CLASSIFIERS)
    assert results["classifier"].tolist() == names * 2
    assert results["accuracy"].between(0.5, 1.0).all() and results["rmse"].between(0, 1).all()
    assert (results["log loss"] > 0).all()
    assert results.groupby("classifier")["leaves"].count()[names].tolist() == [2, 0, 2, 0]
    monkeypatch.setattr(logistic_model_tree, "judge", None)  # nothing is left to be done
    capsys.readouterr()
    logistic_model_tree.main([*given, "--datasets", "vote"])
    said = capsys.readouterr().out
    assert pd.read_csv(store).equals(results)
    mean = results[results["classifier"] == names[0]]["accuracy"].mean()
    assert f"| vote | {mean:.4f} |" in said
    assert "against decision tree: better on" in said
    assert "against decision tree, by log loss: " in said
