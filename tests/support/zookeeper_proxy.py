"""Stands between a client and a real ZooKeeper, and meddles with the transactions that change quotas."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import BinaryIO

from kazoo.client import KazooClient

from tests.support.write_proxy import hang_up, read_frame

_MULTI = 14
_NOTIFICATION = b"/config/changes/config_change_"
PASS, CUT, CUT_AFTER_IT_IS_DONE = "pass", "cut", "cut after it is done"


class TransactionProxy:
    """A handler for ``serving``. ``meddle`` gets the number (from 1) of each transaction, and says what becomes of it.

    After a cut, further connections pass untouched unless ``meddle`` says otherwise.
    """

    def __init__(self, port: int, meddle: Callable[[int], str]) -> None:
        self._port = port
        self._meddle = meddle
        self._lock = threading.Lock()
        self._session: tuple[int, bytes] | None = None
        self.seen = 0

    def __call__(self, connection: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as server, connection.makefile("rb") as stream:
            last: list[bytes] = []
            done = threading.Event()
            answers = threading.Thread(target=self._pass_answers, args=(server, connection, last, done))
            answers.start()
            try:
                self._pass_requests(stream, server, last, done)
            finally:
                hang_up(server, connection)
                answers.join()

    def expire(self) -> None:
        """End the session of the client on the server, as when nothing was heard of it for too long."""
        assert self._session is not None
        twin = KazooClient(hosts=f"127.0.0.1:{self._port}", client_id=self._session)
        twin.start()
        twin.stop()
        twin.close()

    def _pass_requests(self, stream: BinaryIO, server: socket.socket, last: list[bytes], done: threading.Event) -> None:
        while (frame := read_frame(stream)) is not None:
            said = PASS
            if struct.unpack_from(">i", frame, 8)[0] == _MULTI and _NOTIFICATION in frame:
                with self._lock:
                    self.seen += 1
                    number = self.seen
                said = self._meddle(number)
            if said == CUT:
                return
            if said == CUT_AFTER_IT_IS_DONE:
                last.append(frame[4:8])
            server.sendall(frame)
            if said == CUT_AFTER_IT_IS_DONE:
                done.wait(10)
                return

    def _pass_answers(self, server: socket.socket, connection: socket.socket, last: list[bytes], done: threading.Event) -> None:
        is_first = True
        with contextlib.suppress(OSError), server.makefile("rb") as stream:
            while (frame := read_frame(stream)) is not None:
                if is_first:
                    # The answer to the connect request: protocol, timeout, session, its password.
                    session, length = struct.unpack_from(">qi", frame, 12)
                    self._session = (session, frame[24 : 24 + length])
                    is_first = False
                if not last:
                    connection.sendall(frame)
                elif frame[4:8] == last[0]:
                    done.set()
        hang_up(server, connection)
