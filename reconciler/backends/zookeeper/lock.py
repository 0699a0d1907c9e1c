"""The lock that lets one run write at a time: a ZooKeeper node that names its owner and ends with the owner's session.

It is at ``/kafka-quotas/lock``, inside the chroot and outside of what Kafka reads. Its nodes have the ACL of the folder of change
notifications: a client that may write quotas may take the lock, and one that may read there sees its owner. The last run to leave
takes the two folders away; where a run died, the next one does.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kazoo.exceptions import KazooException, LockTimeout, NoAuthError, NodeExistsError, NoNodeError

from reconciler.backends.zookeeper.nodes import NOTIFICATION, Acls
from reconciler.backends.zookeeper.session import CLIENT_ERRORS, translate_errors
from reconciler.backends.zookeeper.transaction_checks import write_refused
from reconciler.errors import AuthorizationError, LockedError, UnreachableError
from reconciler.logs import log_event
from reconciler.model import escaped

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock

_log: Final = logging.getLogger(__name__)

HOME: Final = "/kafka-quotas"
FOLDER: Final = f"{HOME}/lock"
_WAIT_S: Final = 1.0
"""Long enough for a client that is just leaving."""
_ATTEMPTS: Final = 5
_LONGEST: Final = 300


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
            _make_folders(client)
            if lock.acquire(timeout=_WAIT_S):
                return lock
        except NoNodeError:
            continue  # a client that left took the folders away
        except NoAuthError:
            raise AuthorizationError(f"the lock cannot be taken: {write_refused(client, HOME)}", operation="create") from None
        except LockTimeout:
            pass
        _refuse(lock)
    raise UnreachableError(f"the lock at {FOLDER} could not be taken: other runs take and leave it all the time. Try again")


def _make_folders(client: KazooClient) -> None:
    for path in (HOME, FOLDER):
        with contextlib.suppress(NodeExistsError):
            client.create(path, b"")


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
    raise LockedError(msg, holder=holder)
