"""How often a fit waits for the cluster: seldom, however many questions its trees have."""

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from caltree import CalibrationTree
from caltree._histogram.pool import LocalPool
from caltree.dask import CalibrationTree as DaskTree

from ..support.default_trees import fitted

N_ROWS = 3000
MOST_TRIPS = 40


def make_rows():
    """Scores that are wrong in ever smaller regions: trees are deep."""
    rng = np.random.default_rng(0)
    X = rng.random((N_ROWS, 2))
    scores = rng.uniform(0.1, 0.9, N_ROWS)
    wrong = np.sin(40 * X[:, 0] ** 2) > 0
    return X, (rng.random(N_ROWS) < np.where(wrong, scores**3, scores)).astype(int), scores


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_a_fit_waits_for_the_cluster_a_few_times(client, monkeypatch, scoring):
    params = {"scoring": scoring, "min_samples_split": 20, "random_state": 0}
    rows, questions, trips = make_rows(), [], []
    total, sync = LocalPool.total, Client.sync
    monkeypatch.setattr(
        LocalPool, "total", lambda pool, query: questions.append(query) or total(pool, query)
    )
    local = CalibrationTree(tree_method="hist", **params).fit(*rows)
    lazy = [da.from_array(array, chunks=(1000, *array.shape[1:])) for array in rows]
    monkeypatch.setattr(
        Client, "sync", lambda *given, **options: trips.append(given) or sync(*given, **options)
    )
    tree = DaskTree(**params).fit(*lazy)
    assert fitted(tree) == fitted(local)
    # Were each question a round trip, there would be more.
    assert len(questions) > 2 * MOST_TRIPS
    assert len(trips) <= MOST_TRIPS
