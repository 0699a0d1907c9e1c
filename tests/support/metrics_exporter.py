"""An exporter's ``/metrics`` on a port of its own, and faults of a Prometheus server."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.support.http_servers import serving_http

Reply = Callable[[str, dict[str, str], bytes], tuple[int, str, bytes]]


def matrix(*series: tuple[Mapping[str, str], Sequence[Sequence[object]]], **more: object) -> bytes:
    """What a Prometheus server answers to a query of a range: of each series its labels, and times with values."""
    result = [{"metric": labels, "values": values} for labels, values in series]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
    return json.dumps(document, separators=(",", ":")).encode()


@contextmanager
def served(reply: Reply, *, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answer each request with what ``reply(path, headers, body)`` returns: status, content type and body. Gives the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("content-length", "0"))))

        def _answer(self, body: bytes) -> None:
            status, kind, content = reply(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with serving_http(Handler, tls=tls) as port:
        yield port
