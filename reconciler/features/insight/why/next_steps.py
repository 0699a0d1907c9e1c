"""Commands for after an incident: raise the limit now, keep it in git, and the same with Kafka's own tool."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.features.insight.why.incident import IncidentGroup, IncidentStep
from reconciler.features.insight.why.limit_origin import place_now
from reconciler.features.insight.why.past_quotas import QuotaSources, QuotasThen
from reconciler.formats import value_text
from reconciler.model import DEFAULT, Entity, EntityType, QuotaKey

_PROGRAM: Final = "kafka-quotas"
_BROKERS: Final = "HOST:PORT"
_KAFKA_TYPES: Final = {EntityType.USER.value: "users", EntityType.CLIENT_ID.value: "clients", EntityType.IP.value: "ips"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """What the steps depend on."""

    request: QuotaSources
    then: QuotasThen
    groups: tuple[IncidentGroup, ...]


def next_steps(context: StepContext) -> tuple[IncidentStep, ...]:
    """For each limit that throttled, the highest value that a broker asks for."""
    wanted: dict[tuple[Entity, str], float] = {}
    for group in context.groups:
        entity, value = _target(group), group.row.advice.recommended or group.row.advice.safe
        if not group.is_cause or entity is None or value is None or group.limit is None or value <= group.limit:
            continue
        wanted[entity, group.row.key] = max(value, wanted.get((entity, group.row.key), value))
    steps = [step for (entity, key), value in wanted.items() for step in _steps(context, entity, key, value)]
    return tuple(sorted(steps, key=lambda step: _ORDER.index(step.title)))


RAISE: Final = "Raise the limit now"
EDIT: Final = "Keep it in git"
EXTEND: Final = "Keep it in git: add to this entry"
ADD: Final = "Keep it in git: add to a manifest"
RAISED: Final = "Raised in the manifests already"
BY_KAFKA: Final = "In an emergency, with Kafka's own tool"
_ORDER: Final = (RAISED, RAISE, EDIT, EXTEND, ADD, BY_KAFKA)


def _target(incident_group: IncidentGroup) -> Entity | None:
    """The entity to change: the one that set the limit, or for a default the quota group's own, so that no other client gains."""
    if incident_group.entity is None or not incident_group.entity.has_default:
        return incident_group.entity
    if incident_group.row.name.other:
        return None
    if EntityType.IP.value in incident_group.entity.types:
        return Entity.of({EntityType.IP.value: incident_group.row.name.client_id}) if incident_group.row.name.client_id else None
    tags = {EntityType.USER.value: incident_group.row.name.user, EntityType.CLIENT_ID.value: incident_group.row.name.client_id}
    names = {kind: name for kind, name in tags.items() if name}
    return Entity.of(names) if names else None


def _steps(context: StepContext, entity: Entity, key: str, value: float) -> Iterator[IncidentStep]:
    text = value_text(QuotaKey(key), value)
    words = [_PROGRAM, "alter", *_connection(context), *_entity_words(entity), "--add", f"{key}={text}"]
    in_git = _edit(context, entity, key, text, value)
    if in_git is not None and in_git.title == RAISED:
        yield in_git
        return
    yield IncidentStep(title=RAISE, words=shell_words(words))
    if in_git is not None:
        yield in_git
    yield IncidentStep(title=BY_KAFKA, words=shell_words(_kafka_words(context, entity, key, value)))


def _edit(context: StepContext, entity: Entity, key: str, text: str, value: float) -> IncidentStep | None:
    """What to write in the work tree. A second entry for an entity would be an error."""
    loaded = context.then.loaded
    if loaded is None:
        return None
    place = place_now(loaded, cluster=context.request.cluster, entity=entity, key=key)
    if place is None:
        match = ", ".join(f"{kind}: {_yaml(name)}" for kind, name in entity.parts)
        return IncidentStep(title=ADD, text=f"- match: {{{match}}}\n  quotas: {{{key}: {text}}}")
    if place.value is not None and place.value >= value:
        declared = value_text(QuotaKey(key), place.value)
        return IncidentStep(title=RAISED, file=place.file, line=place.line, text=f"{key}: {declared}")
    return IncidentStep(title=EDIT if place.has_key else EXTEND, file=place.file, line=place.line, text=f"{key}: {text}")


def _yaml(name: object) -> str:
    """A name in a flow mapping; JSON's strings are YAML's."""
    return "{default: true}" if name is DEFAULT else json.dumps(name)


def _connection(context: StepContext) -> list[str]:
    """How the user reaches the cluster, or what to fill in."""
    access = context.request.access
    if access.bootstrap_server is not None or access.zookeeper is not None:
        option, where = (
            ("--bootstrap-server", access.bootstrap_server)
            if access.bootstrap_server is not None
            else ("--zookeeper", access.zookeeper)
        )
        login = ["--command-config", access.command_config] if access.command_config is not None else []
        return [option, str(where), *login]
    if context.then.reachable:
        cluster = ["--cluster", context.request.cluster] if context.request.cluster is not None else []
        return [*context.then.paths, *cluster]
    return ["--bootstrap-server", _BROKERS]


def _entity_words(entity: Entity) -> Iterator[str]:
    for kind, name in entity.parts:
        yield from ("--defaults", kind) if name is DEFAULT else ("--name", f"{kind}={name}")


def _kafka_words(context: StepContext, entity: Entity, key: str, value: float) -> Iterator[str]:
    access, spec = context.request.access, context.then.spec
    servers = access.bootstrap_server
    if servers is None and spec.connection is not None and spec.connection.bootstrap_servers:
        servers = ",".join(spec.connection.bootstrap_servers)
    yield from ("kafka-configs", "--bootstrap-server", servers or _BROKERS)
    if access.command_config is not None:
        yield from ("--command-config", access.command_config)
    yield "--alter"
    for kind, name in entity.parts:
        yield from ("--entity-type", _KAFKA_TYPES[kind])
        yield from ("--entity-default",) if name is DEFAULT else ("--entity-name", str(name))
    number = int(value) if float(value).is_integer() else value
    yield from ("--add-config", f"{key}={number}")


def shell_words(words: Iterable[str]) -> tuple[str, ...]:
    """Words quoted for a shell. A word with characters that do not print becomes one of bash, ksh and zsh with escapes."""
    return tuple(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_shell_character, word))}'"


def _shell_character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    # Octal escapes have three digits at most, so no following letter joins them.
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
