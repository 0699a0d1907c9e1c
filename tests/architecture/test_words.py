"""The lint of words finds the phrases that it counts, and reads neither code nor docstrings."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tools import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def words():
    return load_script("tools/words.py")


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("the plan tells which values change", ["told"]),
        ("this quota holds for Nobody", ["holds", "somebody"]),
        ("a guard is no error; accept it by name", ["is-no", "semicolon"]),
        ("it did not answer", ["no-subject"]),
        (" ".join(["word"] * 26) + ".", ["long-sentence"]),
        (" ".join(["word"] * 25) + ". " + " ".join(["word"] * 25), []),
        ("a bucket of its own, a token bucket of 3 s", ["quota-group"]),
        ("5 charged requests of the client id", ["client-id", "counted"]),
        ("judged from sums of whole seconds, changed behind the manifests' back", ["outside-git", "per-second-totals"]),
        ("bucket=name key *limits charged", []),
        ("The plan changes one quota. The threshold is 50 %.", []),
    ],
)
def test_each_phrase_is_counted_under_its_rule(words, text, rules):
    assert sorted(words.broken(text, message=True)) == sorted(rules)


def test_code_in_a_page_is_not_read(words):
    page = "It tells `who said it`.\n\n```sh\necho somebody holds it\n```\n\n| a | says |\n|---|---|\n"

    assert list(words.prose(page)) == [(1, "It tells code."), (7, "a"), (7, "says")]


def test_a_docstring_is_no_message_and_values_count_as_one_word(words):
    source = 'def f(x):\n    """It tells nobody anything."""\n    return f"broker {x + 1} did not answer", "two words"\n'

    assert list(words.messages(list(ast.walk(ast.parse(source))))) == [(3, "broker X did not answer")]
    assert list(words.docstrings(list(ast.walk(ast.parse(source))))) == [(2, "It tells nobody anything.")]


def test_names_that_say_nothing_are_counted_where_they_are_bound(words):
    source = "def f(one, *, broker):\n    found = [said for said in broker]\n    return one + found\n"

    assert sorted(words.pronouns(list(ast.walk(ast.parse(source))))) == [(1, "one"), (2, "found"), (2, "said")]


@pytest.mark.large
def test_no_phrase_is_above_its_budget():
    """Part of ``make lint``, and so of ``make test``, too."""
    done = subprocess.run([sys.executable, "tools/words.py"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")
