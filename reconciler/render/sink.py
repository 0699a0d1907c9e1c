r"""The one way out for text: what the command prints on stdout and stderr passes through a ``Sink``.

Names, notes, paths and ids come from strangers. A terminal obeys control characters in them. The log reader of a CI system obeys
commands in them: GitHub's runner reads ``::name::`` at the start of a line and ``##[name]`` anywhere, the agent of Azure
Pipelines ``##vso[...]``, TeamCity ``##teamcity[...]`` and GitLab ``section_start:`` anywhere. A sink shows control characters as
escapes everywhere, and breaks the markers of commands where a CI system reads the output.

A marker is broken at its last character, as JSON escapes it: ``##[group]`` becomes ``##\u005bgroup]``, so JSON stays JSON.

Sources: ``ActionCommand.cs`` of actions/runner, ``Command.cs`` of azure-pipelines-agent, the pages of TeamCity and GitLab.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

_IGNORED: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that print nothing. .NET, in which two of the readers are written, skips them when it searches for a marker."""

_GAP: Final = f"[{_IGNORED}]*"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OURS: Final = re.compile(r"\r\n|\x1b\[[0-9;]*m")
"""The controls that the command itself prints: line ends of CSV, and colours."""

_BRACKET: Final = re.compile(f"#{_GAP}#[A-Za-z0-9_{_IGNORED}-]*\\[")
_FOLD: Final = re.compile("(?:section_start|section_end|travis_fold|travis_time):")
_AT_START: Final = re.compile(rf"^(?:[^\S\n]|[{_IGNORED}])*:{_GAP}:", re.MULTILINE)

_KEPT: Final = 200
"""Characters of the current line that a sink remembers: the next piece may complete a marker that begins in them."""

_PIECES: Final = 1_000


class WorkflowCommands(str):
    """Lines that GitHub's runner is to obey: the only text that a sink lets begin a line with ``::``."""

    __slots__ = ()


class Sink(io.TextIOBase):
    """A text stream in front of another one. ``breaks``: also break the markers of commands to log readers.

    A reader that goes away, as ``head`` does, has read enough: the rest is dropped without an error, unless ``needs_reader``.
    """

    def __init__(self, stream: TextIO, *, breaks: bool) -> None:
        self._stream = stream
        self._breaks = breaks
        self._line = ""
        self._unread = False
        self._status = ""
        self._at_line_start = True
        self._lock = threading.RLock()
        self.needs_reader = False

    def write(self, text: str, /) -> int:
        """Write; the return value counts the characters given."""
        with self._lock:
            if self._status:
                self._erase_status()
            if text:
                self._at_line_start = text.endswith("\n")
            if not self._unread:
                shown = _CONTROL.sub(_escape, text)
                if self._breaks:
                    shown = self._broken(shown, obeyed=isinstance(text, WorkflowCommands))
                with self._reader():
                    self._stream.write(shown)
            return len(text)

    def show_status(self, text: str, *, columns: int) -> None:
        """Show one line that the next one, or the next text, takes the place of; only on a terminal, between whole lines.

        ``columns``: of the terminal. The line is cut before its end, since a wrapped one could not be erased.
        """
        from reconciler.render.terminal import fitting

        with self._lock:
            if not self._at_line_start:
                return
            self._erase_status()
            shown = _CONTROL.sub(_escape, text)
            shown = shown[: fitting(shown, columns - 1)]
            with self._reader():
                self._stream.write(shown)
                self._stream.flush()
            self._status = shown

    def clear_status(self) -> None:
        """Take the line of ``show_status`` away."""
        with self._lock:
            self._erase_status()
            self.flush()

    def _erase_status(self) -> None:
        if self._status:
            self._status = ""
            with self._reader():
                self._stream.write("\r\x1b[K")

    def writelines(self, lines: Iterable[str], /) -> None:  # type: ignore[override] # typeshed has one type for text and bytes
        """Write pieces, many at a time."""
        pieces = iter(lines)
        while not self._unread and (some := tuple(itertools.islice(pieces, _PIECES))):
            self.write("".join(some))

    def _broken(self, text: str, *, obeyed: bool) -> str:
        before = len(self._line)
        whole = _FOLD.sub(_break, _BRACKET.sub(_break, self._line + text))
        if not obeyed:
            whole = _AT_START.sub(_break, whole)
        self._line = _tail(whole)
        return whole[before:]

    def flush(self) -> None:
        """Flush the stream behind."""
        with self._reader():
            self._stream.flush()

    @contextlib.contextmanager
    def _reader(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            if self.needs_reader:
                raise
            self._unread = True

    def writable(self) -> bool:
        """Always."""
        return True

    def isatty(self) -> bool:
        """Whether the stream behind is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream behind."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override] # a plain attribute in typeshed, a property in CPython
        """The encoding of the stream behind."""
        return self._stream.encoding


def _tail(text: str) -> str:
    """Return the line that the next piece continues, shortened so that only a blank one still looks blank."""
    line = text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]
    if len(line) <= _KEPT:
        return line
    return f"x{line[-_KEPT:]}" if line.strip() else " "


def _break(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}\\u{ord(match[0][-1]):04x}"


def _escape(match: re.Match[str]) -> str:
    if _OURS.match(match.string, match.start()):
        return match[0]
    return f"\\u{ord(match[0]):04x}"
