"""An endpoint that answers nonsense, too much, or too slowly: one sentence, in bounded time, and a sane lifetime."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from reconciler.errors import AuthenticationError
from reconciler.features.logins.token_endpoint import EndpointTokens
from reconciler.features.logins.tokens import TokenEndpoint
from tests.support.bad_servers import serving

NOW = 1_000_000.0
DAY = 86_400.0


def jwt_with(claims: str) -> str:
    payload = base64.urlsafe_b64encode(claims.encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


def read_request(connection: socket.socket) -> None:
    """All of it: a server that closes with unread bytes resets the connection."""
    with connection.makefile("rb") as stream:
        length = 0
        while (line := stream.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        stream.read(length)


def answering(body: str, *, status: str = "200 OK") -> Callable[[socket.socket], None]:
    """A handler that answers each request with this document."""
    content = body.encode()

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content)

    return handle


@contextmanager
def tokens_of(handle: Callable[[socket.socket], None], *, now: list[float], seconds: float = 10.0) -> Iterator[EndpointTokens]:
    with serving(handle) as port:
        endpoint = TokenEndpoint(url=f"http://127.0.0.1:{port}/token", basic="Y2k6czNjcmV0", secret="s3cret", seconds=seconds)
        yield EndpointTokens(endpoint, now=lambda: now[0])


@pytest.mark.parametrize(
    ("document", "seconds"),
    [
        ('{"access_token": "opaque", "expires_in": 1e999}', 0.8 * DAY),
        ('{"access_token": "opaque", "expires_in": 100}', 80),
        ('{"access_token": "opaque", "expires_in": -1e999}', 48),
        ('{"access_token": "opaque", "expires_in": NaN}', 48),
        ('{"access_token": "opaque", "expires_in": true}', 48),
        ('{"access_token": "opaque", "expires_in": "3600"}', 48),
        (json.dumps({"access_token": jwt_with('{"exp": ' + "9" * 400 + "}")}), 0.8 * DAY),
        (json.dumps({"access_token": jwt_with('{"exp": 1e999}')}), 0.8 * DAY),
        (json.dumps({"access_token": jwt_with('{"exp": -' + "9" * 400 + "}")}), 0),
        (json.dumps({"access_token": jwt_with("[" * 100_000)}), 48),
    ],
    ids=range(10),
)
def test_a_token_is_fetched_again_after_its_lifetime_up_to_a_day(document: str, seconds: float) -> None:
    asked: list[int] = []

    def handle(connection: socket.socket) -> None:
        asked.append(1)
        answering(document)(connection)

    now = [NOW]
    with tokens_of(handle, now=now) as tokens:
        for moment, requests in ((0.0, 1), (max(0.0, seconds - 1), 1 if seconds else 2), (seconds + 1, 2 if seconds else 3)):
            now[0] = NOW + moment
            tokens.token()
            assert len(asked) == requests


@pytest.mark.parametrize("body", ["[" * 100_000, "{" * 100_000, '{"access_token": ' + "[" * 100_000, "x", "[]", ""])
@pytest.mark.parametrize("status", ["200 OK", "401 Unauthorized"])
def test_an_answer_that_is_no_object_is_one_sentence(body: str, status: str) -> None:
    refused = pytest.raises(AuthenticationError, match="No token from http")
    with tokens_of(answering(body, status=status), now=[NOW]) as tokens, refused as raised:
        tokens.token()
    assert "[[[" not in str(raised.value)


@pytest.mark.parametrize("head", ["HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", "HTTP/1.1 200", "HTTP/1.1 401 No\r\n\r\n"])
def test_an_answer_that_drips_has_one_deadline(head: str) -> None:
    closed = threading.Event()

    def drip(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head.encode())
        for _ in range(600):
            if closed.wait(0.05):
                return
            connection.sendall(b" ")

    with tokens_of(drip, now=[NOW], seconds=1.0) as tokens:
        with pytest.raises(AuthenticationError, match=r"the answer of the endpoint was not complete after 1 s"):
            tokens.token()
        closed.set()


@pytest.mark.parametrize(
    "answer", [b"garbage\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
)
def test_an_answer_that_is_not_http_or_cut_short_is_one_sentence(answer: bytes) -> None:
    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(answer)

    with tokens_of(handle, now=[NOW]) as tokens, pytest.raises(AuthenticationError, match="No token from"):
        tokens.token()
