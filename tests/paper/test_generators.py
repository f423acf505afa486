"""Generated data: what is certain of every row, and what holds for many rows."""

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from caltree.paper import generators
from caltree.paper.generators import led24, rdg1
from tests.support import fixtures as fixture_files

N_MANY = 20_000
# Four standard deviations of a share of so many rows.
TOLERANCE = 4 * 0.5 / np.sqrt(N_MANY)

GENERATORS = [led24, rdg1]


def codes(data):
    return np.column_stack([data.X[name].cat.codes for name in data.X])


def fixture(name):
    return fixture_files.load(
        next(path for path in fixture_files.OPEN if fixture_files.name_of(path) == name)
    )


@pytest.mark.parametrize("generate", GENERATORS)
def test_the_seed_decides_everything(generate):
    one, same, other = generate(200, seed=1), generate(200, seed=1), generate(200, seed=2)
    pd.testing.assert_frame_equal(one.X, same.X)
    np.testing.assert_array_equal(one.y, same.y)
    assert not one.X.equals(other.X)
    assert (one.y != other.y).any()


@pytest.mark.parametrize(
    ("generate", "name"), [(led24, "led24-naive_bayes"), (rdg1, "rdg1-naive_bayes")]
)
def test_the_attributes_look_like_those_of_the_reference(generate, name):
    reference, data = fixture(name), generate()
    table = reference.table("train")
    assert list(data.X.columns) == list(table.columns)
    assert (data.X.dtypes == table.dtypes).all()
    assert data.classes == tuple(reference.classes)


def test_led24_has_the_size_of_the_paper_by_default():
    data = led24()
    assert data.X.shape == (5000, 24)
    assert data.name == "led24"
    assert data.notes == ()


def test_led24_shows_digits_that_the_reference_knows():
    reference = fixture("led24-naive_bayes")
    rows = np.column_stack([reference.table("train")[f"att{j}"].cat.codes for j in range(1, 8)])
    labels = reference.labels("train").astype(str)
    data = led24(500, noise=0.0)
    for digit in data.classes:
        usual = rows[labels == digit].mean(axis=0) > 0.5
        assert (codes(data)[data.y == digit][:, :7] == usual).all()


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_led24_inverts_segments_as_often_as_it_should(noise):
    clean, noisy = led24(N_MANY, noise=0.0, seed=3), led24(N_MANY, noise=noise, seed=3)
    np.testing.assert_array_equal(clean.y, noisy.y)
    inverted = (codes(clean) != codes(noisy))[:, :7]
    np.testing.assert_allclose(inverted.mean(axis=0), noise, rtol=0, atol=TOLERANCE)
    # Segments fail independently of each other.
    assert inverted.all(axis=1).mean() == pytest.approx(noise**7, abs=1e-3)


def test_led24_digits_and_irrelevant_attributes_are_evenly_spread():
    data = led24(N_MANY, seed=4)
    np.testing.assert_allclose(np.unique(data.y, return_counts=True)[1] / N_MANY, 0.1, atol=0.009)
    for digit in data.classes:
        share = codes(data)[data.y == digit][:, 7:].mean()
        assert share == pytest.approx(0.5, abs=0.012)


def test_rdg1_is_free_of_noise():
    data = rdg1(N_MANY)
    classes = defaultdict(set)
    for row, label in zip(map(tuple, codes(data)), data.y, strict=True):
        classes[row].add(label)
    assert len(classes) == 2**10
    assert all(len(labels) == 1 for labels in classes.values())


@pytest.mark.parametrize("seed", range(5))
def test_rdg1_is_worth_learning(seed):
    data = rdg1(N_MANY, seed=seed)
    assert 0.15 < (data.y == "c1").mean() < 0.85
    np.testing.assert_allclose(codes(data).mean(axis=0), 0.5, rtol=0, atol=TOLERANCE)
    # No single attribute settles it: whatever its value, both classes occur.
    for j in range(10):
        for value in (0, 1):
            assert 0 < (data.y[codes(data)[:, j] == value] == "c1").mean() < 1


def test_rdg1_follows_the_first_rule_that_covers_a_row():
    random = np.random.default_rng(6)
    rules = [generators._rule(random, 0) for _ in range(20)]
    assert {len(rule) for rule in rules} == {2, 3, 4}
    data = rdg1(2000, seed=6)
    for row, label in zip(codes(data), data.y, strict=True):
        covering = [
            k for k, rule in enumerate(rules) if all((row[j] == 1) == true for j, _, true in rule)
        ]
        assert label == ("c0" if not covering or covering[0] % 2 == 0 else "c1")


def test_rdg1_rules_do_not_depend_on_the_number_of_rows():
    few, many = rdg1(50, seed=5), rdg1(N_MANY, seed=5)
    known = dict(zip(map(tuple, codes(many)), many.y, strict=True))
    assert [known[tuple(row)] for row in codes(few)] == list(few.y)


def test_rdg1_numbers_are_tested_against_bounds_in_the_middle():
    data = rdg1(N_MANY, n_numeric=3)
    nominal = [isinstance(dtype, pd.CategoricalDtype) for dtype in data.X.dtypes]
    assert nominal == [False] * 3 + [True] * 7
    numbers = data.X.iloc[:, :3].to_numpy()
    assert 0 <= numbers.min() < 0.01 and 0.99 < numbers.max() < 1
    # Which side of the middle a number is on decides, unless it is near the middle.
    sides = np.column_stack([numbers >= 0.5, *(data.X[f"a{j}"].cat.codes for j in range(3, 10))])
    far = ((numbers < 0.25) | (numbers >= 0.75)).all(axis=1)
    classes, of_far = defaultdict(set), defaultdict(set)
    for side, is_far, label in zip(map(tuple, sides), far, data.y, strict=True):
        classes[side].add(label)
        if is_far:
            of_far[side].add(label)
    assert all(len(labels) == 1 for labels in of_far.values())
    assert any(len(labels) == 2 for labels in classes.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: led24(0), "n_rows must be a whole number from 1"),
        (lambda: led24(noise=-0.1), "noise must be a finite number of at least 0"),
        (lambda: led24(noise=1.5), "noise must be a probability, at most 1, got 1.5"),
        (lambda: led24(seed=-1), "seed must be a whole number from 0"),
        (lambda: rdg1(2.5), "n_rows must be a whole number from 1"),
        (lambda: rdg1(n_numeric=11), "n_numeric must be at most 10, got 11"),
        (lambda: rdg1(seed="x"), "seed must be a whole number from 0"),
    ],
)
def test_generators_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()
