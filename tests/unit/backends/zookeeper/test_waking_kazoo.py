"""What wakes kazoo's thread for each request: as many times as asked, also while nobody listens."""

from __future__ import annotations

import threading

from reconciler.backends.zookeeper.settings import ZooKeeperSettings
from reconciler.backends.zookeeper.sockets import Handler

SETTINGS = ZooKeeperSettings(servers=(("127.0.0.1", 2181),))


def test_asking_without_a_connection_never_waits_and_every_request_is_noticed() -> None:
    handler = Handler(SETTINGS)
    reader, writer = handler.create_socket_pair()
    try:
        assert handler.select([reader], [], [], 0.0)[0] == []
        for _ in range(10_000):
            writer.send(b"\0")
        for _ in range(10_000):
            assert handler.select([reader], [], [], 0.0)[0] == [reader]
            assert reader.recv(1) == b"\0"
        assert handler.select([reader], [], [], 0.0)[0] == []
    finally:
        reader.close()
        writer.close()


def test_who_comes_for_a_ring_too_early_waits_for_it() -> None:
    handler = Handler(SETTINGS)
    reader, writer = handler.create_socket_pair()
    taken: list[bytes] = []
    thread = threading.Thread(target=lambda: taken.append(reader.recv(1)))
    thread.start()
    try:
        writer.send(b"\0")
        thread.join(10)
        assert taken == [b"\0"]
    finally:
        reader.close()
