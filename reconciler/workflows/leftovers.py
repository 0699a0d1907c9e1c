"""Leftovers on a cluster: replication throttles without a running reassignment, quotas of users who are gone, empty nodes.

Only ``drift`` and ``doctor`` look for them. A finding has the command that removes what it names, and nothing here
removes anything: Kafka does not record who set a throttle. When it was set, only ZooKeeper limits.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from reconciler.errors import BackendError
from reconciler.model import Entity, EntityType, Finding, QuotaKey, Quotas, Severity, compose, escaped, flag_part
from reconciler.ports import LeftoverInspector, QuotaReader, ReplicationThrottles
from reconciler.text import amount, count_of, list_some, moment_text, shown

_SHOWN: Final = 5
_IN_A_COMMAND: Final = 50

Seen = TypeVar("Seen")


def find_leftovers(reader: QuotaReader, entities: Mapping[Entity, Quotas]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return the leftovers of a live cluster, and notes about what it did not show. ``entities``: its quotas."""
    if not isinstance(reader, LeftoverInspector):
        return (), ()
    notes: list[str] = []
    throttles = _seen(reader.replication_throttles, notes, "Leftover replication throttles were not looked for")
    findings = [] if throttles is None else [*throttle_findings(throttles)]
    if any(isinstance(entity.name(EntityType.USER), str) for entity in entities):
        users = _seen(reader.scram_users, notes, "Users with quotas were not compared with SCRAM credentials")
        findings += [] if users is None else user_findings(entities, users)
    nodes = _seen(reader.nodes_without_quotas, notes, "Nodes without quotas were not looked for")
    findings += node_findings(nodes or {})
    return tuple(findings), tuple(notes)


def _seen(look: Callable[[], Seen], notes: list[str], otherwise: str) -> Seen | None:
    try:
        return look()
    except BackendError as error:
        notes.append(f"{otherwise}: {error}")
        return None


def throttle_findings(throttles: ReplicationThrottles) -> Iterator[Finding]:
    """Yield one finding for brokers and one for topics with a throttle that no running reassignment can need."""
    busy = {broker for brokers in throttles.moving.values() for broker in brokers}
    rates = {broker: each for broker, each in throttles.rates.items() if not (busy if broker is None else broker in busy)}
    replicas = {topic: each for topic, each in throttles.replicas.items() if topic not in throttles.moving}
    if rates:
        limits = [_limits(*row, throttles) for row in sorted(rates.items(), key=lambda row: row[0] or 0)]
        effect = "They slow down the replicas that topics list as throttled, also when a broker catches up after a restart."
        yield _finding(
            "Replication throttles stand on brokers that no running reassignment involves: {limits}. " + effect,
            "They have no effect until a topic lists throttled replicas." if not throttles.replicas else "",
            throttles,
            limits=list_some(limits, _SHOWN, between="; "),
            commands=_commands("brokers", {None if broker is None else str(broker): each for broker, each in rates.items()}),
        )
    if replicas:
        effect = "Brokers with a throttled rate replicate these replicas no faster, also when they catch up after a restart."
        yield _finding(
            "Topics without a running reassignment list throttled replicas: {limits}. " + effect,
            "They have no effect until a broker has a throttled rate." if not throttles.rates else "",
            throttles,
            limits=list_some([f"{shown(topic)}{_since(topic, throttles)}" for topic in sorted(replicas)], _SHOWN),
            commands=_commands("topics", dict(sorted(replicas.items()))),
        )


def _finding(words: str, without: str, throttles: ReplicationThrottles, *, limits: str, commands: Iterable[str]) -> Finding:
    since = "" if throttles.changed else "Since when is not known: brokers do not report it. "
    message = compose(
        f"{words} {without + ' ' if without else ''}{since}To remove them, run: {{commands}}",
        limits=limits,
        commands=flag_part(escaped("; ".join(commands))),
    )
    return Finding(id="leftover-throttle", severity=Severity.WARNING, message=message)


def _limits(broker: int | None, settings: Mapping[str, str], throttles: ReplicationThrottles) -> str:
    rates = ((key.partition(".")[0], amount(QuotaKey.PRODUCER_BYTE_RATE, float(settings[key]))) for key in sorted(settings))
    name = "all brokers" if broker is None else f"broker {broker}"
    return f"{name} {', '.join(map(' '.join, rates))}{_since(broker, throttles)}"


def _since(resource: int | str | None, throttles: ReplicationThrottles) -> str:
    """Return the last change of the settings, before which the throttle was set."""
    at = throttles.changed.get(resource)
    return "" if at is None else f" (since {moment_text(at)} or earlier)"


def _commands(kind: str, settings: Mapping[str | None, Mapping[str, str]]) -> Iterator[str]:
    """Yield ``kafka-configs`` for each set of keys: it refuses to delete a key that is not set. ``None``: the default of all."""
    by_keys: dict[str, list[str | None]] = {}
    for resource, set_there in settings.items():
        by_keys.setdefault(",".join(sorted(set_there)), []).append(resource)
    for keys, names in by_keys.items():
        alter = f"kafka-configs --bootstrap-server HOST:PORT --alter --entity-type {kind} {{}} --delete-config {keys}"
        if None in names:
            yield alter.format("--entity-default")
        named = [shlex.quote(name) for name in names if name is not None]
        if len(named) == 1:
            yield alter.format(f"--entity-name {named[0]}")
        elif named:
            more = f" # and {len(named) - _IN_A_COMMAND:,} more" if len(named) > _IN_A_COMMAND else ""
            yield f"for name in {' '.join(named[:_IN_A_COMMAND])}; do {alter.format('--entity-name $name')}; done{more}"


def user_findings(entities: Mapping[Entity, Quotas], users: frozenset[str]) -> Iterator[Finding]:
    """Yield one finding for all users with quotas and without SCRAM credentials, where other users with quotas have some."""
    named = {name: entity for entity in entities if isinstance(name := entity.name(EntityType.USER), str)}
    gone = sorted(named.keys() - users)
    if not gone or len(gone) == len(named):
        return
    first = named[gone[0]]
    keys = ",".join(sorted(entities[first]))
    options = " ".join(
        f"--name {shlex.quote(f'{kind}={name}')}" if isinstance(name, str) else f"--defaults {kind}" for kind, name in first.parts
    )
    yield Finding(
        id="quota-without-user",
        severity=Severity.INFO,
        message=compose(
            "{count} of {all} with quotas have no SCRAM credentials: {names}. Keep the quotas of users who log in another way "
            "(TLS, PLAIN, OAUTHBEARER, Kerberos). If a user no longer exists, remove its quotas: from the manifests, or with "
            "{command}",
            count=f"{len(gone):,}",
            all=count_of(len(named), "user"),
            names=list_some([shown(name) for name in gone], _SHOWN),
            command=flag_part(escaped(f"kafka-quotas alter {options} --delete {keys}")),
        ),
        entity=first if len(gone) == 1 else None,
    )


def node_findings(nodes: Mapping[str, int | None]) -> Iterator[Finding]:
    """Yield one finding for all nodes in ZooKeeper without any setting: by path their versions, in the order to remove them."""
    if not nodes:
        return
    paths = [path for path, version in nodes.items() if version is not None]
    deletions = [f"delete {path}" if version is None else f"delete -v {version} {path}" for path, version in nodes.items()]
    lines = " ".join(shlex.quote(line) for line in deletions[:_IN_A_COMMAND])
    more = f" # and {len(nodes) - _IN_A_COMMAND:,} more" if len(nodes) > _IN_A_COMMAND else ""
    yield Finding(
        id="empty-entity",
        severity=Severity.INFO,
        message=compose(
            "ZooKeeper has {count} of users, client-ids or addresses without any setting: {paths}. They limit no client. To "
            "remove those that are still unchanged, run: {command}",
            count=count_of(len(paths), "node"),
            paths=list_some([shown(path) for path in paths], _SHOWN),
            command=flag_part(escaped(f"printf '%s\\n' {lines} | zookeeper-shell HOST:PORT{more}")),
        ),
    )
