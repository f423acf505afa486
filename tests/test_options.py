"""Lists of names on the command line: repeated, between commas, in quotes."""

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree._options import list_names, names_option, split_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a,b c , d", ["a", "b c", "d"]),
        ('"a,b",c', ["a,b", "c"]),
        ('c, "a,b" ', ["c", "a,b"]),
        ('""', [""]),
        ('" a "', [" a "]),
        ('"say ""yes""",5"', ['say "yes"', '5"']),
        (",a,,", ["a"]),
        ("", []),
    ],
)
def test_names_stand_between_commas_or_in_quotes(text, names):
    assert split_names(text) == names


@pytest.mark.parametrize("text", ['"a', 'a,"b', ' "a', '"a"b', '"a""'])
def test_a_quote_that_is_open_is_refused(text):
    with pytest.raises(ValueError, match="a quote is not closed"):
        split_names(text)


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("ab, \"\n'")), max_size=5))
def test_every_name_can_be_given(names):
    assert split_names(list_names(names)) == split_names(list_names(names, ",")) == names


@pytest.fixture
def chosen():
    @click.command()
    @names_option("--names", "Some names.")
    @names_option("--others", "Others.", default=["x", "y"])
    def command(names, others):
        click.echo(f"{names} {others}")

    return lambda *arguments: CliRunner().invoke(command, arguments)


def test_repeated_and_between_commas_is_the_same(chosen):
    assert chosen("--names", "a,b", "--names", "c").stdout == "('a', 'b', 'c') ('x', 'y')\n"
    assert chosen("--others", "z").stdout == "None ('z',)\n"
    assert "[default: x, y]" in " ".join(chosen("--help").stdout.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--names", "a,a"], "it names a twice; name it once"),
        (["--names", "a", "--names", "a"], "it names a twice; name it once"),
        (["--names", " ,"], "it is empty; give names separated by commas"),
        (["--names", '"a'], "a quote is not closed"),
    ],
)
def test_wrong_lists_are_a_matter_of_usage(chosen, arguments, message):
    result = chosen(*arguments)
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())
