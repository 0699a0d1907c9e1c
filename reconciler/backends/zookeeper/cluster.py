"""A cluster whose quotas live in ZooKeeper (Kafka up to 3.9), read and written there without its brokers.

The brokers that have registered themselves there are listed only to recommend asking them instead. Source: Kafka's
``BrokerIdZNode``. Its entries do not have the release; their format has a version, 5 from Kafka 2.7 on.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from kazoo.exceptions import NoNodeError

from reconciler.backends.security.tls import server_certificates
from reconciler.backends.zookeeper.lock import hold_lock
from reconciler.backends.zookeeper.nodes import BROKER_IDS, Acls, UnwritableNameError, node_name
from reconciler.backends.zookeeper.reading import ALL_KINDS, NodeReader, ReadNodes
from reconciler.backends.zookeeper.session import (
    CLIENT_ERRORS,
    Pipeline,
    close_client,
    is_read_only,
    open_client,
    translate_errors,
    translated_error,
)
from reconciler.backends.zookeeper.settings import ZooKeeperSettings
from reconciler.backends.zookeeper.sockets import Handler
from reconciler.backends.zookeeper.transaction_checks import TransactionChecks, require_kafka
from reconciler.backends.zookeeper.writing import QuotaWriter
from reconciler.errors import OtherClusterError, OutcomeUnknownError, RequestRefusedError, UnsupportedClusterError
from reconciler.logs import log_event
from reconciler.model import (
    DEFAULT,
    Alteration,
    AlterationResult,
    Certificate,
    ClusterIdentity,
    CurrentState,
    Entity,
    EntityType,
    Observed,
    ObservedFrom,
    Quotas,
    escaped,
)
from reconciler.ports import BrokerNode, EntityFilter, FilterKind
from reconciler.resolution import UNSUPPORTED_VERSION, answer, filter_refusal

if TYPE_CHECKING:
    from kazoo.client import KazooClient


_OF_2_7: Final = 5

_log: Final = logging.getLogger(__name__)
_CLUSTER_ID: Final = "/cluster/id"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBroker:
    """A broker that is up. ``endpoint`` is its first one, as it registers itself (``SASL_SSL://b1:9093``)."""

    id: int
    endpoint: str | None
    format_version: int


def registered_brokers(client: KazooClient) -> tuple[RegisteredBroker, ...]:
    """Those that are up, by id. Raises kazoo's errors."""
    try:
        names = client.get_children(BROKER_IDS)
    except NoNodeError:
        return ()
    brokers = [broker for name in names if (broker := _broker(client, name)) is not None]
    return tuple(sorted(brokers, key=lambda broker: broker.id))


def recommendation(brokers: Sequence[RegisteredBroker]) -> str | None:
    """A note for a user who did not choose ZooKeeper on purpose; ``None`` when there is no broker to ask."""
    if not brokers:
        return None
    is_sure = all(broker.format_version >= _OF_2_7 for broker in brokers)
    place = next((f", such as {escaped(broker.endpoint)}" for broker in brokers if broker.endpoint), "")
    return (
        f"the brokers of this cluster {'are' if is_sure else 'may be'} of Kafka 2.6 or newer and can be asked themselves"
        f"{place}: prefer bootstrapServers, which checks more and shows what brokers obey (--zookeeper ends this advice)"
    )


def _broker(client: KazooClient, name: str) -> RegisteredBroker | None:
    try:
        registration = json.loads(client.get(f"{BROKER_IDS}/{name}")[0])
        endpoints = [str(endpoint) for endpoint in registration.get("endpoints") or ()]
        return RegisteredBroker(
            id=int(name), endpoint=next(iter(endpoints), None), format_version=int(registration.get("version", 0))
        )
    except (NoNodeError, ValueError, TypeError, AttributeError):
        return None


class ZooKeeperCluster:
    """A ``QuotaCluster``. Use ``open`` to connect; the object is for one thread at a time."""

    def __init__(
        self, client: KazooClient, *, name: str | None = None, principal: str | None = None, pipeline: Pipeline | None = None
    ) -> None:
        self._client = client
        self._name = name
        self._principal = principal
        self._pipeline = pipeline or Pipeline()
        self._acls = Acls(client)
        self._checks = TransactionChecks(client)
        self._notes: tuple[str, ...] = ()
        self._known: ClusterIdentity | None = None
        self._suspects: frozenset[Entity] | None = None
        """Whose nodes the last full read found unreadable; ``None`` before it."""

    @classmethod
    def open(cls, settings: ZooKeeperSettings, *, name: str | None = None, recommend_brokers: bool = False) -> Self:
        """Connect.

        Raises ``UnreachableError``, ``AuthenticationError``, and ``UnsupportedClusterError`` when no Kafka lives there.

        With ``recommend_brokers`` its state has a note that its brokers could be asked, where they can.
        """
        client = open_client(settings)
        cluster = cls(
            client, name=name, principal=settings.security.principal, pipeline=Pipeline(answer_seconds=settings.request_seconds)
        )
        try:
            with translate_errors():
                require_kafka(client)
                note = recommendation(registered_brokers(client)) if recommend_brokers else None
        except BaseException:
            cluster.close()
            raise
        cluster._notes = (note,) if note else ()
        return cluster

    def identity(self) -> ClusterIdentity:
        """Name as configured and the cluster's own id; brokers do not leave their version in ZooKeeper.

        kazoo connects again by itself, and the address may lead to another cluster then: so the id is compared before each write
        and after each read. Raises ``OtherClusterError`` when it is not the one of before.
        """
        with translate_errors():
            now = ClusterIdentity(name=self._name, id=self._cluster_id(), kafka_version=None)
        self._known = self._known or now
        if now.id != self._known.id:
            expected, actual = (escaped(each.id or "unknown") for each in (self._known, now))
            msg = (
                f"ZooKeeper has cluster {actual} now, and this command began with cluster {expected}. The command sends nothing "
                "more. Check where the address leads (DNS name, tunnel, load balancer), and plan again"
            )
            raise OtherClusterError(msg, expected=expected, actual=actual)
        return now

    def brokers(self) -> Sequence[BrokerNode]:
        """None: what is read comes from ZooKeeper, and no broker can be asked for what it has."""
        return ()

    def current_state(self) -> CurrentState:
        """Every node below the three folders, as of the last write that ZooKeeper has answered to any client."""
        return self.current_matching(EntityFilter())

    def current_matching(self, entity_filter: EntityFilter) -> CurrentState:
        """The matching part of ``current_state``.

        Raises ``RequestRefusedError`` for a filter that brokers refuse, ``BackendError``.
        """
        observed = Observed(at=datetime.datetime.now(datetime.UTC), origin=ObservedFrom.ZOOKEEPER)
        nodes = self._read(entity_filter)
        entities = answer(entity_filter, nodes.entities)
        unreadable = tuple(sorted(nodes.unreadable, key=lambda node: node.path))
        return CurrentState(
            cluster=self.identity(),
            observed=observed,
            entities=entities,
            notes=self._notes,
            unreadable=unreadable,
            brokers=self._broker_ids(),
        )

    def server_certificates(self) -> Sequence[Certificate]:
        """That of the ZooKeeper server that was connected to, as it showed it."""
        handler = self._client.handler
        return server_certificates(handler.shown) if isinstance(handler, Handler) else ()

    def _broker_ids(self) -> tuple[int, ...]:
        """Ids of the brokers that are up: their nodes are ephemeral."""
        with translate_errors():
            try:
                names = self._client.get_children(BROKER_IDS)
            except NoNodeError:
                return ()
        return tuple(sorted(int(name) for name in names if name.isdecimal()))

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        """What ZooKeeper has for the entities that match.

        Raises ``UnsupportedClusterError`` for a ``broker``, because ZooKeeper does not know what one has, and as brokers do for a
        filter that they do not take.
        """
        if broker is not None:
            raise UnsupportedClusterError(
                "ZooKeeper does not know what one broker has. Without a broker it gives what all are to have."
            )
        entities = answer(entity_filter, self._read(entity_filter).entities)
        self.identity()
        return entities

    def alter(self, alterations: Sequence[Alteration], *, validate_only: bool) -> Sequence[AlterationResult]:
        """One transaction for each entity; one result for each alteration, in their order.

        Validating writes nothing: the tool's own copy of the brokers' rules decides, and whether the node can be read. Raises
        ``ValueError`` for an entity twice or without ops; before the first write, ``UnsupportedClusterError`` or
        ``AuthorizationError`` where it would be wrong to write, or not allowed; ``OutcomeUnknownError`` when the connection broke
        after something was sent: look, and send again what is still as before.
        """
        _require_one_each(alterations)
        self.identity()
        with translate_errors():
            self._checks.require_writable()
        writer = QuotaWriter(self._client, self._pipeline, self._acls, self._checks)
        begun = time.monotonic()
        results: Sequence[AlterationResult]
        if validate_only:
            with translate_errors():
                results = writer.check(alterations, nodes_of=self._suspects)
        else:
            results = _written(writer, alterations)
        if _log.isEnabledFor(logging.DEBUG):
            codes = Counter(str(result.error_code) for result in results)
            milliseconds = round((time.monotonic() - begun) * 1000, 1)
            log_event(
                _log,
                "alterations answered",
                entities=len(alterations),
                validate_only=validate_only,
                error_codes=codes,
                milliseconds=milliseconds,
            )
        return tuple(results)

    @contextlib.contextmanager
    def exclusive(self, holder: str) -> Iterator[None]:
        """Have the lock that keeps other runs of this tool away; nothing is written any more once it is lost."""
        who = holder if self._principal is None else f"{holder}, logged in as {self._principal}"
        with hold_lock(self._client, who) as path:
            self._checks.lock = path
            try:
                yield
            finally:
                self._checks.lock = None

    def close(self) -> None:
        """Give back the connection; safe to call twice."""
        close_client(self._client)

    def _read(self, entity_filter: EntityFilter) -> ReadNodes:
        if (refused := filter_refusal(entity_filter)) is not None:
            code, words = refused
            if code == UNSUPPORTED_VERSION:
                raise UnsupportedClusterError(f"the filter was refused with error {code}: {words}")
            raise RequestRefusedError(f"the filter was refused with error {code}: {words}", error_code=code)
        kinds, users = _needed(entity_filter)
        reader = NodeReader(self._client, self._pipeline)
        with translate_errors():
            if kinds and not is_read_only(self._client):
                # The server that answers may not have seen yet what another one has written.
                self._client.sync("/")
            begun = time.monotonic()
            nodes = reader.read(kinds=kinds, users=users)
            milliseconds = round((time.monotonic() - begun) * 1000, 1)
            entities, unreadable = len(nodes.entities), len(nodes.unreadable)
        log_event(_log, "nodes read", kinds=kinds, entities=entities, unreadable=unreadable, milliseconds=milliseconds)
        if len(kinds) == len(ALL_KINDS) and users is None:
            self._suspects = frozenset(node.entity for node in nodes.unreadable if node.entity is not None)
        return nodes

    def _cluster_id(self) -> str | None:
        try:
            data, _ = self._client.get(_CLUSTER_ID)
        except NoNodeError:
            return None
        try:
            cluster_id = json.loads(data or b"")["id"]
        except (ValueError, KeyError, TypeError):
            return None
        return cluster_id if isinstance(cluster_id, str) else None


def _written(writer: QuotaWriter, alterations: Sequence[Alteration]) -> Sequence[AlterationResult]:
    try:
        return writer.write(alterations)
    except CLIENT_ERRORS as error:
        if not writer.committed:
            raise translated_error(error) from error
        log_event(_log, "answer to a write lost", level=logging.INFO, reason=type(error).__name__)
        msg = f"the answer to a write was lost: {translated_error(error)}. It may or may not have been done"
        raise OutcomeUnknownError(msg) from error


def _needed(entity_filter: EntityFilter) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Which folders have what can match, and which users, when only some can."""
    asked = {component.entity_type: component for component in entity_filter.components}
    if not asked:
        return () if entity_filter.strict else ALL_KINDS, None
    if EntityType.IP in asked:
        return (EntityType.IP.value,), None
    if EntityType.USER not in asked:
        by_user = () if entity_filter.strict else (EntityType.USER.value,)
        return (*by_user, EntityType.CLIENT_ID.value), None
    user = asked[EntityType.USER]
    if user.kind is FilterKind.SPECIFIED:
        return (EntityType.USER.value,), None
    try:
        return (EntityType.USER.value,), (node_name(DEFAULT if user.name is None else user.name),)
    except UnwritableNameError:
        return (), None


def _require_one_each(alterations: Sequence[Alteration]) -> None:
    seen: set[Entity] = set()
    for alteration in alterations:
        if not alteration.ops:
            raise ValueError(f"the alteration of {alteration.entity} has no ops")
        if alteration.entity in seen:
            raise ValueError(f"{alteration.entity} is altered twice in one request")
        seen.add(alteration.entity)
