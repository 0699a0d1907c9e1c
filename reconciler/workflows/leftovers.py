"""Leftovers on a cluster: replication throttles that no running reassignment needs, and quotas of users who cannot log in.

Only ``drift`` and ``doctor`` look for them. A finding has the command that removes what it names, and nothing here
removes anything: Kafka does not record who set a throttle, or when.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

from reconciler.errors import BackendError
from reconciler.model import Entity, EntityType, Finding, QuotaKey, Quotas, Severity, compose, escaped, flag_part
from reconciler.ports import LeftoverInspector, QuotaReader, ReplicationThrottles
from reconciler.text import amount, count_of, list_some, shown

_SHOWN: Final = 5
_IN_A_COMMAND: Final = 50

Seen = TypeVar("Seen")


def find_leftovers(reader: QuotaReader, entities: Mapping[Entity, Quotas]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """What a live cluster has left over, and notes about what it did not show. ``entities``: what it has quotas for."""
    if not isinstance(reader, LeftoverInspector):
        return (), ()
    notes: list[str] = []
    throttles = _seen(reader.replication_throttles, notes, "Leftover replication throttles were not looked for")
    findings = [] if throttles is None else [*throttle_findings(throttles)]
    if any(isinstance(entity.name(EntityType.USER), str) for entity in entities):
        users = _seen(reader.scram_users, notes, "Users with quotas were not compared with SCRAM credentials")
        findings += [] if users is None else user_findings(entities, users)
    return tuple(findings), tuple(notes)


def _seen(look: Callable[[], Seen], notes: list[str], otherwise: str) -> Seen | None:
    try:
        return look()
    except BackendError as error:
        notes.append(f"{otherwise}: {error}")
        return None


def throttle_findings(throttles: ReplicationThrottles) -> Iterator[Finding]:
    """One finding for brokers and one for topics with a throttle that no running reassignment can need."""
    busy = {broker for brokers in throttles.moving.values() for broker in brokers}
    rates = {broker: each for broker, each in throttles.rates.items() if not (busy if broker is None else broker in busy)}
    replicas = {topic: each for topic, each in throttles.replicas.items() if topic not in throttles.moving}
    if rates:
        limits = [_limits(*row) for row in sorted(rates.items(), key=lambda row: row[0] or 0)]
        effect = "They slow down the replicas that topics list as throttled, also when a broker catches up after a restart."
        yield _finding(
            "Replication throttles stand on brokers that no running reassignment involves: {limits}. " + effect,
            "They have no effect until a topic lists throttled replicas." if not throttles.replicas else "",
            limits=list_some(limits, _SHOWN, between="; "),
            commands=_commands("brokers", {None if broker is None else str(broker): each for broker, each in rates.items()}),
        )
    if replicas:
        effect = "Brokers with a throttled rate replicate these replicas no faster, also when they catch up after a restart."
        yield _finding(
            "Topics without a running reassignment list throttled replicas: {limits}. " + effect,
            "They have no effect until a broker has a throttled rate." if not throttles.rates else "",
            limits=list_some([shown(topic) for topic in sorted(replicas)], _SHOWN),
            commands=_commands("topics", dict(sorted(replicas.items()))),
        )


def _finding(words: str, without: str, *, limits: str, commands: Iterable[str]) -> Finding:
    message = compose(
        f"{words} {without + ' ' if without else ''}Kafka does not record since when. To remove them, run: {{commands}}",
        limits=limits,
        commands=flag_part(escaped("; ".join(commands))),
    )
    return Finding(id="leftover-throttle", severity=Severity.WARNING, message=message)


def _limits(broker: int | None, settings: Mapping[str, str]) -> str:
    rates = ((key.partition(".")[0], amount(QuotaKey.PRODUCER_BYTE_RATE, float(settings[key]))) for key in sorted(settings))
    return f"{'all brokers' if broker is None else f'broker {broker}'} {', '.join(map(' '.join, rates))}"


def _commands(kind: str, settings: Mapping[str | None, Mapping[str, str]]) -> Iterator[str]:
    """``kafka-configs`` for each set of keys: it refuses to delete a key that is not set. ``None``: the default of all."""
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
    """One finding for all users with quotas and without SCRAM credentials, where other users with quotas have some."""
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
