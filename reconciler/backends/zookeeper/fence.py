"""What every transaction compares besides the node it changes, so that nothing is written once it is no longer so.

The lock is ours: a session that ended without our noticing has lost it. And the controller is the one for which the checks were
made: while a cluster is migrated, a KRaft controller takes over in the middle of anything.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import BadVersionError, NoNodeError

from reconciler.backends.zookeeper.checks import CONTROLLER_EPOCH, require_writable
from reconciler.logs import log_event

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_log: Final = logging.getLogger(__name__)

_BROKEN: Final = (NoNodeError, BadVersionError)


class LockLostError(Exception):
    """The session ended, and the lock with it; nothing of the transaction was done."""


class ControllerChangedError(Exception):
    """Another controller was elected since the checks; nothing of the transaction was done. ``renew``, then try again."""


class Fence:
    """``lock`` is the path of our lock's node, while we hold one."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._is_checked = False
        self._epoch: int | None = None
        self.lock: str | None = None

    def require_writable(self) -> None:
        """Make the checks, unless they were made. Raises as ``checks.require_writable``."""
        if not self._is_checked:
            self.renew()

    def renew(self) -> None:
        """Make the checks anew. Raises as ``checks.require_writable``."""
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
