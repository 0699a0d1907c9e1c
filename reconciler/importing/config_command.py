"""One ``kafka-configs`` command line: which entity it means, and which keys it sets and deletes.

Source of the rules: the options of Kafka's own ``ConfigCommand`` (names and types pair up in the order given; an empty name is
the default; with ``--zookeeper`` so is ``<default>``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from reconciler.importing.shell import Word
from reconciler.model import DEFAULT, Entity, EntityName, compose
from reconciler.text import did_you_mean, shown_part

_TYPES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_SHORT: Final = {"--user": "user", "--client": "client-id", "--ip": "ip"}
_SHORT_DEFAULTS: Final = {"--user-defaults": "user", "--client-defaults": "client-id", "--ip-defaults": "ip"}
_OTHER_THINGS: Final = frozenset(
    {"--topic", "--broker", "--broker-defaults", "--broker-logger", "--client-metrics", "--group", "--cluster-link"}
)
_WITH_VALUE: Final = frozenset(
    {
        "--bootstrap-server", "--bootstrap-controller", "--zookeeper", "--command-config", "--zk-tls-config-file",
        "--entity-type", "--entity-name", "--add-config", "--add-config-file", "--delete-config",
        *_SHORT, "--topic", "--broker", "--broker-logger", "--client-metrics", "--group", "--cluster-link",
    }
)  # fmt: skip
_ALONE: Final = frozenset(
    {
        "--alter",
        "--describe",
        "--entity-default",
        "--force",
        "--all",
        "--version",
        "--help",
        *_SHORT_DEFAULTS,
        "--broker-defaults",
    }
)
_PAIRS: Final = re.compile(r",(?=[^\]]*(?:\[|$))")
_FREE: Final = frozenset(
    {"--bootstrap-server", "--bootstrap-controller", "--zookeeper", "--command-config", "--zk-tls-config-file"}
)
"""Options whose value shows nothing about quotas, so that a variable there does no harm."""


class RefusedCommandError(Exception):
    """A command that is not converted: the finding's id, the text, the word at fault, and the entity as far as it is known."""

    def __init__(self, rule_id: str, message: str, word: Word) -> None:
        super().__init__(message)
        self.rule_id = rule_id
        self.word = word
        self.entity: Entity | None = None


@dataclass(slots=True, kw_only=True)
class Options:
    """The options as given, in order."""

    alters: bool = False
    describes: bool = False
    types: list[Word] = field(default_factory=list)
    names: list[tuple[Word, bool]] = field(default_factory=list)
    short: list[tuple[str, Word, bool]] = field(default_factory=list)
    add: Word | None = None
    delete: Word | None = None
    zookeeper: bool = False
    other_thing: bool = False
    server: tuple[str, str] | None = None
    """The option that names the cluster, and its value."""
    faults: list[RefusedCommandError] = field(default_factory=list)
    """What is wrong with it, as long as it is about quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigCommand:
    """What one command does: ``add`` are pairs of key and value as written."""

    entity: Entity
    add: tuple[tuple[str, str], ...]
    delete: tuple[str, ...]
    place: Word
    server: tuple[str, str] | None


def read_config_alteration(words: Sequence[Word]) -> ConfigCommand | None:
    """The words after the command's name; ``None`` when it alters no quota. Raises ``RefusedCommandError``."""
    options = _options(words)
    first = words[0] if words else Word(text="", line=1, column=1)
    if options.describes or options.other_thing or any(_is_other(word) for word in options.types):
        return None
    if options.faults:
        options.faults[0].entity = _entity_if_known(options, first)
        raise options.faults[0]
    if not options.alters:
        return None
    entity = _entity(options, first)
    if options.add is None and options.delete is None:
        raise RefusedCommandError("import-ambiguous", "--alter without --add-config or --delete-config changes nothing", first)
    place = options.add or options.delete
    assert place is not None
    try:
        add = tuple(_pair(text, place) for text in _split_list(options.add))
    except RefusedCommandError as refused:
        refused.entity = entity
        raise
    delete = tuple(_split_list(options.delete))
    return ConfigCommand(entity=entity, add=add, delete=delete, place=place, server=options.server)


def _is_other(word: Word) -> bool:
    return not word.varies and word.text not in _TYPES


def _options(words: Sequence[Word]) -> Options:
    options = Options()
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, text = word.text.partition("=")
        if not word.text.startswith("--") or (name not in _WITH_VALUE and name not in _ALONE):
            options.faults.append(_unexpected(word, name))
            continue
        if name in _ALONE:
            _flag(options, name, word)
            continue
        if equals:
            value = Word(text=text, line=word.line, column=word.column + len(name) + 1, varies=word.varies, quoted=word.quoted)
        elif waiting:
            value = waiting.pop(0)
        else:
            options.faults.append(RefusedCommandError("import-syntax", f"{name} needs a value", word))
            continue
        if value.varies and name not in _FREE:
            message = compose(
                "the value of {name} is made by the shell ({value}). Write it out, or import what --describe prints",
                name=name,
                value=shown_part(value.text),
            )
            options.faults.append(RefusedCommandError("import-template", message, value))
        _valued(options, name, value)
    return options


def _unexpected(word: Word, name: str) -> RefusedCommandError:
    if word.varies:
        message = compose(
            "{word} is made by the shell, so the rest of this command is not known. Write it out",
            word=shown_part(word.text),
        )
        return RefusedCommandError("import-template", message, word)
    if word.text.startswith("--"):
        message = compose(
            "kafka-configs has no option {name}{hint}",
            name=shown_part(name),
            hint=did_you_mean(name, _WITH_VALUE | _ALONE),
        )
        return RefusedCommandError("import-unsupported", message, word)
    return RefusedCommandError(
        "import-syntax",
        compose("{word} belongs to no option. Is a quote or a backslash missing?", word=shown_part(word.text)),
        word,
    )


def _flag(options: Options, name: str, word: Word) -> None:
    if name == "--alter":
        options.alters = True
    elif name == "--describe":
        options.describes = True
    elif name == "--entity-default":
        options.names.append((word, True))
    elif name in _SHORT_DEFAULTS:
        options.short.append((_SHORT_DEFAULTS[name], word, True))
    elif name in _OTHER_THINGS:
        options.other_thing = True


def _valued(options: Options, name: str, value: Word) -> None:
    if name == "--entity-type":
        options.types.append(value)
    elif name == "--entity-name":
        options.names.append((value, False))
    elif name in _SHORT:
        options.short.append((_SHORT[name], value, False))
    elif name in _OTHER_THINGS:
        options.other_thing = True
    elif name in ("--add-config", "--delete-config"):
        attribute = "add" if name == "--add-config" else "delete"
        if getattr(options, attribute) is not None:
            options.faults.append(
                RefusedCommandError("import-ambiguous", f"{name} is given twice, which kafka-configs refuses", value)
            )
        setattr(options, attribute, value)
    elif name == "--add-config-file":
        message = "--add-config-file is not read. Write its keys with --add-config, or import what --describe prints"
        options.faults.append(RefusedCommandError("import-unsupported", message, value))
    elif name in ("--bootstrap-server", "--bootstrap-controller", "--zookeeper"):
        options.zookeeper = options.zookeeper or name == "--zookeeper"
        options.server = (name, value.text)


def _entity_if_known(options: Options, first: Word) -> Entity | None:
    words = [*options.types, *(word for word, _ in options.names), *(word for _, word, _ in options.short)]
    if any(word.varies for word in words):
        return None
    try:
        return _entity(options, first)
    except RefusedCommandError:
        return None


def _entity(options: Options, first: Word) -> Entity:
    if options.short and (options.types or options.names):
        message = "--entity-type and --entity-name do not go together with --user, --client and --ip"
        raise RefusedCommandError("import-ambiguous", message, first)
    parts = options.short or _pair_names(options, first)
    names: dict[str, EntityName] = {}
    for entity_type, word, is_default in parts:
        if entity_type in names:
            raise RefusedCommandError("import-ambiguous", f"the command has two names for {entity_type}", word)
        names[entity_type] = DEFAULT if is_default or not word.text else _name(word, options)
    if not names:
        raise RefusedCommandError("import-ambiguous", "no entity is named: --entity-type with --entity-name is missing", first)
    entity = Entity.of(names)
    if not entity.is_known:
        message = f"{' and '.join(entity.types)} do not go together. Only users and clients can be given together"
        raise RefusedCommandError("illegal-entity", message, first)
    return entity


def _pair_names(options: Options, first: Word) -> list[tuple[str, Word, bool]]:
    if len(options.types) != len(options.names):
        message = (
            f"{len(options.types)} --entity-type and {len(options.names)} names do not pair up. The command kafka-configs needs "
            "--entity-name or --entity-default for each"
        )
        raise RefusedCommandError("import-ambiguous", message, options.types[0] if options.types else first)
    return [(_TYPES[kind.text], word, is_default) for kind, (word, is_default) in zip(options.types, options.names, strict=True)]


def _name(word: Word, options: Options) -> EntityName:
    # With brokers this is an entity of that literal name: kept, and mentioned like every name that is probably a mistake.
    return DEFAULT if word.text == "<default>" and options.zookeeper else word.text


def _split_list(word: Word | None) -> list[str]:
    return [] if word is None else [part.strip() for part in _PAIRS.split(word.text) if part.strip()]


def _pair(text: str, place: Word) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise RefusedCommandError("import-syntax", compose("{key} is not KEY=VALUE", key=shown_part(key)), place)
    return key.strip(), value.strip()
