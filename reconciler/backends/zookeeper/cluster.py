"""A cluster whose quotas live in ZooKeeper (Kafka up to 3.9), read and written there without its brokers.

The lock lets one run write at a time: a node below ``/kafka-quotas/lock``, inside the chroot and outside what Kafka reads, that
names its owner and ends with the owner's session. It has the ACL of the folder of change notifications: a client that may write
quotas may take the lock. The last run to leave takes the two folders away; where a run died, the next one does.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kazoo.exceptions import KazooException, LockTimeout, NoAuthError, NodeExistsError, NoNodeError

from reconciler.backends.zookeeper.nodes import (
    BROKER_IDS,
    CLIENTS,
    IPS,
    NOTIFICATION,
    USERS,
    Acls,
    UnreadableNodeError,
    address_of_node,
    clients_of,
    name_of_node,
    parse_node,
    read_quotas,
)
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
from reconciler.backends.zookeeper.writing import QuotaWriter, TransactionChecks, require_kafka, write_refused
from reconciler.errors import (
    AuthorizationError,
    LockedError,
    OtherClusterError,
    OutcomeUnknownError,
    RequestRefusedError,
    UnreachableError,
    UnsupportedClusterError,
)
from reconciler.logs import log_event, timed_event
from reconciler.model import (
    Alteration,
    AlterationResult,
    ClusterIdentity,
    CurrentState,
    Entity,
    EntityName,
    EntityType,
    Observed,
    ObservedFrom,
    Quotas,
    UnreadableNode,
    escaped,
)
from reconciler.ports import BrokerNode, EntityFilter, ReplicationThrottles
from reconciler.resolution import UNSUPPORTED_VERSION, answer, filter_refusal, literal_address

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock


_log: Final = logging.getLogger(__name__)
_CLUSTER_ID: Final = "/cluster/id"


_USER: Final = EntityType.USER.value
_CLIENT: Final = EntityType.CLIENT_ID.value
_IP: Final = EntityType.IP.value
_FOLDERS: Final = {USERS: _USER, CLIENTS: _CLIENT, IPS: _IP}
_ANY_QUOTA: Final = {"": 0.0}
_UNREACHED: Final = "brokers never look for its name, so it applies to no client"
_NO_ADDRESS: Final = "the node's name is not an address that brokers can resolve. A broker that starts may fail on it"
HOME: Final = "/kafka-quotas"
FOLDER: Final = f"{HOME}/lock"
_WAIT_S: Final = 1.0
"""Long enough for a client that is just leaving."""
_ATTEMPTS: Final = 5
_LONGEST: Final = 300


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
        self._known: ClusterIdentity | None = None

    @classmethod
    def open(cls, settings: ZooKeeperSettings, *, name: str | None = None) -> Self:
        """Connect. Raises ``UnreachableError``, ``AuthenticationError``, ``UnsupportedClusterError`` (no Kafka lives there)."""
        client = open_client(settings)
        cluster = cls(
            client, name=name, principal=settings.security.principal, pipeline=Pipeline(answer_seconds=settings.request_seconds)
        )
        try:
            with translate_errors():
                require_kafka(client)
        except BaseException:
            cluster.close()
            raise
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
            raise OtherClusterError(msg)
        return now

    def brokers(self) -> Sequence[BrokerNode]:
        """Return no broker: quotas are read from ZooKeeper, and no broker can be asked for its own."""
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
        concerned = (node for node in nodes.unreadable if _concerns(entity_filter, node))
        unreadable = tuple(sorted(concerned, key=lambda node: node.path))
        return CurrentState(
            cluster=self.identity(), observed=observed, entities=entities, unreadable=unreadable, brokers=self._broker_ids()
        )

    def replication_throttles(self) -> ReplicationThrottles:
        """Return the throttles of replication on brokers and topics, and the reassignments that run. Raises ``BackendError``."""
        from reconciler.backends.zookeeper.leftovers import read_throttles

        with translate_errors():
            return read_throttles(self._client, self._pipeline)

    def scram_users(self) -> frozenset[str]:
        """Return the users with SCRAM credentials. Raises ``BackendError``, for want of the right to see them, too."""
        from reconciler.backends.zookeeper.leftovers import read_scram_users

        with translate_errors():
            return read_scram_users(self._client, self._pipeline)

    def nodes_without_quotas(self) -> Mapping[str, int | None]:
        """Return the nodes of entities without any setting, by path with their versions, in the order to remove them."""
        from reconciler.backends.zookeeper.leftovers import removable_nodes

        nodes = self._read(EntityFilter())
        return dict(removable_nodes(nodes.empty, nodes.clients))

    def _broker_ids(self) -> tuple[int, ...]:
        """Ids of the brokers that are up: their nodes are ephemeral."""
        with translate_errors():
            try:
                names = self._client.get_children(BROKER_IDS)
            except NoNodeError:
                return ()
        return tuple(sorted(int(name) for name in names if name.isdecimal()))

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        """Return what ZooKeeper has for the entities that match.

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
        with timed_event(_log, "alterations answered", entities=len(alterations), validate_only=validate_only):
            try:
                return writer.check(alterations) if validate_only else writer.write(alterations)
            except CLIENT_ERRORS as error:
                if not writer.committed:
                    raise translated_error(error) from error
                log_event(_log, "answer to a write lost", level=logging.INFO, reason=type(error).__name__)
                msg = f"the answer to a write was lost: {translated_error(error)}. It may or may not have been done"
                raise OutcomeUnknownError(msg) from error

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
        with translate_errors():
            if not is_read_only(self._client):
                # The server that answers may not have seen yet what another one has written.
                self._client.sync("/")
            with timed_event(_log, "nodes read") as event:
                nodes = read_nodes(self._client, self._pipeline)
                event |= {"entities": len(nodes.entities), "unreadable": len(nodes.unreadable)}
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


def _require_one_each(alterations: Sequence[Alteration]) -> None:
    seen: set[Entity] = set()
    for alteration in alterations:
        if not alteration.ops:
            raise ValueError(f"the alteration of {alteration.entity} has no ops")
        if alteration.entity in seen:
            raise ValueError(f"{alteration.entity} is altered twice in one request")
        seen.add(alteration.entity)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNodes:
    """What was read. An entity without a quota is not in ``entities``: its node may have credentials only, or nothing at all."""

    entities: dict[Entity, Quotas] = field(default_factory=dict)
    unreadable: list[UnreadableNode] = field(default_factory=list)
    empty: dict[str, int] = field(default_factory=dict)
    """By path, the version of each node without any setting."""
    clients: dict[str, int] = field(default_factory=dict)
    """By path, how many client-ids the node of a user has."""


class _Place(NamedTuple):
    """One node to read: its path and name, what its last part names, and the parts of the entity above it."""

    path: str
    node: str
    kind: str
    above: tuple[tuple[str, EntityName], ...] | None = ()
    """``None``: it is below a user that no broker looks for."""


def read_nodes(client: KazooClient, pipeline: Pipeline) -> ReadNodes:
    """Read the nodes of all entities. Raises kazoo's errors."""
    nodes = ReadNodes()
    folders = list(pipeline.ask(client.get_children_async, _FOLDERS))
    tops = [_Place(f"{folder}/{node}", node, _FOLDERS[folder]) for folder, names in folders for node in names or ()]
    users, below = _read_into(nodes, client, pipeline, tops), []
    for user, names in pipeline.ask(lambda user: client.get_children_async(clients_of(user.path)), users):
        name = name_of_node(user.node)
        above = None if name is None else ((_USER, name),)
        nodes.clients[user.path] = len(names or ())
        below += [_Place(f"{clients_of(user.path)}/{node}", node, _CLIENT, above) for node in names or ()]
    _read_into(nodes, client, pipeline, below)
    return nodes


def _read_into(nodes: ReadNodes, client: KazooClient, pipeline: Pipeline, places: Iterable[_Place]) -> list[_Place]:
    """Take over what the nodes at these places state, and return the users with client-ids among them."""
    users = []
    for place, read in pipeline.ask(lambda place: client.get_async(place.path), places):
        if read is not None:
            data, stat = read
            _take(nodes, place, data, stat.version)
            users += [place] if stat.numChildren and place.kind == _USER else []
    return users


def _concerns(entity_filter: EntityFilter, node: UnreadableNode) -> bool:
    """Whether a node may be one that a filter asks for. Of a node without an entity only the type is known."""
    if node.entity is not None:
        return bool(answer(entity_filter, {node.entity: _ANY_QUOTA}))
    asked = {component.entity_type for component in entity_filter.components}
    return not asked or any(kind in asked for folder, kind in _FOLDERS.items() if node.path.startswith(f"{folder}/"))


def _take(nodes: ReadNodes, place: _Place, data: bytes | None, version: int) -> None:
    name = address_of_node(place.node) if place.kind == _IP else name_of_node(place.node)
    if name is None or place.above is None:
        reason = _NO_ADDRESS if place.kind == _IP else _UNREACHED
        if data:
            nodes.unreadable.append(UnreadableNode(path=place.path, reason=reason))
        return
    entity = Entity(parts=(*place.above, (place.kind, name)))
    try:
        node = parse_node(data)
        quotas, unreadable = read_quotas(node.config, entity.types)
    except UnreadableNodeError as error:
        nodes.unreadable.append(UnreadableNode(path=place.path, reason=str(error), entity=entity))
        return
    if node.is_empty:
        nodes.empty[place.path] = version
    if quotas:
        nodes.entities[entity] = quotas
    if place.kind == _IP and isinstance(name, str) and ":" in name and literal_address(name.strip("[]")) is None:
        # No host name has a colon, so each broker that starts looks it up in vain.
        unreadable = (*unreadable, _NO_ADDRESS)
    if unreadable:
        nodes.unreadable.append(UnreadableNode(path=place.path, reason="; ".join(unreadable), entity=entity))


@contextlib.contextmanager
def hold_lock(client: KazooClient, holder: str) -> Iterator[str]:
    """Keep the lock; the path of its node. Raises ``LockedError`` naming who has it, or another ``BackendError``."""
    with translate_errors():
        lock = _acquired(client, holder)
    log_event(_log, "lock acquired", level=logging.INFO, node=f"{FOLDER}/{lock.node}", holder=holder)
    try:
        yield f"{FOLDER}/{lock.node}"
    finally:
        # Whatever fails here, the lock ends with the session.
        with contextlib.suppress(*CLIENT_ERRORS):
            lock.release()
            log_event(_log, "lock released", level=logging.INFO)
        with contextlib.suppress(*CLIENT_ERRORS):
            client.delete(FOLDER)
            client.delete(HOME)


def _acquired(client: KazooClient, holder: str) -> Lock:
    # The recipe gives its nodes the client's own ACL.
    client.default_acl = Acls(client).acl_for(NOTIFICATION)
    for _ in range(_ATTEMPTS):
        lock = client.Lock(FOLDER, holder)
        try:
            for path in (HOME, FOLDER):
                with contextlib.suppress(NodeExistsError):
                    client.create(path, b"")
            if lock.acquire(timeout=_WAIT_S):
                return lock
        except NoNodeError:
            continue  # a client that left took the folders away
        except NoAuthError:
            raise AuthorizationError(f"the lock cannot be taken: {write_refused(HOME)}") from None
        except LockTimeout:
            pass
        _refuse(lock)
    raise UnreachableError(f"the lock at {FOLDER} could not be taken: other runs take and leave it all the time. Try again")


def _refuse(lock: Lock) -> None:
    try:
        contenders = lock.contenders()
    except KazooException:
        contenders = []
    holder = escaped(str(contenders[0])[:_LONGEST]) if contenders else "a run that has ended since"
    msg = (
        f"another run has the lock of this cluster ({FOLDER} in ZooKeeper): {holder}. Nothing was written. Wait until that run "
        "has ended. ZooKeeper removes the lock of a run that died within half a minute"
    )
    raise LockedError(msg)
