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


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The words of one command. ``conditional``: in a loop, a condition or a function, or after ``||``."""

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
    def __init__(self) -> None:
        self.words: list[Word] = []
        self.depth = 0
        self.braces: list[bool] = []
        self.function = False
        self.alternative = False
        self.opening: list[Word] = []

    def word(self, word: Word) -> None:
        if word.text == "{" and len(self.words) == 2 and self.words[0].text == "function":
            self.words.clear()
            self.braces.append(True)
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
            self.braces.append(self.function)
            self.function = False
        elif word.text == "}":
            if self.braces:
                self.braces.pop()
        elif word.text not in _BETWEEN:
            self.words.append(word)

    def end(self, operator: str) -> Iterator[Command]:
        words, self.words = self.words, []
        first = words[0].text if words else ""
        if first == "function" or (operator == "(" and len(words) == 1):
            self.function = True
        elif words and first not in _LISTS:
            conditional = self.depth > 0 or any(self.braces) or self.alternative
            yield Command(words=tuple(words), conditional=conditional)
        if operator in ("||", "\n", ";"):
            self.alternative = operator == "||"
