"""Trees whose nodes have given weights in the probabilities."""

from .trees import fixed_tree, make_rows


def with_weights(tree, on_the_way, uncalibrated=0.0):
    """A copy of a fitted tree whose nodes of each level have a weight, and leaves what is left."""
    stored = tree.to_dict()
    model, stored["selection"] = tree.model_, None
    levels = model.level[model.attribute >= 0]
    stored["model"]["weight"] = [on_the_way[level] for level in levels.tolist()]
    stored["model"]["tree_weight"] = [1.0 - uncalibrated]
    return type(tree).from_dict(stored)


def averaged_tree(n_rows=800, max_depth=3, uncalibrated=0.25, **params):
    """A tree in which the root has no weight, but nodes below it and the scores have."""
    X, y, scores = make_rows(n_rows, seed=5)
    tree = fixed_tree(max_depth=max_depth, **params).fit(X, y, scores=scores)
    weights = [0.0, 0.125, 0.25, *[0.0] * max_depth]
    return with_weights(tree, weights, uncalibrated)
