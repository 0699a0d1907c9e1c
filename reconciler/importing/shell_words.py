"""The words and operators of a shell script with their places, as POSIX (and bash, where people use it) splits them.

Nothing is expanded: a word with an expansion says so (``varies``), and its text is the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_OPERATORS: Final = ("<<<", "<<-", "&&", "||", ";;", "|&", "&>", "<<", ">>", ">&", "<&", ">|", ";", "&", "|", "(", ")", "<", ">")
_REDIRECTIONS: Final = frozenset({"<<<", "<<-", "&>", "<<", ">>", ">&", "<&", ">|", "<", ">"})
_CLOSING: Final = {"(": ")", "{": "}"}
_EXPANSION: Final = re.compile(r"\$[A-Za-z_0-9@*#?$!({'\"-]")
_VARIABLE: Final = re.compile(r"\$(?:[A-Za-z_][A-Za-z_0-9]*|.)")
_CONTINUED: Final = re.compile(r"\\\r?\n")
_BRACES: Final = re.compile(r"\{[^}]*\}")


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
        found = next((one for one in _OPERATORS if self.script.startswith(one, self.at)), None)
        if found is None:
            self.word()
        elif found in _REDIRECTIONS:
            self.redirected = found
            self.at += len(found)
        else:
            self.words.append(self.made(found, operator=True))
            self.at += len(found)

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
