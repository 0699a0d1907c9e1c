"""The sink that all text passes through: what terminals and log readers obey is shown instead."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.results import list_of_findings
from reconciler.model.finding import Finding, Severity
from reconciler.render.sink import Sink, WorkflowCommands
from tests.support.hostile_names import HOSTILE, NAMES
from tests.support.log_readers import commands_in

MARKERS = (
    "::error::x",
    "##[group]x",
    "##vso[task.complete]x",
    "##teamcity[x]",
    "section_start:1:a",
    "#",
    "##",
    ":",
    "[",
    "]",
    "]",
)
TEXT = st.lists(st.sampled_from(MARKERS) | st.sampled_from([" ", "\t", "\n", "\u2003", "x", "\ufe0f", "\r\n"]) | NAMES).map(
    "".join
)


def through(*pieces: str, breaks: bool = True) -> str:
    behind = io.StringIO(newline="")
    sink = Sink(behind, breaks=breaks)
    for piece in pieces:
        assert sink.write(piece) == len(piece)
    return behind.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x\n", ":\\u003aerror::x\n"),
        ("ok\n \t::error::x\n", "ok\n \t:\\u003aerror::x\n"),
        ("a ##[group]x\n", "a ##\\u005bgroup]x\n"),
        ("###[group]x\n", "###\\u005bgroup]x\n"),
        ("##vso[task.complete]\n", "##vso\\u005btask.complete]\n"),
        ("x ##TeamCity[y]\n", "x ##TeamCity\\u005by]\n"),
        ("section_end:1:a\n", "section_end\\u003a1:a\n"),
        ("#\u00ad#\ufe0f[set-env]\n", "#\u00ad#\ufe0f\\u005bset-env]\n"),
        ("std::vector, a::b and ## heading [x]\n", "std::vector, a::b and ## heading [x]\n"),
    ],
)
def test_a_marker_is_broken_at_its_last_character(text: str, shown: str) -> None:
    assert through(text) == shown
    assert through(text, breaks=False) == text


@given(TEXT, st.data())
def test_no_reader_finds_a_command_however_the_text_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert commands_in(through(*pieces)) == []
    assert commands_in(through(text)) == []


@given(st.recursive(NAMES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner)))
def test_json_keeps_its_meaning(document: object) -> None:
    text = json.dumps(document, ensure_ascii=False)
    shown = through(text + "\n")
    assert json.loads(shown) == document
    assert commands_in(shown) == []


def test_annotations_are_the_only_lines_that_begin_with_a_command() -> None:
    made = list_of_findings("github", [Finding(id="x", severity=Severity.ERROR, message=name) for name in HOSTILE])
    assert isinstance(made, WorkflowCommands)
    lines = through(made).splitlines()
    assert lines
    assert all(line.startswith("::error ") and line.count("::") >= 2 for line in lines)
    assert commands_in(through(str(made))) == [], "the same text without its type"


@pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\rb", "a\x9b31mb", "\x1b]0;title\x07", "a\x08b", "\x7f"])
def test_a_terminal_is_given_no_control_character(text: str) -> None:
    shown = through(text, breaks=False)
    assert shown.isprintable()
    assert "\\u00" in shown


def test_line_ends_tabs_and_colours_pass() -> None:
    text = "\x1b[1;31mred\x1b[0m\ta\r\nb\n"
    assert through(text) == through(text, breaks=False) == text


def test_many_pieces_are_written_at_once() -> None:
    behind = io.StringIO()
    Sink(behind, breaks=True).writelines(iter(["::", "error::", "x\n"] * 1_000))
    assert commands_in(behind.getvalue()) == []
    assert behind.getvalue().count("\n") == 1_000


class Gone(io.StringIO):
    """A pipe whose reader went away."""

    written = 0

    def write(self, text: str, /) -> int:
        self.written += 1
        raise BrokenPipeError(32, "Broken pipe")


def test_what_a_reader_that_left_does_not_read_is_dropped_and_not_made() -> None:
    gone = Gone()
    sink = Sink(gone, breaks=True)
    endless = iter(lambda: "x\n", None)
    sink.writelines(endless)
    assert sink.write("more") == 4
    sink.flush()
    assert gone.written == 1


def test_a_command_that_writes_to_a_cluster_hears_that_its_reader_left() -> None:
    sink = Sink(Gone(), breaks=True)
    sink.needs_reader = True
    with pytest.raises(BrokenPipeError):
        sink.write("the plan\n")
