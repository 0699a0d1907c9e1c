"""A web server on a free port of loopback, in threads of this process."""

from __future__ import annotations

import contextlib
import ssl
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def _print_nothing(*_arguments: object) -> None:
    """Take the place of the log on standard error."""


class _Server(ThreadingHTTPServer):
    """Lets a connection end that a client breaks off, as a client does that does not know the certificate."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong in a handler, in the output of whichever test runs then; not the end of a connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serving_http(handler: type[BaseHTTPRequestHandler], *, tls: ssl.SSLContext | None = None, **fields: object) -> Iterator[int]:
    """Answer requests with handlers that have these ``fields``, for as long as the block lasts. Yields the port."""
    server = _Server(("127.0.0.1", 0), type("Handler", (handler,), {"log_message": _print_nothing, **fields}))
    if tls is not None:
        # The handshake is the handler's, so that one that fails ends with it.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
