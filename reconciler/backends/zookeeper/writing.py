"""Writing quotas: for each entity one transaction, which happens whole or not at all, and only on what was read just before.

A transaction compares the version of the node with the one that was read, changes it, and leaves the notification that makes
brokers look. Kafka's own writers compare nothing: a writer in between is seen here as another version, and the node is read
again.

Alterations that a KRaft broker refuses are refused here, and values that a node cannot have or a broker cannot read: ZooKeeper
checks nothing, and one bad node keeps brokers from starting.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    ZookeeperError,
)

from reconciler.backends.zookeeper.node_text import (
    NodeText,
    UnreadableNodeError,
    is_readable,
    parse_node,
    read_quotas,
    stored_text,
)
from reconciler.backends.zookeeper.nodes import (
    NOTIFICATION,
    USERS,
    Acls,
    UnwritableNameError,
    clients_of,
    node_path,
    notification,
    parents,
)
from reconciler.backends.zookeeper.session import Pipeline, Task
from reconciler.backends.zookeeper.transaction_checks import ControllerChangedError, LockLostError, TransactionChecks
from reconciler.errors import AuthorizationError, BackendError
from reconciler.logs import log_event
from reconciler.model import (
    KNOWN_KEYS,
    Alteration,
    AlterationResult,
    Entity,
    EntityType,
    QuotaKey,
    ValueType,
    escaped,
    same_value,
)
from reconciler.resolution import INVALID_REQUEST, IpVerdict, ip_verdict, refusal

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_log: Final = logging.getLogger(__name__)

UNKNOWN_SERVER_ERROR: Final = -1
AUTHORIZATION_FAILED: Final = 31
NOT_CONTROLLER: Final = 41
"""Kafka's error codes that come nearest."""

_LOCK_LOST: Final = "the session with ZooKeeper ended meanwhile and the lock with it, so nothing more is written. Run again"
_ATTEMPTS: Final = 100
_LOST_RACES: Final = (BadVersionError, NoNodeError, NodeExistsError, NotEmptyError)
_NOT_THE_CAUSE: Final = (RolledBackError, RuntimeInconsistency)
LONGEST_PATH: Final = 150_000
"""A transaction names a path up to five times, and ZooKeeper closes the connection on a request of more than 1 MiB."""

INVALID_UPDATE_VERSION: Final = 95
"""Kafka's error code that comes nearest to "others wrote it meanwhile"."""


class QuotaWriter:
    """Writes the alterations of one call, each entity for itself. ``committed``: something may have been sent."""

    def __init__(self, client: KazooClient, pipeline: Pipeline, acls: Acls, checks: TransactionChecks) -> None:
        self._client = client
        self._pipeline = pipeline
        self._acls = acls
        self._checks = checks
        self._claimed: set[str] = set()
        self._emptied: dict[str, None] = {}
        self.committed = False

    def write(self, alterations: Sequence[Alteration]) -> list[AlterationResult]:
        """One result for each, in order. Raises kazoo's errors of the connection, after which the outcome is unknown."""
        results = self._pipeline.run(map(self._alter, alterations))
        self._pipeline.run(map(self._tidy, self._emptied))
        return results

    def check(self, alterations: Sequence[Alteration], *, nodes_of: Collection[Entity] | None) -> list[AlterationResult]:
        """What would be refused, without writing; nodes are looked at only of these entities, or (``None``) of all."""
        return self._pipeline.run(
            self._check(alteration, look=nodes_of is None or alteration.entity in nodes_of) for alteration in alterations
        )

    def _check(self, alteration: Alteration, *, look: bool) -> Task[AlterationResult]:
        if (refused := self._refusal(alteration)) is not None:
            return refused
        if look:
            node = yield from self._look(node_path(alteration.entity))
            if isinstance(answer := update_node(alteration, node), AlterationResult):
                return answer
        return AlterationResult(entity=alteration.entity)

    def _refusal(self, alteration: Alteration) -> AlterationResult | None:
        entity = alteration.entity
        if (text := zookeeper_refusal(alteration)) is not None:
            return AlterationResult(entity=entity, error_code=INVALID_REQUEST, error=text)
        path = node_path(entity)
        try:
            for folder in (NOTIFICATION, path):
                if self._acls.acl_for(folder) is None:
                    text = f"the cluster has no place for it in ZooKeeper ({path}): its Kafka is too old for this kind of quota"
                    return AlterationResult(entity=entity, error_code=INVALID_REQUEST, error=text)
        except AuthorizationError as error:
            return AlterationResult(entity=entity, error_code=AUTHORIZATION_FAILED, error=str(error))
        return None

    def _alter(self, alteration: Alteration) -> Task[AlterationResult]:
        if (refused := self._refusal(alteration)) is not None:
            return refused
        path = node_path(alteration.entity)
        try:
            return (yield from self._until_done(alteration, path))
        except NoAuthError:
            msg = f"ZooKeeper does not let this client write {path}. It needs the identity of the brokers"
            return AlterationResult(entity=alteration.entity, error_code=AUTHORIZATION_FAILED, error=msg)

    def _until_done(self, alteration: Alteration, path: str) -> Task[AlterationResult]:
        # What had none of these keys when it was planned is most often not there at all: then there is nothing to read.
        looked = not _is_new(alteration)
        for _ in range(_ATTEMPTS):
            node = (yield from self._look(path)) if looked else None
            looked = True
            intended = update_node(alteration, node)
            if isinstance(intended, AlterationResult):
                return intended
            try:
                return (yield from self._commit(alteration, path, node, intended))
            except LockLostError:
                return AlterationResult(entity=alteration.entity, error_code=NOT_CONTROLLER, error=_LOCK_LOST)
            except ControllerChangedError:
                log_event(_log, "another controller was elected", level=logging.INFO, node=path)
                try:
                    self._checks.renew()
                except BackendError as error:
                    return AlterationResult(entity=alteration.entity, error_code=NOT_CONTROLLER, error=str(error))
                self._claimed.difference_update(parents(path))
            except _LOST_RACES as error:
                log_event(_log, "node changed meanwhile", level=logging.INFO, node=path, reason=type(error).__name__)
                self._claimed.difference_update(parents(path))
        msg = f"others write {path} all the time: {_ATTEMPTS} attempts to write it in between failed"
        return AlterationResult(entity=alteration.entity, error_code=INVALID_UPDATE_VERSION, error=msg)

    def _look(self, path: str) -> Task[NodeRead | None]:
        try:
            data, stat = yield self._client.get_async(path)
        except NoNodeError:
            return None
        return NodeRead(data=data, version=stat.version, created=stat.czxid, has_children=stat.numChildren > 0)

    def _commit(self, alteration: Alteration, path: str, node: NodeRead | None, text: NodeText) -> Task[AlterationResult]:
        transaction = self._client.transaction()
        self._checks.add_to(transaction)
        if node is None:
            acl = self._acls.acl_for(path)
            for parent in (yield from self._missing_parents(path)):
                transaction.create(parent, b"", acl)
            transaction.create(path, text.encoded(), acl)
        elif text.is_empty and not node.has_children:
            transaction.delete(path, node.version)
        else:
            transaction.set_data(path, text.encoded(), node.version)
        transaction.create(NOTIFICATION, notification(path), self._acls.acl_for(NOTIFICATION), sequence=True)
        self.committed = True
        answers = self._checks.passed((yield transaction.commit_async()))
        _raise_cause(answers)
        if text.is_empty and (user := _user_of(path)) is not None:
            self._emptied[user] = None
        created = getattr(answers[0], "czxid", None)
        if node is not None and created is not None and created != node.created:
            # The version was equal by chance. It cannot be undone: what the new node held is not known.
            msg = f"{path} was deleted and made anew while it was written: check that it has its quotas and credentials"
            return AlterationResult(entity=alteration.entity, error_code=UNKNOWN_SERVER_ERROR, error=msg)
        return AlterationResult(entity=alteration.entity)

    def _missing_parents(self, path: str) -> Task[Sequence[str]]:
        """The nodes above that this transaction must make; those behind it in flight find them there."""
        above = parents(path)
        if not above or above[-1] in self._claimed:
            return ()
        missing: list[str] = []
        for parent in above:
            stat = yield self._client.exists_async(parent)
            missing += [parent] if stat is None else []
        if above[-1] in self._claimed:
            return ()
        self._claimed.add(above[-1])
        return missing

    def _tidy(self, user: str) -> Task[None]:
        """Take away what the last client id of a user leaves, as brokers do since 3.5. To brokers it makes no difference."""
        clients = clients_of(user)
        try:
            below = yield self._client.exists_async(clients)
            if below is None or below.numChildren or below.dataLength:
                return
            data, stat = yield self._client.get_async(user)
            transaction = self._client.transaction()
            self._checks.add_to(transaction)
            transaction.delete(clients, below.version)
            if stat.numChildren == 1 and parse_node(data).is_empty:
                transaction.delete(user, stat.version)
            yield transaction.commit_async()
        except (ZookeeperError, UnreadableNodeError):
            return


def _is_new(alteration: Alteration) -> bool:
    before = alteration.before
    return before is not None and all(before.get(key, 0.0) is None for key in alteration.ops) and _sets(alteration)


def _sets(alteration: Alteration) -> bool:
    return any(value is not None for value in alteration.ops.values())


def _user_of(path: str) -> str | None:
    if not path.startswith(f"{USERS}/"):
        return None
    above = parents(path)
    return above[0] if above else path


def _raise_cause(answers: Sequence[Any]) -> None:
    """A failed transaction answers with one error for each of its parts; all but one only state that it was rolled back."""
    errors = [answer for answer in answers if isinstance(answer, Exception)]
    if errors:
        raise next((error for error in errors if not isinstance(error, _NOT_THE_CAUSE)), errors[0])


def zookeeper_refusal(alteration: Alteration) -> str | None:
    """Why the alteration is not written; ``None`` when it can be."""
    if refused := refusal(alteration):
        return refused
    try:
        if len(node_path(alteration.entity)) > LONGEST_PATH:
            return f"the name is too long for ZooKeeper: as a path it has more than {LONGEST_PATH} characters"
    except UnwritableNameError as error:
        return str(error)
    sets = {key: value for key, value in alteration.ops.items() if value is not None}
    if sets and (refused := _address_refusal(alteration.entity)):
        return refused
    for key, value in sets.items():
        if QuotaKey(key).value_type is not ValueType.DOUBLE and not value.is_integer():
            return f"Configuration {key} must be a whole number: in ZooKeeper brokers keep its digits, and cannot read others"
    return None


def _address_refusal(entity: Entity) -> str | None:
    address = entity.name(EntityType.IP.value)
    if not isinstance(address, str):
        return None
    if ip_verdict(address) is not IpVerdict.LITERAL:
        return (
            f"{address} is not a literal address. Nothing looks names up before ZooKeeper is written, and a broker that cannot "
            "resolve one does not start"
        )
    if "%" in address:
        return f"{address} has a zone: brokers would take the node's name for percent-encoded. Give the address without it"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRead:
    """A node as it was read. ``version`` rises with each write; ``created`` distinguishes later nodes of the same path."""

    data: bytes | None
    version: int
    created: int
    has_children: bool


def update_node(alteration: Alteration, node: NodeRead | None) -> NodeText | AlterationResult:
    """What the node shall be, or the answer when nothing is to be written."""
    try:
        text = parse_node(node.data if node is not None else None)
    except UnreadableNodeError as error:
        return _refused(alteration, f"this entity's node in ZooKeeper stays as it is: {error}")
    config, ops = text.values(), alteration.ops
    foreign = [key for key, value in ops.items() if value is None and key not in KNOWN_KEYS and key in config]
    if foreign:
        return _refused(alteration, f"{foreign[0]} is not a quota. kafka-quotas does not remove it")
    live = read_quotas(config, alteration.entity.types).quotas
    if all(_holds(config, live, key, value) for key, value in ops.items()):
        return AlterationResult(entity=alteration.entity)
    for key, value in (alteration.before or {}).items():
        if not same_value(live.get(key), value):
            reason = f"{alteration.entity} {key} was {_text(value)} when planned and is {_text(live.get(key))} now"
            return AlterationResult(entity=alteration.entity, error_code=INVALID_UPDATE_VERSION, error=reason, stale=True)
    texts = {key: None if value is None else stored_text(key, value) for key, value in ops.items()}
    intended = text.altered(texts)
    broken = [key for key, value in intended.values().items() if not is_readable(key, value)]
    if broken:
        return _refused(
            alteration, f"the node of this entity has {escaped(broken[0])}, which brokers cannot read. Correct that by hand first"
        )
    return intended


def _holds(config: Mapping[str, object], live: Mapping[str, float], key: str, value: float | None) -> bool:
    if value is None:
        return key not in config
    return same_value(live.get(key), value) and is_readable(key, config[key])


def _refused(alteration: Alteration, text: str) -> AlterationResult:
    return AlterationResult(entity=alteration.entity, error_code=INVALID_REQUEST, error=text)


def _text(value: float | None) -> str:
    return "not set" if value is None else f"{value:.17g}"
