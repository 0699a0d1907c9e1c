"""Writing quotas: for each entity one transaction, which happens whole or not at all, and only on what was read just before.

A transaction compares the version of the node with the one that was read, changes it, and leaves the notification that makes
brokers look. Kafka's own writers compare nothing: a writer in between is seen here as another version, and the node is read
again. Alterations that a KRaft broker refuses are refused here, and values that a node cannot have or a broker cannot read:
ZooKeeper checks nothing, and one bad node keeps brokers from starting.

Before the first write: the tree is a Kafka's, Kafka takes its quotas from it, and this client may write. In each transaction: the
lock is ours, since a session that ended unnoticed has lost it. And the controller is the one for which the checks were made: a
KRaft controller can take over at any moment while a cluster is migrated. Sources: Kafka's ``ZkData`` and ``KafkaZkClient`` up
to 3.9.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping, Sequence
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
)

from reconciler.backends.zookeeper.nodes import (
    BROKER_IDS,
    CLIENTS,
    CONFIG,
    IPS,
    NOTIFICATION,
    USERS,
    Acls,
    NodeText,
    UnreadableNodeError,
    UnwritableNameError,
    is_readable,
    node_path,
    notification,
    parents,
    parse_node,
    read_quotas,
    stored_text,
)
from reconciler.backends.zookeeper.session import Pipeline, Task, is_read_only
from reconciler.errors import AuthorizationError, BackendError, UnsupportedClusterError
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
from reconciler.resolution import INVALID_REQUEST, literal_address, refusal
from reconciler.text import number_text

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


CONTROLLER_EPOCH: Final = "/controller_epoch"
_CONTROLLER: Final = "/controller"
_MIGRATION: Final = "/migration"
_CHANGES: Final = NOTIFICATION.rpartition("/")[0]
_PROBE: Final = "kafka-quotas-probe-"
_BROKERS_INSTEAD: Final = (
    "Nothing was written. Change quotas through its brokers: --bootstrap-server, or bootstrapServers in the Cluster manifest"
)
_BROKEN: Final = (NoNodeError, BadVersionError)


class QuotaWriter:
    """Writes the alterations of one call, each entity for itself. ``committed``: something may have been sent."""

    def __init__(self, client: KazooClient, pipeline: Pipeline, acls: Acls, checks: TransactionChecks) -> None:
        self._client = client
        self._pipeline = pipeline
        self._acls = acls
        self._checks = checks
        self.committed = False

    def write(self, alterations: Sequence[Alteration]) -> list[AlterationResult]:
        """One result for each, in order. Raises kazoo's errors of the connection, after which the outcome is unknown."""
        return self._pipeline.run(map(self._alter, alterations))

    def check(self, alterations: Sequence[Alteration]) -> list[AlterationResult]:
        """Return the results of a write without writing."""
        return self._pipeline.run(map(self._check, alterations))

    def _check(self, alteration: Alteration) -> Task[AlterationResult]:
        if (refused := self._refusal(alteration)) is not None:
            return refused
        updated = update_node(alteration, (yield from self._look(node_path(alteration.entity))))
        return updated if isinstance(updated, AlterationResult) else AlterationResult(entity=alteration.entity)

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
        for _ in range(_ATTEMPTS):
            node = yield from self._look(path)
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
            except _LOST_RACES as error:
                log_event(_log, "node changed meanwhile", level=logging.INFO, node=path, reason=type(error).__name__)
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
            for parent in parents(path):
                if (yield self._client.exists_async(parent)) is None:
                    transaction.create(parent, b"", acl)
            transaction.create(path, text.encoded(), acl)
        elif text.is_empty and not node.has_children:
            transaction.delete(path, node.version)
        else:
            transaction.set_data(path, text.encoded(), node.version)
        transaction.create(NOTIFICATION, notification(path), self._acls.acl_for(NOTIFICATION), sequence=True)
        self.committed = True
        answers = self._checks.passed((yield transaction.commit_async()))
        if errors := [answer for answer in answers if isinstance(answer, Exception)]:
            # A failed transaction has one for each of its parts; all but one only state that it was rolled back.
            raise next((error for error in errors if not isinstance(error, _NOT_THE_CAUSE)), errors[0])
        created = getattr(answers[0], "czxid", None)
        if node is not None and created is not None and created != node.created:
            # The version was equal by chance. It cannot be undone: what the new node held is not known.
            msg = f"{path} was deleted and made anew while it was written: check that it has its quotas and credentials"
            return AlterationResult(entity=alteration.entity, error_code=UNKNOWN_SERVER_ERROR, error=msg)
        return AlterationResult(entity=alteration.entity)


def zookeeper_refusal(alteration: Alteration) -> str | None:
    """Return why the alteration is not written; ``None`` when it can be."""
    if refused := refusal(alteration, finite_only=False):
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
    if literal_address(address) is None:
        return (
            f"{address} is not a literal address. Nothing looks names up before ZooKeeper is written, and a broker that cannot "
            "resolve one does not start"
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRead:
    """A node as it was read. ``version`` rises with each write; ``created`` distinguishes later nodes of the same path."""

    data: bytes | None
    version: int
    created: int
    has_children: bool


def update_node(alteration: Alteration, node: NodeRead | None) -> NodeText | AlterationResult:
    """Return the node's new text, or the answer when nothing is to be written."""
    try:
        text = parse_node(node.data if node is not None else None)
    except UnreadableNodeError as error:
        return _refused(alteration, f"this entity's node in ZooKeeper stays as it is: {error}")
    config, ops = text.config, alteration.ops
    foreign = [key for key, value in ops.items() if value is None and key not in KNOWN_KEYS and key in config]
    if foreign:
        return _refused(alteration, f"{foreign[0]} is not a quota. kafka-quotas does not remove it")
    live, _ = read_quotas(config, alteration.entity.types)
    if all(_holds(config, live, key, value) for key, value in ops.items()):
        return AlterationResult(entity=alteration.entity)
    for key, value in (alteration.before or {}).items():
        if not same_value(live.get(key), value):
            reason = f"{alteration.entity} {key} was {number_text(value)} when planned and is {number_text(live.get(key))} now"
            return AlterationResult(entity=alteration.entity, error_code=INVALID_UPDATE_VERSION, error=reason, stale=True)
    texts = {key: None if value is None else stored_text(key, value) for key, value in ops.items()}
    intended = text.altered(texts)
    broken = [key for key, value in intended.config.items() if not is_readable(key, value)]
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


def require_writable(client: KazooClient) -> int | None:
    """Check that quotas can be written; returns the version of the controller's epoch, which each new controller changes.

    ``None`` when no controller was ever elected. Raises ``UnsupportedClusterError`` or ``AuthorizationError`` with the way out,
    and kazoo's errors.
    """
    if is_read_only(client):
        raise UnsupportedClusterError(
            "this ZooKeeper server is read-only: it has lost the majority of its ensemble. Nothing was written. Bring the other "
            "servers back, or name them all, so that one in the majority is found"
        )
    require_kafka(client)
    stat = client.exists(CONTROLLER_EPOCH)
    _require_not_kraft(client)
    if not client.get_children(BROKER_IDS):
        raise UnsupportedClusterError(
            "no broker is registered in this ZooKeeper: either all are down, or the cluster was migrated "
            f"to KRaft and what is here is left over from before. {_BROKERS_INSTEAD}"
        )
    # ZooKeeper itself is asked, with transactions whose last part is refused in any case, so that nothing of them is done.
    _probe(client, _CHANGES)
    for folder in (USERS, CLIENTS, IPS):
        if _is_there(client, folder):
            _probe(client, folder)
    return None if stat is None else int(stat.version)


def require_kafka(client: KazooClient) -> None:
    """Raise ``UnsupportedClusterError`` when it is not below our chroot that a Kafka lives."""
    missing = [path for path in (BROKER_IDS, _CHANGES, USERS, CLIENTS) if not _is_there(client, path)]
    if not missing:
        return
    here = f"below {client.chroot}" if client.chroot else "at the root"
    homes = [f"{client.chroot}/{child}" for child in client.get_children("/") if _is_there(client, f"/{child}{BROKER_IDS}")]
    hint = f". A Kafka cluster is below {', '.join(map(escaped, homes))}" if homes else ""
    raise UnsupportedClusterError(
        f"what ZooKeeper has {here} is not the tree of a Kafka cluster: there is no {missing[0]}. Nothing was written. The "
        f"chroot is what stands after the servers in the brokers' zookeeper.connect{hint}"
    )


def _is_there(client: KazooClient, path: str) -> bool:
    """Servers of 3.8 and newer show that a node exists only to clients that may read it, and refuse others."""
    try:
        return client.exists(path) is not None
    except NoAuthError:
        return True


def _require_not_kraft(client: KazooClient) -> None:
    if _is_there(client, _MIGRATION):
        raise UnsupportedClusterError(
            "this cluster is being migrated to KRaft, or was (ZooKeeper has /migration): its KRaft controller has the quotas, "
            f"and writes them to ZooKeeper at most as a copy. {_BROKERS_INSTEAD}"
        )
    try:
        controller = json.loads(client.get(_CONTROLLER)[0])
    except (NoNodeError, ValueError):
        return
    epoch = controller.get("kraftControllerEpoch") if isinstance(controller, dict) else None
    if isinstance(epoch, int) and epoch >= 0:
        raise UnsupportedClusterError(
            "a KRaft controller controls this cluster (seen in ZooKeeper's /controller): it has the quotas, and writes them to "
            f"ZooKeeper at most as a copy. {_BROKERS_INSTEAD}"
        )


def _probe(client: KazooClient, folder: str) -> None:
    transaction = client.transaction()
    transaction.create(f"{folder}/{_PROBE}{secrets.token_hex(8)}", b"")
    transaction.check(f"{CONFIG}/{_PROBE}{secrets.token_hex(8)}", 0)
    if any(isinstance(answer, NoAuthError) for answer in transaction.commit()):
        raise AuthorizationError(write_refused(folder))


def write_refused(path: str) -> str:
    """The message when ACLs of ZooKeeper forbid writing at a path."""
    return (
        f"ZooKeeper's ACLs do not let this client write {path}. Nothing was written. Log in as a user who may, most "
        "often as the brokers do. In the file of --command-config, set zookeeper.sasl.jaas.config, or a certificate in "
        "zookeeper.ssl.keystore.location"
    )


class LockLostError(Exception):
    """The session ended, and the lock with it; nothing of the transaction was done."""


class ControllerChangedError(Exception):
    """Another controller was elected since the checks; nothing of the transaction was done. ``renew``, then try again."""


class TransactionChecks:
    """``lock`` is the path of this session's lock node; ``None`` without a lock."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._is_checked = False
        self._epoch: int | None = None
        self.lock: str | None = None

    def require_writable(self) -> None:
        """Check once that quotas can be written. Raises ``UnsupportedClusterError``, ``AuthorizationError``, kazoo's errors."""
        if not self._is_checked:
            self.renew()

    def renew(self) -> None:
        """Check again. Raises ``UnsupportedClusterError``, ``AuthorizationError``, and kazoo's errors."""
        before, self._epoch = self._epoch, require_writable(self._client)
        self._is_checked = True
        log_event(
            _log, "checked that quotas may be written", level=logging.INFO, controller_epoch=self._epoch, epoch_before=before
        )

    def add_to(self, transaction: Any) -> None:
        """Put the comparisons first into a transaction."""
        if self.lock is not None:
            transaction.check(self.lock, -1)
        if self._epoch is not None:
            transaction.check(CONTROLLER_EPOCH, self._epoch)

    def passed(self, answers: Sequence[Any]) -> Sequence[Any]:
        """The answers to the other parts of a transaction. Raises ``LockLostError`` or ``ControllerChangedError``."""
        own = iter(answers)
        if self.lock is not None and isinstance(next(own), _BROKEN):
            raise LockLostError
        if self._epoch is not None and isinstance(next(own), _BROKEN):
            raise ControllerChangedError
        return tuple(own)
