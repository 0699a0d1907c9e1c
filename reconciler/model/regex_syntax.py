r"""The regular expressions of selectors: Python's syntax without what cannot be matched in linear time, parsed into a tree.

There are literals, ``.``, classes, ``\d \w \s`` and their opposites, groups, ``|``, the quantifiers ``* + ? {m,n}`` (a lazy
form means the same, since the whole name must match), ``^`` and ``$``. There are no back-references, no look-around, no
possessive or atomic groups, no flags and no word boundaries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

LONGEST: Final = 1000
"""Characters of an expression."""
_DEEPEST: Final = 50


class PatternError(ValueError):
    """An expression that cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character: in one of the ranges or categories, or (``negated``) in none."""

    ranges: tuple[tuple[str, str], ...] = ()
    categories: tuple[str, ...] = ()
    negated: bool = False

    def has(self, char: str) -> bool:
        """True when the character is meant."""
        inside = any(low <= char <= high for low, high in self.ranges) or any(CATEGORIES[c](char) for c in self.categories)
        return inside is not self.negated


@dataclass(frozen=True, slots=True)
class Edge:
    """The beginning or the end of the name."""

    at_end: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``least`` to ``most`` times; ``None`` is without end."""

    item: Node
    least: int
    most: int | None


Node: TypeAlias = Chars | Edge | Sequence | Choice | Repeat

CATEGORIES: Final[Mapping[str, Callable[[str], bool]]] = {
    "d": str.isdecimal,
    "D": lambda c: not c.isdecimal(),
    "w": lambda c: c.isalnum() or c == "_",
    "W": lambda c: not (c.isalnum() or c == "_"),
    "s": str.isspace,
    "S": lambda c: not c.isspace(),
}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX_DIGITS: Final = {"x": 2, "u": 4, "U": 8}
_COUNT: Final = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_GROUP: Final = re.compile(r"\((?:\?:|\?P<[A-Za-z_][A-Za-z0-9_]*>)?")
_ANY: Final = Chars(ranges=(("\n", "\n"),), negated=True)


def parse(text: str) -> Node:
    """The tree of an expression. Raises ``PatternError``."""
    if len(text) > LONGEST:
        raise PatternError(f"it has {len(text)} characters; at most {LONGEST} are allowed")
    parser = _Parser(text)
    tree = parser.choice(depth=0)
    if parser.at < len(text):
        raise PatternError("a ) without its (")
    return tree


class _Parser:
    """Recursive descent; ``at`` is the place of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def choice(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise PatternError(f"groups are nested more than {_DEEPEST} deep")
        items = [self.sequence(depth)]
        while self.peek() == "|":
            self.take()
            items.append(self.sequence(depth))
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def sequence(self, depth: int) -> Node:
        items: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            items.append(self.repeated(self.atom(depth)))
        return Sequence(tuple(items))

    def repeated(self, item: Node) -> Node:
        counts = self.counts()
        if counts is None:
            return item
        if isinstance(item, Edge):
            raise PatternError("there is nothing to repeat before a quantifier")
        least, most = counts
        if most is not None and most < least:
            raise PatternError("a quantifier whose smallest number is above its largest")
        if self.peek() == "?":
            self.take()
        elif self.peek() == "+":
            raise PatternError("possessive quantifiers are not supported")
        if self.counts() is not None:
            raise PatternError("two quantifiers in a row; put the first into a group")
        return Repeat(item, least, most)

    def counts(self) -> tuple[int, int | None] | None:
        """The quantifier that begins here, which is taken; ``None`` when there is none."""
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.peek())
        if simple is not None:
            self.take()
            return simple
        match = _COUNT.match(self.text, self.at)
        if match is None or not (match[1] or match[2]):
            return None
        if len(match[1]) > 6 or len(match[3]) > 6:
            raise PatternError("a quantifier with a number that is too large")
        self.at = match.end()
        least = int(match[1] or "0")
        return (least, int(match[3]) if match[3] else None) if match[2] else (least, least)

    def atom(self, depth: int) -> Node:
        char = self.peek()
        if char == "(":
            return self.group(depth)
        if char in ("*", "+", "?") or (char == "{" and self.counts() is not None):
            raise PatternError("there is nothing to repeat before a quantifier")
        self.take()
        match char:
            case ".":
                return _ANY
            case "[":
                return self.char_class()
            case "^" | "$":
                return Edge(at_end=char == "$")
            case "\\":
                escaped = self.escape()
                return escaped if isinstance(escaped, Chars) else Chars(ranges=((escaped, escaped),))
        return Chars(ranges=((char, char),))

    def group(self, depth: int) -> Node:
        match = _GROUP.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        if self.peek() == "?":
            raise PatternError("look-around, flags, conditions and atomic groups are not supported")
        inner = self.choice(depth + 1)
        if self.take() != ")":
            raise PatternError("a ( without its )")
        return inner

    def escape(self, *, in_class: bool = False) -> str | Chars:
        """What a backslash and the characters after it mean; the backslash is already taken."""
        char = self.take()
        if char in CATEGORIES:
            return Chars(categories=(char,))
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _HEX_DIGITS:
            return self.code_point(_HEX_DIGITS[char])
        if in_class and char == "b":
            return "\b"
        if char == "" or (char.isascii() and char.isalnum()):
            raise PatternError(f"\\{char} is not supported" if char else "a backslash at the end")
        return char

    def code_point(self, digits: int) -> str:
        text = self.text[self.at : self.at + digits]
        self.at += digits
        if not re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", text) or int(text, 16) > 0x10FFFF:
            raise PatternError("an escape without the right number of hexadecimal digits")
        return chr(int(text, 16))

    def char_class(self) -> Chars:
        negated = self.peek() == "^"
        if negated:
            self.take()
        ranges: list[tuple[str, str]] = []
        categories: list[str] = []
        first = True
        while first or self.peek() != "]":
            first = False
            low = self.member()
            if isinstance(low, Chars):
                categories += low.categories
            else:
                ranges.append((low, self.high_end(low)))
        self.take()
        return Chars(ranges=tuple(ranges), categories=tuple(categories), negated=negated)

    def member(self) -> str | Chars:
        char = self.take()
        if char == "":
            raise PatternError("a [ without its ]")
        return self.escape(in_class=True) if char == "\\" else char

    def high_end(self, low: str) -> str:
        """The end of the range that begins with ``low``, which is ``low`` itself when there is no range."""
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return low
        self.take()
        high = self.member()
        if isinstance(high, Chars) or high < low:
            raise PatternError("a range in [ ] whose end is before its beginning, or a class")
        return high
