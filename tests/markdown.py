"""Code in Markdown files: what it is, and what it prints."""

import re
from contextlib import redirect_stdout
from io import StringIO


def blocks(text):
    """The kind and the content of every block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def printed(code, namespace, name):
    """What code prints."""
    output = StringIO()
    with redirect_stdout(output):
        exec(compile(code, name, "exec"), namespace)
    return output.getvalue()


def assert_prints_what_is_shown(text, name):
    """Run every block of Python in turn; the number of outputs that were compared."""
    found = blocks(text)
    namespace = {"__name__": "markdown"}
    shown = 0
    for (kind, code), (next_kind, expected) in zip(found, [*found[1:], ("", "")], strict=True):
        if kind == "python":
            assert printed(code, namespace, name) == (expected if next_kind == "text" else "")
            shown += next_kind == "text"
    assert shown == sum(kind == "text" for kind, _ in found)
    return shown
