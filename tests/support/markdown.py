"""Code in Markdown files: what it is, and what it prints."""

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise

from click.testing import CliRunner

from caltree import cli


def blocks(text):
    """The kind and the content of every block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def printed(code, namespace, name):
    """What code prints."""
    output = StringIO()
    with redirect_stdout(output):
        exec(compile(code, name, "exec"), namespace)
    return output.getvalue()


def with_short_numbers(text):
    """Text whose numbers have 12 digits at most: what follows depends on NumPy's logarithm."""
    return re.sub(r"\d+\.\d{12,}", lambda number: f"{float(number.group()):.12g}", text)


def without_trailing_spaces(text):
    """The lines of a text, as Markdown shows them."""
    return [line.rstrip() for line in text.strip().splitlines()]


def assert_commands_do_what_is_shown(code):
    """Run every command `caltree` of a block; what is shown below one is what it prints."""
    for command in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        line, _, expected = command.partition("\n")
        program, *arguments = shlex.split(line)
        assert program == "caltree"
        result = CliRunner().invoke(cli.make_command(), arguments)
        assert result.exit_code == 0, result.output
        if expected.strip():
            assert without_trailing_spaces(result.stdout) == without_trailing_spaces(expected)


def assert_prints_what_is_shown(text, name, *, commands=False):
    """Run every block of Python, and of commands, in turn; count the outputs of the former."""
    found = blocks(text)
    namespace = {"__name__": "markdown"}
    shown = 0
    for (kind, code), (next_kind, expected) in pairwise([*found, ("", "")]):
        if commands and kind == "console":
            assert_commands_do_what_is_shown(code)
        if kind == "python":
            shown_below = expected if next_kind == "text" else ""
            found_here = printed(code, namespace, name)
            assert with_short_numbers(found_here) == with_short_numbers(shown_below)
            shown += next_kind == "text"
    assert shown == sum(kind == "text" for kind, _ in found)
    return shown
