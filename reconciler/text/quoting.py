r"""Strangers' text quoted for people: entities, names, and words of messages; and lists of them that end in a number.

An entity stands as KIP-546 prints it, ``{user=<default>, client-id=my-client}``: one text for each entity, and one entity for
each text.

The rule, for names, entity types and quota keys alike. A default is ``<default>``. A text stands as it is when it consists of
ASCII letters, digits and ``_ . / : % ~ @ + -`` and does not begin with one of the last three; any other, the empty one and a
literal ``<default>`` included, stands in double quotes. Inside these, ``\"`` is a quote, ``\\`` a backslash, and ``\uXXXX`` or
``\UXXXXXXXX`` (hexadecimal) a character that does not print.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from reconciler.model import (
    DEFAULT,
    ClusterTotal,
    Entity,
    EntityName,
    GroupPart,
    Message,
    MessagePart,
    PartKind,
    Proportional,
    QuotaUnit,
    compose,
    display_name,
    escaped,
    join_messages,
)
from reconciler.text.amounts import amount

if TYPE_CHECKING:
    from reconciler.model import BucketVerdict

DEFAULT_TEXT: Final = "<default>"

_LONGEST: Final = 60
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:%~][A-Za-z0-9_./:%~@+-]*")


def entity_text(entity: Entity) -> str:
    """An entity as text for people, ``{user=alice, client-id=app}``, with types in canonical order and escaped names."""
    if len(entity.parts) == 1:
        entity_type, name = entity.parts[0]
        return f"{{{word(entity_type)}={name_text(name)}}}"
    return "{" + ", ".join(f"{word(entity_type)}={name_text(name)}" for entity_type, name in entity.parts) + "}"


def name_text(name: EntityName) -> str:
    """A name or ``<default>``."""
    return DEFAULT_TEXT if name is DEFAULT else word(name)


def word(text: str) -> str:
    """A name, an entity type or a quota key: as it is, or quoted."""
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    """A name in double quotes, escaped."""
    return '"' + escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def shown(text: str) -> str:
    """Text of a file for a message: quoted, escaped, and cut when it is long."""
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return f"'{escaped(cut)}'"


def shown_part(text: str) -> MessagePart:
    """Text of a file as a part of a message: quoted, escaped, and cut when it is long."""
    return MessagePart(kind=PartKind.NAME, text=shown(text))


def did_you_mean(word: str, known: Iterable[str]) -> Message:
    """``. Did you mean 'x'?`` for a near miss, else the choices."""
    choices = tuple(sorted(known))
    if suggestion := _suggestion(word, choices):
        return suggestion
    if not choices:
        return compose("")
    return compose(". Known: {choices}", choices=join_messages(Message([shown_part(choice)]) for choice in choices[:12]))


def near_miss(word: str, known: Iterable[str]) -> Message:
    """``. Did you mean 'x'?`` for a near miss, else nothing."""
    return _suggestion(word, tuple(sorted(known)))


@lru_cache(maxsize=1024)
def _suggestion(word: str, choices: tuple[str, ...]) -> Message:
    """Cached, because a slip of the keyboard is copied from entry to entry."""
    from difflib import get_close_matches

    for spelling in (word[:100], word[:100].lower()):
        close = get_close_matches(spelling, choices, n=1, cutoff=0.6)
        if close:
            return compose(". Did you mean {choice}?", choice=shown_part(close[0]))
    return compose("")


def count_of(number: int, singular: str, many: str | None = None) -> str:
    """``1 entity``, ``2,000 entities``; ``many`` is ``one`` with an s unless it is given."""
    return f"{number:,} {singular if number == 1 else many or f'{singular}s'}"


def all_changes(number: int) -> str:
    """``the change``, or ``all 3 changes``."""
    return "the change" if number == 1 else f"all {number:,} changes"


def list_some(texts: Sequence[str], most: int, *, between: str = ", ") -> str:
    """The first ``most`` texts, and how many more there are: ``a, b and 3 more``, or ``a; b; and 3 more``."""
    more = len(texts) - most
    end = " and" if between == ", " else f"{between}and"
    return f"{between.join(texts[:most])}{f'{end} {more:,} more' if more > 0 else ''}"


def list_entities(entities: Sequence[Entity], most: int = 3) -> Message:
    """The first ``most`` entities, and how many more there are."""
    more = len(entities) - most
    names = join_messages(entities[:most])
    return compose("{names} and {more} more", names=names, more=more) if more > 0 else names


def recommended_text(verdict: BucketVerdict) -> str | None:
    """``14 MiB/s``, ``keep 8 MiB/s`` where that is the present limit, ``at least 33 KiB/s`` where it is a lower bound."""
    if verdict.advice.recommended is None:
        return None
    before = "at least " if verdict.recorded.censored else "keep " if verdict.keeps_limit else ""
    return f"{before}{amount(verdict.key, verdict.advice.recommended)}"


def safe_text(verdict: BucketVerdict) -> str | None:
    """``6.25 MiB/s``, and ``at least 22 KiB/s`` where it is a lower bound."""
    if verdict.advice.safe is None:
        return None
    return f"{'at least ' if verdict.recorded.censored else ''}{amount(verdict.key, verdict.advice.safe)}"


def unit_text(key: str, unit: QuotaUnit) -> str:
    """``60 MiB/s in total, divided by 3 brokers``: what was declared, and how it is divided."""
    if isinstance(unit, ClusterTotal):
        return _total_text(key, unit)
    if isinstance(unit, Proportional):
        return _proportional_text(key, unit)
    return _group_text(key, unit)


def _total_text(key: str, unit: ClusterTotal) -> str:
    total = f"{amount(key, unit.value)} in total"
    most = None if unit.per_broker is None else amount(key, unit.per_broker)
    if unit.brokers is None:
        return total if most is None else f"{total}, and at most {most} on each broker (perBroker)"
    divided = f"{total}, divided by {count_of(unit.brokers, 'broker')}"
    if unit.per_broker is None:
        return divided
    part = amount(key, unit.value // unit.brokers)
    if unit.value // unit.brokers < unit.per_broker:
        return f"{divided}, which is less than {most} on each broker (perBroker)"
    return f"{most} on each broker (perBroker), which is not more than {divided} ({part})"


def _proportional_text(key: str, unit: Proportional) -> str:
    of = "all topics" if unit.topics is None else ", ".join(map(display_name, unit.topics))
    total = f"{amount(key, unit.value)} in proportion to the leaders of {of}"
    if unit.leaders is None or unit.partitions is None:
        return total
    return f"{total}, of which the broker with the most leads {unit.most} of {count_of(unit.partitions, 'partition')}"


def _group_text(key: str, unit: GroupPart) -> str:
    if unit.members is None:
        return f"{amount(key, unit.limit)} shared by all members of group {display_name(unit.group)}"
    parts = "the limit" if unit.members == 1 else f"1 of {unit.members} equal parts"
    return f"{parts} of group {display_name(unit.group)}, {amount(key, unit.limit)}"


def rebalance_text(key: str, before: float, after: float, *, brokers_before: int, brokers: int, absent: tuple[int, ...]) -> str:
    """``5 MiB/s more for each broker, because broker 4 left``. ``absent``: brokers that have replicas and are not up."""
    gone = brokers_before - brokers
    if gone > 0 and len(absent) == gone:
        names = ", ".join(map(str, absent))
        why = f"broker {names} left" if gone == 1 else f"brokers {names} left"
    else:
        why = f"{count_of(abs(gone), 'broker')} {'left' if gone > 0 else 'joined'}"
    return f"{amount(key, abs(after - before))} {'more' if after > before else 'less'} for each broker, because {why}"
