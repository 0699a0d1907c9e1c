"""Resolve: the effective quotas of clients in a state.

The states are ``QuotaView`` values: of the cluster, a snapshot, the manifests, or the cluster after the plan of the manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeVar

from reconciler.errors import UsageError
from reconciler.model import (
    NOT_ASKED,
    OTHER,
    ClusterIdentity,
    ClusterSpec,
    CurrentState,
    DesiredQuota,
    Entity,
    Finding,
    KnownAddress,
    ObservedFrom,
    Prune,
    QuotaKey,
    Severity,
    display_name,
)
from reconciler.planning import difference, quotas_after
from reconciler.resolution import (
    GROUP_CALLBACK,
    Caveats,
    EffectiveQuotas,
    QuotaView,
    Resolution,
    ViewKind,
    client_of,
    literal_address,
)
from reconciler.text import count_of, list_some, near_miss, shown
from reconciler.workflows.connect import Access, quota_reader, read_state, with_facts
from reconciler.workflows.intent import Intent, intent_of, with_lint
from reconciler.workflows.load import LoadedManifests, References, chosen_cluster, load_manifests, stop_on
from reconciler.workflows.trusted import ReadReferences, TrustedTree, read_references
from reconciler.workflows.units import divide_totals, live_expiries, needs_leaders, with_leaders


def require_client(entity: Entity) -> Entity:
    """The entity that a client stands for. Raises ``UsageError`` for what no connection can be."""
    try:
        client_of(entity)
    except ValueError as error:
        raise UsageError(f"no client can be {entity}: {error}") from None
    return entity


def notes_about(resolution: Resolution, answers: EffectiveQuotas) -> tuple[str, ...]:
    """Notes beside one answer: clients that it does not cover, and reasons why it may be wrong."""
    client = resolution.client
    notes = []
    if isinstance(client, KnownAddress):
        if client.ip is not OTHER and literal_address(client.ip) is None:
            notes.append("this is a host name. Brokers limit the address that each of them found for it when the quota was set")
        hosts = answers.host_names_in_the_way(client)
        if hosts:
            listed = list_some([str(host) for host in hosts], 3)
            notes.append(f"limits of host names are not counted, since only the brokers know their addresses: {listed}")
    elif keys := answers.otherwise(client):
        notes.append(
            "this is a client that sends no client-id. A client that sends one which no quota names gets another "
            f"{', '.join(keys)}: ask with --defaults client-id"
        )
    return tuple(notes)


def is_unknown(resolution: Resolution) -> bool:
    """True when nothing of an answer can be known."""
    return bool(resolution.unknown) and set(resolution.unknown) >= set(resolution.keys)


STATES: Final = ("current", "manifests", "planned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The manifests, if any, and how to reach the cluster. Without paths and a cluster name no manifest is read unless needed."""

    paths: tuple[str, ...] = ()
    cluster: str | None = None
    access: Access = field(default_factory=Access)
    trusted_ref: str | None = None
    fail_on: Severity = Severity.ERROR


class Sources:
    """States by their names. Everything that several of them need is read once."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self.findings: tuple[Finding, ...] = ()
        """Of the manifests that were read, none of which stopped anything."""

    def view(self, name: str) -> QuotaView:
        """The state of that name.

        Raises ``ManifestError``, ``UsageError``, ``UntrustedError`` and ``GitError`` as loading manifests does,
        ``FileAccessError`` for a snapshot of ``--current``, ``WrongClusterError`` and ``BackendError`` from the cluster.
        """
        match name:
            case "current":
                return self._with_expiries(self._current)
            case "manifests":
                return manifests_view(self._computed(self._intent(everything=True)))
            case "planned":
                intent = self._intent(everything=False)
                return planned_view(intent, self._current_for(intent))
        raise UsageError(f"unknown state {shown(name)}: write {', '.join(STATES)}{near_miss(name, STATES)}")

    def _with_expiries(self, view: QuotaView) -> QuotaView:
        """The state with the values that expire, as far as manifests are read."""
        if not self._where.paths and self._where.cluster is None:
            return view
        _, loaded = self._loaded
        return replace(view, expiries=live_expiries(loaded.desired(self._spec[0]), view))

    def owners(self) -> Mapping[Entity, str]:
        """Return the owner of each declared entity; none without a path and a cluster's name."""
        if not self._where.paths and self._where.cluster is None:
            return {}
        desired = self._intent(everything=True).desired.entities.values()
        return {declared.entity: declared.owner for declared in desired if declared.owner is not None}

    def cluster(self) -> tuple[ClusterSpec, TrustedTree | None]:
        """The cluster of the manifests, as far as any are read, and the source of trust in it."""
        return self._spec

    def _computed(self, intent: Intent) -> Intent:
        """Totals need the brokers, so the cluster or its snapshot is read for them."""
        return divide_totals(intent, _state_of(self._current_for(intent))) if intent.desired.with_units else intent

    def _current_for(self, intent: Intent) -> QuotaView:
        """The current state, with the leaders of partitions where the live cluster has them and a value needs them."""
        view, access = self._current, self._where.access
        if view.leaders is not None or access.current is not None or not needs_leaders(intent.desired):
            return view
        with quota_reader(intent.spec, access, trusted=intent.trusted) as reader:
            state = with_leaders(_state_of(view), reader)
        return replace(view, leaders=state.leaders, notes=(*view.notes, *state.notes))

    @cached_property
    def _current(self) -> QuotaView:
        spec, trusted = self._spec
        with quota_reader(spec, self._where.access, trusted=trusted) as reader:
            return current_view(read_state(spec, reader), source=reader, name=spec.name, spec=spec)

    @property
    def _spec(self) -> tuple[ClusterSpec, TrustedTree | None]:
        """The cluster of the manifests when a path, a name or a reference is given, or a state needed them; else the stand-in."""
        where = self._where
        if not where.paths and where.cluster is None and where.trusted_ref is None and "_loaded" not in self.__dict__:
            return ClusterSpec(), None
        seen, loaded = self._loaded
        return chosen_cluster(loaded, where.cluster), seen.trusted

    @cached_property
    def _loaded(self) -> tuple[ReadReferences, LoadedManifests]:
        paths = self._where.paths or (".",)
        seen = read_references(References(trusted=self._where.trusted_ref), paths)
        loaded = load_manifests(paths, trust=seen.trusted)
        stop_on(loaded.findings, self._where.fail_on)
        return seen, loaded

    def _intent(self, *, everything: bool) -> Intent:
        """Read the manifests; ``everything`` of the root, since every manifest can change effective quotas."""
        seen, loaded = self._loaded
        if everything and loaded.root is not None:
            loaded = replace(loaded, selected=None, complete=True)
        where = self._where
        intent = with_lint(intent_of(loaded, seen, where.paths or (".",), cluster=where.cluster, fail_on=where.fail_on))
        self.findings = intent.findings
        return intent


_FIRST_WITHOUT_STATIC_DEFAULTS: Final = (3, 0)
_STATIC_DEFAULTS: Final = "their settings quota.producer.default and quota.consumer.default"
_FIRST_TO_ENFORCE_MUTATIONS: Final = (3, 5)
_ASSUMED: Final = "answers assume that brokers resolve quotas as Kafka does"
_NO_VERSION: Final = f"the version of the brokers is not known. Before Kafka 3.0 {_STATIC_DEFAULTS} apply where no quota is set"
_ORIGINS: Final = {ObservedFrom.SNAPSHOT: "a snapshot", ObservedFrom.ZOOKEEPER: "ZooKeeper"}
_ALONE: Final = (
    "these are the manifests alone: quotas that the cluster has beside them (unmanaged, or outside the scope) are not known "
    "here. 'planned' counts them"
)


def current_view(state: CurrentState, *, source: object, name: str | None = None, spec: ClusterSpec | None = None) -> QuotaView:
    """A state as it was read from ``source``, which may know whether the brokers resolve quotas as Kafka does.

    Where it does not, the Cluster manifest may.
    """
    state = with_facts(state, source)
    callback, note = _callback(state, spec)
    notes = () if note is None else (note,)
    version = _version(state.cluster.kafka_version)
    static: Mapping[str, str] = {}
    if version is None:
        notes = (*notes, _NO_VERSION)
    elif version < _FIRST_WITHOUT_STATIC_DEFAULTS:
        about = f"the brokers are of Kafka {state.cluster.kafka_version}: where no quota is set, {_STATIC_DEFAULTS} apply"
        static = dict.fromkeys((QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE), about)
        notes = (*notes, about)
    return QuotaView(
        kind=ViewKind.SNAPSHOT if state.observed.origin is ObservedFrom.SNAPSHOT else ViewKind.CLUSTER,
        entities=state.entities,
        cluster=state.cluster.named(name),
        observed=state.observed,
        caveats=Caveats(callback=callback, groups=note == _PLUGIN, static_defaults=static),
        notes=(*notes, *_oddities(state, version)),
        brokers=state.brokers,
        leaders=state.leaders,
    )


def manifests_view(intent: Intent) -> QuotaView:
    """Return what the manifests declare for one cluster, as if that were all."""
    written = _written(intent.spec)
    view = QuotaView(
        kind=ViewKind.MANIFESTS,
        entities=intent.desired.values(),
        cluster=ClusterIdentity(name=intent.spec.name, id=intent.spec.cluster_id),
        caveats=Caveats(callback=written, groups=has_group_plugin(intent.spec)),
        notes=(_ALONE, *_incomplete(intent), written or _ASSUMED, *intent.notes),
        profiles=_by_key(intent, lambda quota: quota.profile),
        units=_by_key(intent, lambda quota: quota.unit),
    )
    return replace(view, expiries=live_expiries(intent.desired, view))


def planned_view(intent: Intent, current: QuotaView) -> QuotaView:
    """The quotas of ``current`` once the plan of the manifests is applied: unmanaged entities and those outside the scope stay.

    Raises ``ValueError`` when ``current`` was never observed.
    """
    if current.observed is None:
        raise ValueError("a plan needs a state that was read from somewhere")
    state = _state_of(current)
    if intent.desired.with_units:
        intent = divide_totals(intent, state)
    differences = difference(intent.desired, state, scope=intent.spec.scope, prune=intent.spec.prune)
    pruned = sum(1 for change in differences.changes if change.entity not in intent.desired.entities)
    planned = replace(
        current,
        kind=ViewKind.PLANNED,
        entities=quotas_after(current.entities, differences.changes),
        notes=(*current.notes, *_incomplete(intent), *_pruned(intent.spec, pruned), *intent.notes),
        profiles=_by_key(intent, lambda quota: quota.profile),
        units=_by_key(intent, lambda quota: quota.unit),
    )
    return replace(planned, expiries=live_expiries(intent.desired, planned))


def _state_of(view: QuotaView) -> CurrentState:
    """Return the state that was read. Raises ``ValueError`` when none was."""
    if view.observed is None:
        raise ValueError("this view was never observed")
    return CurrentState(
        cluster=view.cluster, observed=view.observed, entities=view.entities, brokers=view.brokers, leaders=view.leaders
    )


_Part = TypeVar("_Part")


def _by_key(intent: Intent, part: Callable[[DesiredQuota], _Part | None]) -> dict[tuple[Entity, str], _Part]:
    """A part of the declared quotas that have it, by entity and key."""
    return {
        (entity, key.value): value
        for entity, declared in intent.desired.entities.items()
        for key, quota in declared.quotas.items()
        if (value := part(quota)) is not None
    }


def has_group_plugin(spec: ClusterSpec | None) -> bool:
    """Whether the Cluster manifest states that the brokers have the plugin of groups."""
    return spec is not None and spec.brokers.callback is not None and spec.brokers.callback.name == GROUP_CALLBACK


_PLUGIN: Final = "the brokers have the plugin of groups: members of a group share its limit where no quota names them"


def _written(spec: ClusterSpec | None) -> str | None:
    """Return why answers are not known, by the Cluster manifest."""
    if spec is None or spec.brokers.callback is None or has_group_plugin(spec):
        return None
    return (
        "by the Cluster manifest, the brokers resolve quotas with their own class "
        f"({display_name(spec.brokers.callback.name)} stands for it). The limit of a client is not known here. "
        "backtest asks that class"
    )


def _callback(state: CurrentState, spec: ClusterSpec | None) -> tuple[str | None, str | None]:
    """Return why the limit of a client is not known, if it is not, and a note: ``_PLUGIN`` where groups count."""
    name = state.cluster.quota_callback
    if name == GROUP_CALLBACK or (state.callback_unknown is not None and has_group_plugin(spec)):
        return None, _PLUGIN
    if state.callback_unknown is None:
        reason = (
            None
            if name is None
            else (
                f"the brokers resolve quotas with their own client.quota.callback.class, {display_name(name)}. "
                "The limit of a client is not known"
            )
        )
        return reason, reason
    if (written := _written(spec)) is not None:
        return written, written
    if state.callback_unknown == NOT_ASKED:
        who = _ORIGINS.get(state.observed.origin, "what was read")
        return None, f"{_ASSUMED}, and {who} does not show whether they have a client.quota.callback.class"
    return None, f"{_ASSUMED}. No broker answered whether they have a client.quota.callback.class: {state.callback_unknown}"


def _oddities(state: CurrentState, version: tuple[int, int] | None) -> Iterator[str]:
    if version is not None and _FIRST_WITHOUT_STATIC_DEFAULTS <= version < _FIRST_TO_ENFORCE_MUTATIONS:
        yield "Kafka 3.0 to 3.4 in KRaft mode stores controller_mutation_rate and does not enforce it"
    foreign = [entity for entity in state.entities if not entity.is_known]
    if foreign:
        types = sorted({entity_type for entity in foreign for entity_type in entity.types})
        yield (
            f"{count_of(len(foreign), 'entity has', 'entities have')} a type, or a combination of types, that Kafka "
            f"does not have ({', '.join(map(display_name, types))}). Their clients are not known, and resolve leaves them out"
        )


def _incomplete(intent: Intent) -> Iterator[str]:
    if not intent.desired.complete:
        yield "only some of the manifests count here, those that the paths name. Nothing is pruned"


def _pruned(spec: ClusterSpec, deleted: int) -> Iterator[str]:
    if deleted and spec.prune is Prune.CONFIRM:
        yield f"{deleted} entities are gone here that apply removes only once guard 'prune' is accepted"


def _version(text: str | None) -> tuple[int, int] | None:
    try:
        major, minor = (text or "").split(".")[:2]
        return int(major), int(minor)
    except ValueError:
        return None
