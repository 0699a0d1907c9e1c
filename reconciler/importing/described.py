"""What ``kafka-configs --describe`` prints about users, clients and addresses, by any Kafka since 0.10.1.

``Quota configs for user-principal 'a', client-id 'b' are producer_byte_rate=1024.0`` since 2.6, ``Configs for ...`` before.
Names are printed as they are, so a name with quotes can make a line that reads in two ways; such a line is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.formats import shown
from reconciler.importing.found import Gatherer
from reconciler.importing.quota_values import read_value
from reconciler.model import DEFAULT, Entity, EntityName, Span

_STARTS: Final = ("Quota configs for ", "Configs for ")
_OF_QUOTAS: Final = ("user-principal", "client-id", "ip ", "the default ", "default ")
_SEEMS_DESCRIBED: Final = re.compile(r"Quota configs for |Configs for (?:the )?(?:default|user-principal|client-id|ip) ")
_SCRAM: Final = re.compile(r"SCRAM credential configs for user-principal ")
_CREDENTIAL_FIELDS: Final = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512", "salt", "stored_key", "server_key", "iterations"})
"""What clusters in ZooKeeper show beside quotas."""

_PART: Final = {"user-principal": "user", "client-id": "client-id", "ip": "ip"}
_WORDS: Final = "|".join(_PART)
_SEPARATOR: Final = re.compile(
    r", (?=(?:(?:the )?default (?:user-principal|client-id|ip)$)|(?:(?:user-principal|client-id|ip) '))"
)
_NAMED: Final = re.compile(rf"(?P<type>{_WORDS}) '(?P<name>.*)'", re.DOTALL)
_DEFAULTED: Final = re.compile(rf"(?:the )?default (?P<type>{_WORDS})")


def is_description(text: str) -> bool:
    """True when a file has a line as ``--describe`` prints it; it is then no script."""
    return any(_split(line) or _SCRAM.match(line) for line in text.split("\n"))


def _split(line: str) -> tuple[str, str] | None:
    """The entity and the keys of a line about quotas. Only a name can hold the word ``are``, so the last one is the verb."""
    line = line.strip()
    start = next((one for one in _STARTS if line.startswith(one)), None)
    if start is None:
        return None
    entity, verb, keys = line[len(start) :].rpartition(" are")
    if not verb or keys[:1] not in ("", " ") or not entity.startswith(_OF_QUOTAS):
        return None
    return entity, keys


def read_description(text: str, out: Gatherer) -> None:
    """Every described entity; other lines are passed over, but for those that seem to be cut or to hold commands."""
    seen: dict[Entity, tuple[dict[str, float], Span]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        span = out.at(number)
        parts = _split(line)
        if parts is None:
            _other_line(line, span, out)
            continue
        entities = list(_readings(parts[0]))
        if len(entities) != 1:
            how = "reads in two ways" if entities else "names no entity that can have a quota"
            out.refuse("import-ambiguous", f"{shown(parts[0])} {how}; write its manifest by hand", span)
            continue
        quotas = _quotas(parts[1], entities[0], span, out)
        if quotas is None:
            continue
        earlier = seen.get(entities[0])
        if earlier is not None and earlier[0] == quotas:
            continue
        seen[entities[0]] = (quotas, span)
        out.add(entities[0], quotas, span)


def _other_line(line: str, span: Span, out: Gatherer) -> None:
    if _SCRAM.match(line):
        out.refuse("import-left-out", "credentials are left out: they are no quotas", span)
    elif "--add-config" in line or "--delete-config" in line:
        out.refuse("import-ambiguous", "a command between lines that --describe printed: import the two by themselves", span)
    elif _SEEMS_DESCRIBED.search(line):
        out.refuse(
            "import-syntax",
            f"this line is cut, has something before it, or a name in it is broken over lines: {shown(line)}",
            span,
        )


def _readings(text: str) -> Iterator[Entity]:
    """Every entity that is printed as this text, taking ``', client-id '`` for the joint of a pair, wherever it stands."""
    joints = list(_SEPARATOR.finditer(text))
    splits: list[tuple[str, ...]] = [(text[: at.start()], text[at.end() :]) for at in joints]
    for parts in splits or [(text,)]:
        names: dict[str, EntityName] = {}
        for part in parts:
            defaulted, named = _DEFAULTED.fullmatch(part), _NAMED.fullmatch(part)
            if defaulted:
                names[_PART[defaulted["type"]]] = DEFAULT
            elif named and named["name"]:
                names[_PART[named["type"]]] = named["name"]
        if len(names) == len(parts) and _in_order(names):
            yield Entity.of(names)


def _in_order(names: dict[str, EntityName]) -> bool:
    return list(names) in (["user"], ["client-id"], ["ip"], ["user", "client-id"])


def _quotas(text: str, entity: Entity, span: Span, out: Gatherer) -> dict[str, float] | None:
    quotas: dict[str, float] = {}
    for part in (one.strip() for one in text.split(",")):
        key, _, value = part.partition("=")
        if not part or key in _CREDENTIAL_FIELDS:
            continue
        number = read_value(out, entity, key, value, span)
        if number is None:
            return None
        quotas[key] = number
    return quotas
