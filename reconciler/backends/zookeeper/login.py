"""kazoo's connection with a login of our own, and without a thread that dies with a traceback.

kazoo would log in with a library that is no longer kept, and that takes only passwords in ASCII.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL
from kazoo.protocol.states import KeeperState

from reconciler.backends.zookeeper.digest_md5 import DigestError, digest_answer
from reconciler.logs import log_event

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from reconciler.backends.zookeeper.settings import DigestLogin

_log: Final = logging.getLogger(__name__)

_URI: Final = "zookeeper/zk-sasl-md5"
"""Servers take no other, whatever they are called."""


class LoginConnection(ConnectionHandler):  # type: ignore[misc]  # the library has no types
    """Put in place of a client's own.

    ``patience``: seconds for each step of a login; ``waiting``: how many a request waits for a broken connection to come back.
    """

    def __init__(
        self, client: KazooClient, *, login: DigestLogin | None, patience: float, waiting: float, logger: logging.Logger
    ) -> None:
        super().__init__(client, client._conn_retry.copy(), logger=logger, sasl_options=None if login is None else {})  # noqa: SLF001 - what the client itself does
        self._login = login
        self._patience = patience
        self._waiting = waiting
        self._is_connected = False
        self._lost_at = time.monotonic()
        self.refusal: str | None = None
        """Why the last login failed, in words."""

    def zk_loop(self) -> None:
        """Keep the connection up until it is closed, or cannot be."""
        try:
            super().zk_loop()
        except Exception as error:  # noqa: BLE001 - whatever ended the thread, nobody is there to catch it; requests get an error anyway
            self.refusal = self.refusal or f"it answers what no ZooKeeper should ({type(error).__name__})"

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        found = super()._connect(host, hostip, port)
        self._is_connected = True
        return found

    def _connect_loop(self, retry: Any) -> Any:
        """One round over all servers; it lasts as long as the connection to one of them."""
        try:
            return super()._connect_loop(retry)
        finally:
            if self._is_connected:
                self._is_connected, self._lost_at = False, time.monotonic()
            elif time.monotonic() - self._lost_at > self._waiting:
                # Kazoo lets what was asked without a connection wait for ever.
                self.client._notify_pending(KeeperState.CONNECTING)  # noqa: SLF001 - it has no other way to end that

    def _authenticate_with_sasl(self, _host: str, _timeout: float) -> None:
        """Log in. Raises ``AuthFailedError``, after which no further connection is tried."""
        if self._login is None:
            return
        try:
            challenge = self._exchange(b"", xid=1)
            if not challenge:
                self._refuse("it offers none")
            answer = digest_answer(
                challenge,
                username=self._login.username,
                password=self._login.password,
                uri=_URI,
                cnonce=secrets.token_urlsafe(24),
            )
            answer.check(self._exchange(answer.token, xid=2))
            log_event(_log, "login accepted", level=logging.INFO, mechanism="DIGEST-MD5")
        except DigestError as error:
            self._refuse(f"its part of the login cannot be used: {error}")
        except ConnectionDropped:
            self._refuse("it closed the connection at the login")
        except self.handler.timeout_exception:
            self._refuse("it does not answer a login: it may have none with SASL")

    def _exchange(self, token: bytes, *, xid: int) -> bytes:
        self._submit(SASL(token), self._patience, xid)
        header, buffer, offset = self._read_header(self._patience)
        if header.xid != xid:
            raise DigestError("it answers something else")
        if header.err:
            self._refuse("the user or the password is wrong" if xid > 1 else f"error {header.err}")
        found: tuple[Any, int] = SASL.deserialize(buffer, offset)
        return bytes(found[0] or b"")

    def _refuse(self, why: str) -> None:
        self.refusal = why
        log_event(_log, "login refused", level=logging.INFO, mechanism="DIGEST-MD5", reason=why)
        raise AuthFailedError(why)
