"""Checks before the first write to ZooKeeper, and comparisons in every transaction, so that nothing is written once they fail.

Before the first write: the tree is a Kafka's, Kafka takes its quotas from it, and this client may write. In each transaction: the
lock is ours, since a session that ended unnoticed has lost it. And the controller is the one for which the checks were made: a
KRaft controller can take over at any moment while a cluster is migrated. Sources: Kafka's ``ZkData`` and ``KafkaZkClient`` up
to 3.9.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import BadVersionError, NoAuthError, NoNodeError

from reconciler.backends.zookeeper.nodes import BROKER_IDS, CLIENTS, CONFIG, IPS, NOTIFICATION, USERS
from reconciler.backends.zookeeper.session import is_read_only
from reconciler.errors import AuthorizationError, UnsupportedClusterError
from reconciler.logs import log_event
from reconciler.model import escaped

if TYPE_CHECKING:
    from kazoo.client import KazooClient


CONTROLLER_EPOCH: Final = "/controller_epoch"
_CONTROLLER: Final = "/controller"
_MIGRATION: Final = "/migration"
_CHANGES: Final = NOTIFICATION.rpartition("/")[0]
_PROBE: Final = "kafka-quotas-probe-"
_BROKERS_INSTEAD: Final = (
    "Nothing was written. Change quotas through its brokers: --bootstrap-server, or bootstrapServers in the Cluster manifest"
)

_log: Final = logging.getLogger(__name__)
_BROKEN: Final = (NoNodeError, BadVersionError)


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
    _require_allowed(client)
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


def _require_allowed(client: KazooClient) -> None:
    """Ask ZooKeeper itself, with transactions whose last part is refused in any case, so that nothing of them is done."""
    _probe(client, _CHANGES)
    for folder in (USERS, CLIENTS, IPS):
        if _is_there(client, folder):
            _probe(client, folder)


def _probe(client: KazooClient, folder: str) -> None:
    transaction = client.transaction()
    transaction.create(f"{folder}/{_PROBE}{secrets.token_hex(8)}", b"")
    transaction.check(f"{CONFIG}/{_PROBE}{secrets.token_hex(8)}", 0)
    if any(isinstance(answer, NoAuthError) for answer in transaction.commit()):
        raise AuthorizationError(write_refused(client, folder), operation="create")


def write_refused(client: KazooClient, path: str) -> str:
    """The message when ACLs of ZooKeeper forbid writing at a path. The ACLs may be unreadable. Raises kazoo's errors."""
    try:
        allowed = f" They allow {', '.join(_text(acl) for acl in client.get_acls(path)[0])}."
    except (NoAuthError, NoNodeError):
        allowed = ""
    return (
        f"ZooKeeper's ACLs do not let this client write {path}.{allowed} Nothing was written. Log in as a user who may, most "
        "often as the brokers do. In the file of --command-config, set zookeeper.sasl.jaas.config, or a certificate in "
        "zookeeper.ssl.keystore.location"
    )


def _text(acl: Any) -> str:
    letters = "".join(letter for bit, letter in ((4, "c"), (8, "d"), (1, "r"), (2, "w"), (16, "a")) if acl.perms & bit)
    who = acl.id.scheme if acl.id.scheme == "digest" else f"{acl.id.scheme}:{escaped(acl.id.id)}"
    return f"{who} ({letters})"


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
