"""Plain lines and a parser's events give the same nodes, with the same places."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.yaml import read_yaml
from reconciler.yaml.events import read_events

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.y*ml"))

words = st.sampled_from(
    [
        "a",
        "b",
        "key",
        "null",
        "true",
        "~",
        "12",
        "-1",
        "1e3",
        ".5",
        "0x1F",
        "12:30",
        "a:b",
        "10MiB",
        "x y",
        "...",
        "---",
        "a#b",
        "é",
    ]
)
quoted = st.sampled_from(['"a"', '"a\\nb"', "'it''s'", '"a: b # c"', "''", '""', "'"])
keys = st.sampled_from(["a", "b", "c", "client-id", "null", "<<", "true", "1", '"q"', "x y", "", "."])
scalars = words | quoted
pairs = st.lists(st.tuples(keys, scalars).map(": ".join), max_size=3).map(lambda parts: "{" + ", ".join(parts) + "}")
items = st.lists(scalars, max_size=3).map(lambda parts: "[" + ", ".join(parts) + "]")
values = scalars | pairs | items | st.sampled_from(["", "&x", "*x", "|", "{a: {b: c}}", "[a,b]", "{a: b,}"])
ends = st.sampled_from(["", "", "", "", " ", " # note", "# note", "\t", " #", "\r"])
contents = (
    st.tuples(keys, st.sampled_from([": ", ": ", ":", ":  "]), values).map("".join)
    | keys.map("{}:".format)
    | values
    | st.sampled_from(["", "#", "---", "--- a", "...", "- - a", "? a", "-"])
)
lines = st.tuples(st.integers(0, 4).map(lambda depth: " " * depth), st.sampled_from(["", "", "- ", "-   "]), contents, ends).map(
    "".join
)


@given(st.lists(lines, max_size=12).map("\n".join), st.sampled_from(["", "\n", "\n\n"]))
def test_every_text_reads_as_by_events(text: str, end: str) -> None:
    assert repr(read_yaml((text + end).encode())) == repr(read_events(text + end))


@st.composite
def nested(draw: st.DrawFn, depth: int = 0, column: int = 0) -> list[str]:
    """The lines of a list or a mapping with those in it, each further to the right than what it is in."""
    blanks, found = " " * column, []
    is_list = draw(st.booleans())
    for name in draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3)):
        start = "- " if is_list else f"{name}: "
        if depth < 3 and draw(st.booleans()):
            inner = draw(nested(depth=depth + 1, column=column + draw(st.integers(0 if not is_list else 1, 3))))
            found += [f"{blanks}- {inner[0].lstrip()}", *inner[1:]] if is_list else [f"{blanks}{name}:", *inner]
        else:
            found.append(f"{blanks}{start}{draw(values)}{draw(ends)}")
    return found


@given(nested().map("\n".join))
def test_every_nested_text_reads_as_by_events(text: str) -> None:
    assert repr(read_yaml(text.encode())) == repr(read_events(text))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_reads_as_by_events(path: Path) -> None:
    content = path.read_bytes()
    assert repr(read_yaml(content)) == repr(read_events(content.decode()))


def test_a_plain_manifest_is_read_without_a_parser(tmp_path: Path) -> None:
    text = """# Quotas of one team.
---
spec:
  quotas:
    - match: {user: "a b"}  # with quotes
      quotas:
        producer_byte_rate: 10MiB
    - match:
        user: [a, b]
"""
    program = (
        "import sys; from reconciler.yaml import read_yaml; read_yaml(sys.stdin.buffer.read()); print('yaml' in sys.modules)"
    )
    for given_text, is_loaded in ((text, "False"), (f"{text}&a: b", "True")):
        done = subprocess.run([sys.executable, "-c", program], input=given_text.encode(), capture_output=True, check=True)
        assert done.stdout.decode().strip() == is_loaded
