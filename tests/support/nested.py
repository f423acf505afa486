"""Nested dicts and lists: their places, and copies in which one is another."""

import copy


def replaced(stored, path, value):
    """A copy of nested dicts and lists with the item at the end of the path replaced."""
    if not path:
        return value
    changed = copy.copy(stored)
    key, *rest = path
    changed[key] = replaced(stored[key], rest, value) if rest else value
    return changed


def paths(item, start=()):
    """The way to everything inside nested dicts and lists."""
    yield start
    for key in (
        item if isinstance(item, dict) else range(len(item) if isinstance(item, list) else 0)
    ):
        yield from paths(item[key], (*start, key))
