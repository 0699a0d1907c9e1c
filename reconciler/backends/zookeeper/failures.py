"""kazoo's errors as ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError
from kazoo.handlers.threading import KazooTimeoutError

from reconciler.errors import AuthenticationError, AuthorizationError, BackendError, UnreachableError, UnsupportedClusterError

CLIENT_ERRORS: Final = (KazooException, KazooTimeoutError)
"""Everything that kazoo raises about the server and the connection to it."""


def failure(error: Exception) -> BackendError:
    """What went wrong, for a request that changes nothing."""
    if isinstance(error, NoAuthError):
        msg = "ZooKeeper does not let this client read the quotas: its ACLs want the identity of the brokers"
        return AuthorizationError(msg, operation="read")
    if isinstance(error, AuthFailedError):
        return AuthenticationError("ZooKeeper refused the login")
    if isinstance(error, KazooTimeoutError):
        return UnreachableError("ZooKeeper does not answer in time")
    name = type(error).__name__
    lost = name in {
        "ConnectionLoss",
        "SessionExpiredError",
        "ConnectionClosedError",
        "OperationTimeoutError",
        "SessionMovedError",
    }
    if lost:
        return UnreachableError(f"the connection to ZooKeeper was lost ({name})")
    return UnsupportedClusterError(f"ZooKeeper answers with an error that it should not: {name}")


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Raise ``BackendError`` children for what kazoo raises inside."""
    try:
        yield
    except CLIENT_ERRORS as error:
        raise failure(error) from error
