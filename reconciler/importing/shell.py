"""Shell scripts, as far as they can be read without running them: words, quotes, variables, and the commands among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_OPERATORS: Final = ("<<<", "<<-", "&&", "||", ";;", "|&", "&>", "<<", ">>", ">&", "<&", ">|", ";", "&", "|", "(", ")", "<", ">")
_REDIRECTIONS: Final = frozenset({"<<<", "<<-", "&>", "<<", ">>", ">&", "<&", ">|", "<", ">"})
_CLOSING: Final = {"(": ")", "{": "}"}
_EXPANSION: Final = re.compile(r"\$[A-Za-z_0-9@*#?$!({'\"-]")
_VARIABLE: Final = re.compile(r"\$(?:[A-Za-z_][A-Za-z_0-9]*|.)")
_CONTINUED: Final = re.compile(r"\\\r?\n")
_BRACES: Final = re.compile(r"\{[^}]*\}")

_OPENING: Final = frozenset({"if", "for", "while", "until", "case", "select"})
_ENDING: Final = frozenset({"fi", "done", "esac"})
_LISTS: Final = frozenset({"for", "case", "select"})
_BETWEEN: Final = frozenset({"then", "else", "elif", "do", "!"})
_NO_CONDITION: Final = frozenset({"cd", "pushd", "echo", "printf", "export", "set", "source", ".", "true", ":", "sleep", "mkdir"})
"""Commands whose success never matters: what follows them after ``&&`` is meant to run."""


class ShellSyntaxError(Exception):
    """A script that ends inside a quote or an expansion, with the place where that begins."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word without its quotes, or one operator (a line feed for the end of a line)."""

    text: str
    line: int
    column: int
    operator: bool = False
    varies: bool = False
    quoted: bool = False


def split(script: str) -> list[Word]:
    """All words and operators in order; comments and redirections with their targets are left out.

    The body of a here-document is one quoted word, as a command of its own.

    Raises ``ShellSyntaxError``.
    """
    return _Splitter(script).split()


class _Splitter:
    def __init__(self, script: str) -> None:
        self.script = script
        self.at = 0
        self.line = 1
        self.line_start = 0
        self.words: list[Word] = []
        self.documents: list[str] = []
        self.redirected: str | None = None

    def split(self) -> list[Word]:
        while self.at < len(self.script):
            self.step(self.script[self.at])
        return self.words

    def step(self, here: str) -> None:
        if here in " \t" or self.script.startswith("\r\n", self.at):
            self.at += 1
        elif continued := _CONTINUED.match(self.script, self.at):
            self.advance(len(continued[0]))
        elif here == "#":
            end = self.script.find("\n", self.at)
            self.at = len(self.script) if end < 0 else end
        elif here == "\n":
            self.words.append(self.made("\n", operator=True))
            self.advance(1)
            self.bodies()
        else:
            self.operator_or_word()

    def operator_or_word(self) -> None:
        operator = next((candidate for candidate in _OPERATORS if self.script.startswith(candidate, self.at)), None)
        if operator is None:
            self.word()
        elif operator in _REDIRECTIONS:
            self.redirected = operator
            self.at += len(operator)
        else:
            self.words.append(self.made(operator, operator=True))
            self.at += len(operator)

    def word(self) -> None:
        start = self.made("")
        text: list[str] = []
        bare: list[str] = []
        varies = quoted = False
        while self.at < len(self.script):
            here = self.script[self.at]
            if here in " \t\n;&|()<>" or self.script.startswith("\r\n", self.at):
                break
            if continued := _CONTINUED.match(self.script, self.at):
                self.advance(len(continued[0]))
            elif here == "\\":
                text.append(self.script[self.at + 1 : self.at + 2])
                quoted = True
                self.advance(2)
            elif here == "'":
                text.append(self.single())
                quoted = True
            elif here == '"':
                part, expands = self.double()
                text.append(part)
                quoted, varies = True, varies or expands
            elif here == "`" or _EXPANSION.match(self.script, self.at):
                text.append(self.expansion())
                varies = True
            else:
                text.append(here)
                bare.append(here)
                self.at += 1
        varies = varies or bool(_BRACES.search("".join(bare)))
        self.finish(Word(text="".join(text), line=start.line, column=start.column, varies=varies, quoted=quoted))

    def finish(self, word: Word) -> None:
        if self.redirected is not None:
            if self.redirected in ("<<", "<<-"):
                self.documents.append(word.text)
            self.redirected = None
        elif not (word.text.isdigit() and not word.quoted and self.script[self.at : self.at + 1] in ("<", ">")):
            self.words.append(word)

    def single(self) -> str:
        end = self.script.find("'", self.at + 1)
        if end < 0:
            raise ShellSyntaxError("this quote is never closed", self.line, self.column())
        part = self.script[self.at + 1 : end]
        self.advance(end + 1 - self.at)
        return part

    def double(self) -> tuple[str, bool]:
        line, column = self.line, self.column()
        text: list[str] = []
        expands = False
        self.at += 1
        while self.at < len(self.script):
            here = self.script[self.at]
            if here == '"':
                self.at += 1
                return "".join(text), expands
            if here == "\\" and self.script[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                escaped = self.script[self.at + 1]
                text.append("" if escaped == "\n" else escaped)
                self.advance(2)
            elif here == "`" or (here == "$" and re.match(r"\$[A-Za-z_0-9@*#?$!({-]", self.script[self.at : self.at + 2])):
                text.append(self.expansion())
                expands = True
            else:
                text.append(here)
                self.advance(1)
        raise ShellSyntaxError("this quote is never closed", line, column)

    def expansion(self) -> str:
        """The source of a variable, a command or an arithmetic expression; it only matters where it ends."""
        start, line, column = self.at, self.line, self.column()
        opening = self.script[self.at + 1 : self.at + 2]
        if self.script[self.at] == "`":
            end = self.script.find("`", self.at + 1)
        elif opening in _CLOSING:
            end = self.closing(self.at + 1, opening)
        elif opening in ("'", '"'):
            end = self.script.find(opening, self.at + 2)
        else:
            name = _VARIABLE.match(self.script, self.at)
            assert name is not None
            end = name.end() - 1
        if end < 0:
            raise ShellSyntaxError("this expansion is never closed", line, column)
        self.advance(end + 1 - start)
        return self.script[start : self.at]

    def closing(self, at: int, opening: str) -> int:
        depth = 0
        for place in range(at, len(self.script)):
            depth += (self.script[place] == opening) - (self.script[place] == _CLOSING[opening])
            if depth == 0:
                return place
        return -1

    def bodies(self) -> None:
        """Take the bodies of the here-documents that the last line opened."""
        for delimiter in self.documents:
            start = self.made("")
            lines: list[str] = []
            while self.at < len(self.script):
                end = self.script.find("\n", self.at)
                end = len(self.script) if end < 0 else end
                line = self.script[self.at : end]
                self.advance(min(end + 1, len(self.script)) - self.at)
                if line.lstrip("\t") == delimiter:
                    break
                lines.append(f"{line}\n")
            self.words.append(Word(text="".join(lines), line=start.line, column=1, quoted=True))
            self.words.append(self.made("\n", operator=True))
        self.documents.clear()

    def advance(self, count: int) -> None:
        for place in range(self.at, min(self.at + count, len(self.script))):
            if self.script[place] == "\n":
                self.line += 1
                self.line_start = place + 1
        self.at += count

    def column(self) -> int:
        return self.at - self.line_start + 1

    def made(self, text: str, *, operator: bool = False) -> Word:
        return Word(text=text, line=self.line, column=self.column(), operator=operator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The words of one command. ``conditional``: in a loop, a condition or a function, after a test, or after the end."""

    words: tuple[Word, ...]
    conditional: bool


def commands(script: str) -> Iterator[Command]:
    """Raises ``ShellSyntaxError``."""
    reader = _ShellReader()
    for word in (*split(script), Word(text="\n", line=0, column=0, operator=True)):
        if word.operator:
            yield from reader.end(word.text)
        else:
            reader.word(word)


class _ShellReader:
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
    """True for a command that tests nothing: the end of a group, another of Kafka's tools, a change of folder."""
    return not words or words[0].text in _NO_CONDITION or any(word.text.rpartition("/")[2].startswith("kafka-") for word in words)
