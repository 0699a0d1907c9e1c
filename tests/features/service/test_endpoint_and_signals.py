"""The pages that the service serves, and the signals that it takes for requests."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator

import pytest

import reconciler
from reconciler.features.service.observers import ServiceMetrics
from reconciler.features.service.pages import EndpointError, served
from reconciler.features.service.passes import PassOutcome, PassResult
from reconciler.features.service.signals import SignalRequests

Address = tuple[str, int]


@pytest.fixture
def endpoint() -> Iterator[Address]:
    metrics = ServiceMetrics(applies=True)
    metrics.count("east", PassOutcome(result=PassResult.APPLIED), failures=0, at=5.0)
    health = {"/healthz": lambda: (True, {"status": "alive"}), "/readyz": lambda: (False, {"status": "not ready"})}
    with served("127.0.0.1", 0, metrics.registry, health) as address:
        yield address


def ask(endpoint: Address, path: str, *, method: str = "GET", accept: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(*endpoint, timeout=300)
    with contextlib.closing(connection):
        connection.request(method, path, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()


def test_metrics_come_in_the_format_that_is_asked_for(endpoint: Address) -> None:
    status, kind, body = ask(endpoint, "/metrics")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    assert f'kafka_quotas_build_info{{cluster="east",version="{reconciler.__version__}"}} 1.0' in body

    _, kind, body = ask(endpoint, "/metrics?x=1", accept="application/openmetrics-text;version=1.0.0")
    assert kind.split(";")[0] == "application/openmetrics-text"
    assert body.endswith("# EOF\n")


def test_alive_is_not_yet_ready(endpoint: Address) -> None:
    status, kind, body = ask(endpoint, "/healthz")
    assert (status, kind, json.loads(body)["status"]) == (200, "application/json", "alive")

    status, _, body = ask(endpoint, "/readyz")
    assert (status, json.loads(body)["status"]) == (503, "not ready")


def test_nothing_else_is_served(endpoint: Address) -> None:
    assert ask(endpoint, "/")[0] == 404
    assert ask(endpoint, "/metrics/../etc/passwd")[0] == 404
    assert ask(endpoint, "/metrics", method="POST")[0] == 501


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nX: "])
def test_clients_that_keep_their_connections_do_not_keep_a_probe_waiting(endpoint: Address, sent: bytes) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            client = stack.enter_context(socket.create_connection(endpoint, timeout=300))
            with contextlib.suppress(OSError):  # of one that lost its place already
                client.sendall(sent)
        for path, status in [("/healthz", 200), ("/readyz", 503), ("/metrics", 200), ("/healthz", 200)]:
            assert ask(endpoint, path)[0] == status


@pytest.mark.parametrize(
    "sent", [b"\r\n\r\n", b"GET\r\n\r\n", b"\xff\x00 / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 99_999]
)
def test_what_is_no_request_harms_nothing(endpoint: Address, sent: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(endpoint, timeout=300) as client, contextlib.suppress(OSError):
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert b"HTTP/1.0 200" not in client.recv(100)
    assert ask(endpoint, "/healthz")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_told_with_what_to_do(endpoint: Address) -> None:
    message = rf"127.0.0.1:{endpoint[1]}.*second run.*--port"
    with pytest.raises(EndpointError, match=message), served(*endpoint, ServiceMetrics(applies=True).registry, {}):
        pass


def test_signals_are_noted_and_wake_the_loop() -> None:
    with SignalRequests() as requests:
        assert (requests.stop_wanted(), requests.take_reread()) == (False, False)

        os.kill(os.getpid(), signal.SIGHUP)
        requests.wait(600)
        assert (requests.take_reread(), requests.take_reread(), requests.stop_wanted()) == (True, False, False)

        os.kill(os.getpid(), signal.SIGTERM)
        requests.wait(600)
        assert (requests.stop_wanted(), requests.stopped_by) == (True, signal.SIGTERM)


def test_who_asks_twice_is_not_kept_waiting() -> None:
    with SignalRequests() as requests:
        os.kill(os.getpid(), signal.SIGINT)
        requests.wait(600)

        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


def test_from_the_first_write_on_no_signal_interrupts() -> None:
    with SignalRequests() as requests:
        requests.hold()
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        assert requests.stopped_by == signal.SIGINT


def test_afterwards_signals_mean_what_they_meant() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]

    with SignalRequests() as requests:
        pass
    requests.wake()

    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)] == before
