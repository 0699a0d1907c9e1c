"""A real local Kafka from published jars, and clients that make traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.features.sandbox.clients import TrafficReport, consume_all, create_topic, produce_steadily
    from reconciler.features.sandbox.cluster import running, runtime_for
    from reconciler.features.sandbox.jars import DEFAULT_KAFKA_VERSION, KAFKA_VERSIONS, ZOOKEEPER_VERSIONS
    from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec, ZooKeeperSpec
    from reconciler.java import find_java

__getattr__ = lazy_face(__name__)
