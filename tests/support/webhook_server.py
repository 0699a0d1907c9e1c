"""A server on loopback that receives notifications, and can hang, fail or redirect instead."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "T0000-B0000-tokenOfThisWebhook"


class WebhookServer:
    """``status`` and ``location`` of the answers; while ``hangs`` is set, no answer comes until the server ends."""

    def __init__(self) -> None:
        self.status = 200
        self.location: str | None = None
        self.hangs = False
        self.bodies: list[Any] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.ended = threading.Event()
        self.arrived = threading.Semaphore(0)
        self.url = ""


@contextlib.contextmanager
def webhook_server() -> Iterator[WebhookServer]:
    """The server, on a free port, for as long as the block lasts."""
    state = WebhookServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"state": state}))
    server.daemon_threads = True
    server.block_on_close = False
    state.url = f"http://127.0.0.1:{server.server_port}/services/{SECRET}?key={SECRET}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: WebhookServer

    protocol_version = "HTTP/1.1"
    timeout = 20

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.state.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.state.bodies.append(json.loads(content))
        self.state.arrived.release()
        if self.state.hangs:
            self.state.ended.wait()
            return
        self.send_response(self.state.status)
        if self.state.location:
            self.send_header("location", self.state.location)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args: object) -> None:
        pass
