"""The simple commands of a script, in order, each with whether it surely runs exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.importing.shell_words import Word, split

_OPENING: Final = frozenset({"if", "for", "while", "until", "case", "select"})
_ENDING: Final = frozenset({"fi", "done", "esac"})
_LISTS: Final = frozenset({"for", "case", "select"})
_BETWEEN: Final = frozenset({"then", "else", "elif", "do", "!"})
_NO_CONDITION: Final = frozenset({"cd", "pushd", "echo", "printf", "export", "set", "source", ".", "true", ":", "sleep", "mkdir"})
"""Commands whose success nobody asks for: what follows them after ``&&`` is meant to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The words of one command. ``conditional``: in a loop, a condition or a function, after a test, or after the end."""

    words: tuple[Word, ...]
    conditional: bool


def commands(script: str) -> Iterator[Command]:
    """Raises ``ShellSyntaxError``."""
    reader = _Reader()
    for word in (*split(script), Word(text="\n", line=0, column=0, operator=True)):
        if word.operator:
            yield from reader.end(word.text)
        else:
            reader.word(word)


class _Reader:
    """``groups`` are the open braces and parentheses, each with whether it surely runs, and what was tested before it.

    ``joined``: a line that ends now goes on in the next one.
    """

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.depth = 0
        self.groups: list[tuple[str, bool, bool]] = []
        self.function = False
        self.parameters = False
        self.tested = False
        self.joined = False
        self.ended = False

    def word(self, word: Word) -> None:
        self.joined = False
        if word.text == "{" and len(self.words) == 2 and self.words[0].text == "function":
            self.words.clear()
            self.function = True
            self.open("{")
        elif self.words or word.quoted or word.varies:
            self.words.append(word)
        elif word.text in _OPENING:
            self.depth += 1
            # What follows (a condition, a list of items) is a command of its own, or no command at all.
            if word.text in _LISTS:
                self.words.append(word)
        elif word.text in _ENDING:
            self.depth = max(0, self.depth - 1)
        elif word.text == "{":
            self.open("{")
        elif word.text == "}":
            self.close("{")
        elif word.text not in _BETWEEN:
            self.words.append(word)

    def open(self, kind: str) -> None:
        self.groups.append((kind, not (self.function or self.tested), self.tested))
        self.function = self.tested = False

    def close(self, kind: str) -> None:
        if self.groups and self.groups[-1][0] == kind:
            self.tested = self.groups.pop()[2]

    def end(self, operator: str) -> Iterator[Command]:
        words, self.words = self.words, []
        first = words[0].text if words else ""
        if first == "function" or (operator == "(" and len(words) == 1):
            self.function = True
            self.parameters = operator == "("
            return
        if words and first not in _LISTS:
            conditional = self.depth > 0 or not all(runs for _, runs, _ in self.groups) or self.tested or self.ended
            yield Command(words=tuple(words), conditional=conditional)
            self.ended = self.ended or (first in ("exit", "return") and not conditional)
        self.operator(operator, words)

    def operator(self, operator: str, words: list[Word]) -> None:
        if operator == "(":
            self.open("(")
        elif operator == ")" and self.parameters:
            self.parameters = False
        elif operator == ")":
            self.close("(")
        elif operator in ("||", "&&"):
            self.tested = self.tested or operator == "||" or not _goes_on(words)
            self.joined = True
        elif operator in (";", "&", ";;") or (operator == "\n" and not self.joined):
            self.tested = False


def _goes_on(words: list[Word]) -> bool:
    """True for a command that is no test of anything: the end of a group, another of Kafka's tools, a change of folder."""
    return not words or words[0].text in _NO_CONDITION or any(word.text.rpartition("/")[2].startswith("kafka-") for word in words)
