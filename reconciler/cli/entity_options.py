"""Options that select entities: those of KIP-546's tool, and ``--name`` for any name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.cli import output
from reconciler.cli.declaration import option
from reconciler.errors import UsageError
from reconciler.model import DEFAULT, Entity, EntityName, EntityType, MatchKind, Selector, TypeMatch
from reconciler.resolution import LONGEST_STRING
from reconciler.text import near_miss, shown

_TYPES: Final = tuple(entity_type.value for entity_type in EntityType)
_LITERAL_DEFAULT: Final = "<default>"
_UNESCAPED_COMMA: Final = re.compile(r"(?<!\\),")
SET: Final = "--set"
_COMMAS: Final = {"--names": ". Give a name with a comma by --name TYPE=NAME", SET: ". A comma in a name is written \\,"}

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
    return _entity(_checked(_exact_parts(args), may_be_empty))


def _entity(parts: Iterable[_Part]) -> Entity | None:
    names: dict[str, EntityName] = {}
    for _, entity_type, wanted in parts:
        names[entity_type] = DEFAULT if wanted.kind is MatchKind.DEFAULT else wanted.text
    return Entity.of(names) if names else None


def selector_of(args: FilterOptions) -> Selector:
    """The filter of all options here; without any it selects everything, and nothing when strict. Raises ``UsageError``."""
    parts = (
        *_exact_parts(args),
        *_bare("--any", args.entity_any, MatchKind.ANY),
        *_bare("--named", args.entity_named, MatchKind.NAMED),
        *_pairs("--prefix", args.entity_prefix, MatchKind.PREFIX),
    )
    types = tuple((entity_type, wanted) for _, entity_type, wanted in _checked(parts, ()))
    return Selector(types=types, strict=args.entity_strict)


def literal_default_warnings(args: EntityOptions) -> Iterator[str]:
    """A sentence for each name ``<default>``: it is an ordinary name, and most likely not what was meant."""
    entity = _entity(_exact_parts(args))
    return _literal_defaults(entity, "--defaults {}") if entity is not None else iter(())


def _literal_defaults(entity: Entity, instead: str) -> Iterator[str]:
    for kind, name in entity.parts:
        if name == _LITERAL_DEFAULT:
            yield f"'{name}' is taken as the literal name of a {kind}. The default {kind} is {instead.format(kind)}"


def _exact_parts(args: EntityOptions) -> Iterator[_Part]:
    yield from _pairs("--name", args.entity_name, MatchKind.NAME)
    yield from _pairs("--names", (pair for text in args.entity_names for pair in text.split(",")), MatchKind.NAME)
    yield from _bare("--defaults", args.entity_defaults, MatchKind.DEFAULT)


def _pairs(option: str, texts: Iterable[str], kind: MatchKind) -> Iterator[_Part]:
    for text in texts:
        entity_type, equals, name = text.partition("=")
        if not equals:
            words = f"{option} takes TYPE={'PREFIX' if kind is MatchKind.PREFIX else 'NAME'}, not {shown(text)}"
            raise UsageError(words + _COMMAS.get(option, ""))
        _require_type(option, entity_type)
        yield (f"{option} {text}", entity_type, TypeMatch(kind=kind, text=name))


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
    raise UsageError(
        f"{option}: {shown(entity_type)} is not an entity type. The types are {', '.join(_TYPES)}{near}{_COMMAS.get(option, '')}"
    )


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
        default = f"{entity_type} alone in {SET}" if option.startswith(SET) else f"--defaults {entity_type}"
        raise UsageError(f"the name of the {entity_type} is empty, which no entity's is. The default is {default}")
    try:
        size = len(wanted.text.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{shown(option)} is not UTF-8 text, and Kafka's names are") from None
    if size > LONGEST_STRING:
        raise UsageError(f"{shown(option)} has {size} bytes. Kafka's protocol takes at most {LONGEST_STRING}")


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
    """The values by entity and key. A name ``<default>`` is warned of.

    Raises ``UsageError`` for another form, a bad entity, key or value, and one set twice.
    """
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
        for warning in _literal_defaults(entity, "written as {} alone, without a name"):
            output.tell(f"warning: {warning}")
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
    parts = []
    for part in _UNESCAPED_COMMA.split(place):
        entity_type, equals, name = part.partition("=")
        _require_type(SET, entity_type)
        kind = MatchKind.NAME if equals else MatchKind.DEFAULT
        parts.append((f"{SET} {part}", entity_type, TypeMatch(kind=kind, text=name.replace("\\,", ","))))
    entity = _entity(_checked(parts, ()))
    assert entity is not None  # a text has a part
    return entity, key, value
