"""Options that select entities: those of KIP-546's tool, and ``--name`` for any name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.cli.declaration import option
from reconciler.errors import UsageError
from reconciler.model import DEFAULT, Entity, EntityName, EntityType, MatchKind, Selector, TypeMatch
from reconciler.resolution import LONGEST_STRING
from reconciler.text import near_miss, shown

_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)
_LITERAL_DEFAULT: Final = "<default>"
_UNESCAPED_COMMA: Final = re.compile(r"(?<!\\),")

_Part = tuple[str, str, TypeMatch]
"""The option as typed, the entity type, and what is asked of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions:
    """``--name``, ``--names`` and ``--defaults``: together one entity."""

    entity_name: tuple[str, ...] = option(
        "--name",
        section="Entity",
        metavar="TYPE=NAME",
        help="set one type and its name: everything after the first '=', commas included (repeatable)",
    )
    entity_names: tuple[str, ...] = option(
        "--names",
        section="Entity",
        metavar="TYPE=NAME,...",
        help="set several types and names without commas, where '<default>' is an ordinary name",
    )
    entity_defaults: tuple[str, ...] = option(
        "--defaults", section="Entity", metavar="TYPE,...", help="take the default entity of these types"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions(EntityOptions):
    """Also ``--any``, ``--named``, ``--prefix`` and ``--strict``: together a filter."""

    entity_any: tuple[str, ...] = option(
        "--any",
        section="Entity",
        metavar="TYPE,...",
        help="match any name of these types, the default included (Kafka's match type 2)",
    )
    entity_named: tuple[str, ...] = option(
        "--named", section="Entity", metavar="TYPE,...", help="match any name of these types except the default"
    )
    entity_prefix: tuple[str, ...] = option(
        "--prefix",
        section="Entity",
        metavar="TYPE=PREFIX",
        help="match names with this prefix, never the default: everything after the first '=' (repeatable)",
    )
    entity_strict: bool = option(
        "--strict", section="Entity", help="match entities without any other type (alone it matches nothing, as in Kafka)"
    )


def entity_of(args: EntityOptions, *, may_be_empty: Collection[str] = ()) -> Entity | None:
    """The one entity that ``EntityOptions`` name; ``None`` when none of them was given.

    ``may_be_empty``: types whose name may be empty (a client may send no client id, but no quota can be set for that). Raises
    ``UsageError`` for an unknown type, one type twice, an empty name, a name that no request can have, and an ip beside another
    type.
    """
    names: dict[str, EntityName] = {}
    for _, entity_type, wanted in _checked(_exact_parts(args), may_be_empty):
        names[entity_type] = DEFAULT if wanted.kind is MatchKind.DEFAULT else wanted.text
    return Entity.of(names) if names else None


def selector_of(args: FilterOptions) -> Selector:
    """The filter of all options here; without any it selects everything, and nothing when strict. Raises ``UsageError``."""
    parts = _checked((*_exact_parts(args), *_filter_parts(args)), ())
    return Selector(types=tuple((entity_type, wanted) for _, entity_type, wanted in parts), strict=args.entity_strict)


def literal_default_warnings(args: EntityOptions) -> Iterator[str]:
    """A sentence for each name ``<default>``: it is an ordinary name, and most likely not what was meant."""
    for _, entity_type, wanted in _exact_parts(args):
        if wanted.kind is MatchKind.NAME and wanted.text == _LITERAL_DEFAULT:
            yield _literal_default(entity_type, f"--defaults {entity_type}")


def default_in_text_warnings(entities: Iterable[Entity]) -> Iterator[str]:
    """The same for entities of ``entity_in_text``."""
    for entity in entities:
        for entity_type, name in entity.parts:
            if name == _LITERAL_DEFAULT:
                yield _literal_default(entity_type, f"written as {entity_type} alone, without a name")


def _literal_default(entity_type: str, instead: str) -> str:
    return f"'{_LITERAL_DEFAULT}' is taken as the literal name of a {entity_type}. The default {entity_type} is {instead}"


def entity_in_text(option: str, text: str) -> Entity:
    """The entity of ``TYPE=NAME,...`` in an option's value; a type alone is its default. A backslash precedes a name's comma.

    Raises ``UsageError`` as ``entity_of``.
    """
    parts = _checked(_parts_in_text(option, text), ())
    return Entity.of({each: DEFAULT if wanted.kind is MatchKind.DEFAULT else wanted.text for _, each, wanted in parts})


def _parts_in_text(option: str, text: str) -> Iterator[_Part]:
    for part in _UNESCAPED_COMMA.split(text):
        entity_type, equals, name = part.partition("=")
        if entity_type not in _TYPES:
            near = near_miss(entity_type, _TYPES)
            raise UsageError(
                f"{option}: {shown(entity_type)} is not an entity type. The types are {', '.join(_TYPES)}, and a comma in a "
                f"name is written \\,{near}"
            )
        if equals and not name:
            raise UsageError(f"{option}: the name of the {entity_type} is empty. Write {entity_type} alone for the default")
        kind = MatchKind.NAME if equals else MatchKind.DEFAULT
        yield (f"{option} {part}", entity_type, TypeMatch(kind=kind, text=name.replace("\\,", ",")))


def _exact_parts(args: EntityOptions) -> Iterator[_Part]:
    for text in args.entity_name:
        yield _pair("--name", text, MatchKind.NAME)
    for text in args.entity_names:
        for pair in text.split(","):
            yield _pair("--names", pair, MatchKind.NAME)
    yield from _bare("--defaults", args.entity_defaults, MatchKind.DEFAULT)


def _filter_parts(args: FilterOptions) -> Iterator[_Part]:
    yield from _bare("--any", args.entity_any, MatchKind.ANY)
    yield from _bare("--named", args.entity_named, MatchKind.NAMED)
    for text in args.entity_prefix:
        yield _pair("--prefix", text, MatchKind.PREFIX)


def _pair(option: str, text: str, kind: MatchKind) -> _Part:
    entity_type, equals, name = text.partition("=")
    if not equals:
        msg = f"{option} takes TYPE={'PREFIX' if kind is MatchKind.PREFIX else 'NAME'}, not {shown(text)}"
        if option == "--names":
            msg += ". A name with a comma in it is given by --name TYPE=NAME"
        raise UsageError(msg)
    _require_type(option, entity_type)
    return (f"{option} {text}", entity_type, TypeMatch(kind=kind, text=name))


def _bare(option: str, texts: Iterable[str], kind: MatchKind) -> Iterator[_Part]:
    for text in texts:
        for entity_type in text.split(","):
            if "=" in entity_type:
                raise UsageError(f"{option} takes entity types without names, not {shown(entity_type)}")
            _require_type(option, entity_type)
            yield (f"{option} {entity_type}", entity_type, TypeMatch(kind=kind))


def _require_type(option: str, entity_type: str) -> None:
    if entity_type in _TYPES:
        return
    near = near_miss(entity_type, _TYPES)
    comma = ". Give a name with a comma by --name TYPE=NAME" if option == "--names" else ""
    raise UsageError(f"{option}: {shown(entity_type)} is not an entity type. The types are {', '.join(_TYPES)}{near}{comma}")


def _checked(parts: Iterable[_Part], may_be_empty: Collection[str]) -> tuple[_Part, ...]:
    by_type: dict[str, _Part] = {}
    for part in parts:
        option, entity_type, wanted = part
        if entity_type in by_type:
            first = by_type[entity_type][0]
            raise UsageError(f"{shown(first)} and {shown(option)} both name the {entity_type}. An entity has one name a type")
        _require_name(part, may_be_empty)
        by_type[entity_type] = (option, entity_type, wanted)
    if EntityType.IP.value in by_type and len(by_type) > 1:
        raise UsageError("an ip cannot be combined with a user or a client-id: Kafka has no such entities")
    return tuple(by_type.values())


def _require_name(part: _Part, may_be_empty: Collection[str]) -> None:
    option, entity_type, wanted = part
    if wanted.kind is MatchKind.PREFIX and not wanted.text:
        raise UsageError(f"an empty prefix matches every name: write --named {entity_type}, or --any {entity_type}")
    if wanted.kind is MatchKind.NAME and not wanted.text and entity_type not in may_be_empty:
        raise UsageError(f"the name of the {entity_type} is empty, which no entity's is. The default is --defaults {entity_type}")
    try:
        size = len(wanted.text.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{shown(option)} is not UTF-8 text, and Kafka's names are") from None
    if size > LONGEST_STRING:
        raise UsageError(f"{shown(option)} has {size} bytes. Kafka's protocol takes at most {LONGEST_STRING}")


SET: Final = "--set"
_FORM: Final = "ENTITY:KEY=VALUE, such as user=alice:producer_byte_rate=5MiB"


SETTINGS: Final = option(
    SET,
    section="Changes",
    metavar="ENTITY:KEY=VALUE",
    help="judge this quota, on top of those of PATH (repeatable). ENTITY is TYPE=NAME,... as in --names, and a TYPE alone is its "
    "default, such as user=alice,client-id:producer_byte_rate=5MiB. In a name, write \\, for a comma. Without PATH, it changes "
    "the quotas of --current or --bootstrap-server",
)


def parse_settings(texts: Sequence[str]) -> dict[Entity, Mapping[str, float]]:
    """The values by entity and key. Raises ``UsageError`` for another form, a bad entity, key or value, and one set twice."""
    from reconciler.workflows import make_alter_request

    values: dict[Entity, dict[str, str]] = {}
    for text in texts:
        entity, key, value = _setting(text)
        quotas = values.setdefault(entity, {})
        if key in quotas:
            raise UsageError(f"{SET} sets {shown(key)} of {entity} twice. Keep one of the two")
        quotas[key] = value
    settings = {}
    for entity, quotas in values.items():
        try:
            settings[entity] = make_alter_request(entity, add=quotas).add
        except UsageError as error:
            raise UsageError(f"{SET} of {entity}: {error}") from None
    return settings


def _setting(text: str) -> tuple[Entity, str, str]:
    # Neither a key nor a value has a colon, and a name may.
    place, colon, setting = text.rpartition(":")
    key, equals, value = setting.partition("=")
    if not colon or not equals:
        raise UsageError(f"{SET} takes {_FORM}, not {shown(text)}")
    return entity_in_text(SET, place), key, value
