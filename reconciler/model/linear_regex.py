"""Regular expressions that are matched in linear time, so that none of a manifest can hang a run.

Python's own engine goes back and forth: ``(a+)+b`` or ``.*.*.*x`` against one long name can take hours, and no check of the
expression finds all that do. Here an expression becomes a set of states (Thompson, 1968); every character of a name is looked at
once, and the sets that were met are remembered.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from reconciler.model.regex_syntax import Chars, Choice, Edge, Node, PatternError, Repeat, Sequence, parse

_MOST_STATES: Final = 1000

_States: TypeAlias = frozenset[int]


class _Met:
    """A set of states that was met: whether a name may end here, and what follows each character that was seen here."""

    __slots__ = ("after", "ends", "states")

    def __init__(self, states: _States, *, ends: bool) -> None:
        self.states = states
        self.ends = ends
        self.after: dict[str, _Met] = {}


class LinearPattern:
    """One expression, which must match whole names."""

    def __init__(self, text: str, *, remember: int = 50_000) -> None:
        """``remember``: steps that are kept. Raises ``PatternError`` for what cannot be used, or would need too many states."""
        tree = parse(text)
        if _size(tree) > _MOST_STATES:
            raise PatternError(f"its repetitions come to more than {_MOST_STATES} states; use fewer, or smaller numbers")
        self._chars: list[Chars | Edge | None] = []
        self._next: list[tuple[int, ...]] = []
        self._done = self._state(None, ())
        first = self._build(tree, self._done)
        self._start = (first,)
        self._most = remember
        self._matches_nothing = self._done in self._closed(self._start, at_start=True, at_end=True)
        self._forget()

    def matches(self, name: str) -> bool:
        """True when the whole name matches."""
        if not name:
            return self._matches_nothing
        met = self._first
        for char in name:
            following = met.after.get(char)
            if following is None:
                following = self._step(met, char)
            if not following.states:
                return False
            met = following
        return met.ends

    def _forget(self) -> None:
        self._steps = 0
        self._known: dict[_States, _Met] = {}
        self._first = self._met(self._closed(self._start, at_start=True))

    def _step(self, met: _Met, char: str) -> _Met:
        reached = [self._next[s][0] for s in met.states if isinstance(chars := self._chars[s], Chars) and chars.has(char)]
        following = self._met(self._closed(tuple(reached)))
        met.after[char] = following
        self._steps += 1
        if self._steps >= self._most:
            self._forget()
        return following

    def _met(self, states: _States) -> _Met:
        known = self._known.get(states)
        if known is None:
            ends = self._done in self._closed(tuple(states), at_end=True)
            known = self._known[states] = _Met(states, ends=ends)
        return known

    def _closed(self, states: tuple[int, ...], *, at_start: bool = False, at_end: bool = False) -> _States:
        """All states that are reached without a character."""
        seen: set[int] = set()
        pending = list(states)
        while pending:
            state = pending.pop()
            if state in seen:
                continue
            seen.add(state)
            what = self._chars[state]
            if what is None or (isinstance(what, Edge) and (at_end if what.at_end else at_start)):
                pending += self._next[state]
        return frozenset(seen)

    def _state(self, what: Chars | Edge | None, following: tuple[int, ...]) -> int:
        self._chars.append(what)
        self._next.append(following)
        return len(self._chars) - 1

    def _build(self, node: Node, end: int) -> int:
        """States for a node, from its last to its first; the first is returned."""
        match node:
            case Chars() | Edge():
                return self._state(node, (end,))
            case Sequence(items):
                for item in reversed(items):
                    end = self._build(item, end)
                return end
            case Choice(items):
                return self._state(None, tuple(self._build(item, end) for item in items))
            case Repeat(item, least, most):
                return self._repeat(item, least, most, end)

    def _repeat(self, item: Node, least: int, most: int | None, end: int) -> int:
        if most is None:
            loop = self._state(None, ())
            self._next[loop] = (self._build(item, loop), end)
            end = loop
        else:
            beyond = end
            for _ in range(most - least):
                end = self._state(None, (self._build(item, end), beyond))
        for _ in range(least):
            end = self._build(item, end)
        return end


def _size(node: Node) -> int:
    """How many states a node needs, before any is made."""
    match node:
        case Chars() | Edge():
            return 1
        case Sequence(items) | Choice(items):
            return 1 + sum(_size(item) for item in items)
        case Repeat(item, least, most):
            return 1 + (_size(item) + 1) * (least + 1 if most is None else most)


@lru_cache(maxsize=256)
def linear_pattern(text: str) -> LinearPattern:
    """The pattern of an expression, made once. Raises ``PatternError``."""
    return LinearPattern(text)
