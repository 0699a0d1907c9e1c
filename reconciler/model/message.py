"""A sentence for the user, built from typed parts: each output styles an entity, an amount or a flag in its own way."""

from __future__ import annotations

import enum
import string
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self, TypeAlias

from reconciler.model.entity import Entity, escaped
from reconciler.model.finding import Span


class PartKind(enum.StrEnum):
    """What a part of a message is."""

    TEXT = "text"
    """Words of this tool."""
    ENTITY = "entity"
    KEY = "key"
    """A quota key."""
    AMOUNT = "amount"
    """A number with its unit. It never breaks across lines."""
    PLACE = "place"
    """``file:line:column``."""
    FLAG = "flag"
    """What a user types: an option, a command, a field of a manifest."""
    NAME = "name"
    """Any other name: a guard, a cluster, a group. Or words of others, such as a broker's error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """A run of text of one kind. ``text`` is for people: it may still have characters that do not print.

    ``value``: the number of an amount, in the unit of its key. ``span``: the place of a ``PLACE``.
    """

    kind: PartKind
    """What the text is: words of the tool, an entity, a quota key, a number with its unit, a place in a file, an option or
    command to type, or another name.
    """
    text: str
    """The part as people read it."""
    value: float | None = None
    """The exact number of an amount, in the unit of its key."""
    span: Span | None = None


Filling: TypeAlias = "str | int | Entity | Span | MessagePart | Message"
"""What fills a field of a template. A plain ``str`` is words of this tool. A name of others must be a part."""

_FIELDS: Final = string.Formatter()


class Message(str):
    """The whole sentence as a string, and its parts in order. Operations of ``str`` other than ``+`` forget the parts."""

    __slots__ = ("parts",)

    parts: tuple[MessagePart, ...]

    def __new__(cls, parts: Iterable[MessagePart]) -> Self:
        """Neighbouring runs of text become one. Empty ones are dropped."""
        whole: list[MessagePart] = []
        for part in parts:
            if whole and part.kind is PartKind.TEXT is whole[-1].kind:
                whole[-1] = MessagePart(kind=PartKind.TEXT, text=whole[-1].text + part.text)
            elif part.text:
                whole.append(part)
        self = super().__new__(cls, "".join(part.text for part in whole))
        self.parts = tuple(whole)
        return self

    def __add__(self, other: str) -> Message:
        """Both, one after the other."""
        return Message((*self.parts, *parts_of(other)))

    def __radd__(self, other: str) -> Message:
        """Text of this tool, then this."""
        return Message((*parts_of(other), *self.parts))

    def __reduce__(self) -> tuple[type[Message], tuple[tuple[MessagePart, ...]]]:
        """Return the parts, for copies and other processes."""
        return Message, (self.parts,)


def compose(template: str, /, **fillings: Filling) -> Message:
    """``compose("{entity} gets {limit}", entity=entity, limit=amount_part(...))``.

    Raises ``KeyError`` for a field without a filling. Braces are doubled as in ``str.format``. Conversions and formats are not
    supported.
    """
    parts: list[MessagePart] = []
    for literal, field in _fields(template):
        parts.append(MessagePart(kind=PartKind.TEXT, text=literal))
        if field is not None:
            parts += _parts_of_filling(fillings[field])
    return Message(parts)


def parts_of(text: str) -> tuple[MessagePart, ...]:
    """The parts of a message. A plain string is one part of text."""
    return text.parts if isinstance(text, Message) else (MessagePart(kind=PartKind.TEXT, text=text),) if text else ()


def join_messages(texts: Iterable[str | Entity], between: str = ", ") -> Message:
    """One message of several texts and entities, with ``between`` as the separator."""
    parts: list[MessagePart] = []
    for number, text in enumerate(texts):
        if number:
            parts.append(MessagePart(kind=PartKind.TEXT, text=between))
        parts += _parts_of_filling(text)
    return Message(parts)


def name_part(text: str) -> MessagePart:
    """A name, or words of others, escaped for one line."""
    return MessagePart(kind=PartKind.NAME, text=escaped(text))


def key_part(key: str) -> MessagePart:
    """A quota key, escaped for one line."""
    return MessagePart(kind=PartKind.KEY, text=escaped(key))


def flag_part(text: str) -> MessagePart:
    """Return a part that a user types: ``--accept prune``, ``spec.accept``."""
    return MessagePart(kind=PartKind.FLAG, text=text)


@lru_cache(maxsize=512)
def _fields(template: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((literal, field) for literal, field, _, _ in _FIELDS.parse(template))


def _parts_of_filling(filling: Filling) -> tuple[MessagePart, ...]:
    match filling:
        case MessagePart():
            return (filling,)
        case Message():
            return filling.parts
        case Entity():
            return (MessagePart(kind=PartKind.ENTITY, text=str(filling)),)
        case Span():
            return (MessagePart(kind=PartKind.PLACE, text=str(filling), span=filling),)
        case int():
            return (MessagePart(kind=PartKind.TEXT, text=f"{filling:,}"),)
    return (MessagePart(kind=PartKind.TEXT, text=filling),)
