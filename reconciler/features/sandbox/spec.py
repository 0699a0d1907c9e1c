"""A wanted sandbox with its users, and a running one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.errors import UsageError
from reconciler.features.sandbox.jars import KRAFT_VERSIONS, ZOOKEEPER_VERSIONS, require_pinned
from reconciler.features.sandbox.process import ProcessRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user of the SASL/PLAIN listener."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A further listener of every node: its name (upper case), its ``security.protocol``, and its own broker settings.

    The settings are named without Kafka's prefix ``listener.name.NAME.``.
    """

    name: str
    protocol: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSpec:
    """The one ZooKeeper server of a sandbox whose brokers keep their metadata there, below ``chroot`` (``/kafka``; empty: none).

    ``properties`` are further lines of its configuration, which win over the sandbox's own.
    """

    chroot: str = ""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    java_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """A wanted sandbox: ``nodes`` (1 or 3) of ``heap_mb`` MiB of heap: combined KRaft nodes, or brokers with ``zookeeper``.

    Without a ``kafka_version`` it is the newest that can be so. With ``users``, a SASL/PLAIN listener stands beside the plaintext
    one; ``listeners`` come beside both. ``properties`` are further broker settings, which win over the sandbox's own defaults.
    ``plugins`` are further jars for every node. ``java_options`` come last on the JVM's command line, and after them the
    ``node_java_options`` of that node (by id). Raises ``UsageError`` for values that cannot work.
    """

    kafka_version: str = ""
    nodes: int = 1
    users: tuple[Login, ...] = ()
    request_log: bool = False
    heap_mb: int = 512
    properties: Mapping[str, str] = field(default_factory=dict)
    plugins: tuple[Path, ...] = ()
    java_options: tuple[str, ...] = ()
    node_java_options: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    listeners: tuple[Listener, ...] = ()
    zookeeper: ZooKeeperSpec | None = None

    def __post_init__(self) -> None:
        """Choose the version when the caller gave none; refuse impossible combinations before anything is started."""
        fitting = KRAFT_VERSIONS if self.zookeeper is None else ZOOKEEPER_VERSIONS
        if not self.kafka_version:
            object.__setattr__(self, "kafka_version", fitting[0])
        require_pinned(self.kafka_version)
        if self.kafka_version not in fitting:
            mode = "runs with ZooKeeper only. Add --zookeeper" if self.zookeeper is None else "has no ZooKeeper mode"
            raise UsageError(f"Kafka {self.kafka_version} {mode}")
        names = [user.name for user in self.users]
        if len(set(names)) != len(names) or not all(name and name.isprintable() for name in names):
            raise UsageError("the sandbox's users need different names, without control characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxNode:
    """One running node. ``log_file`` is the broker's log, ``request_log_file`` what it writes about every request."""

    id: int
    process: ProcessRef
    port: int
    log_file: Path
    request_log_file: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxZooKeeper:
    """The running ZooKeeper server. ``connection`` is ``host:port/chroot``, as ``zookeeper.connect`` takes it."""

    process: ProcessRef
    connection: str
    log_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A running sandbox. The bootstrap strings are ``host:port,...`` as Kafka's clients take them."""

    bootstrap_servers: str
    """Host:port,... of the listener without any login."""
    sasl_bootstrap_servers: str | None
    """Host:port,... of the SASL_PLAINTEXT listener (PLAIN). ``None`` without users."""
    cluster_id: str
    """Cluster id of the sandbox."""
    kafka_version: str
    """Kafka version of its brokers."""
    folder: Path
    nodes: tuple[SandboxNode, ...]
    users: tuple[Login, ...]
    listeners: Mapping[str, str]
    """Bootstrap strings of the further listeners, by name."""
    zookeeper_server: SandboxZooKeeper | None

    @property
    def zookeeper(self) -> str | None:
        """``host:port/chroot`` of its ZooKeeper; ``None`` in KRaft mode."""
        return self.zookeeper_server.connection if self.zookeeper_server else None

    @property
    def servers(self) -> tuple[SandboxNode | SandboxZooKeeper, ...]:
        """All of them, in the order in which they are to be ended."""
        return (*self.nodes, self.zookeeper_server) if self.zookeeper_server else self.nodes

    def user(self, name: str) -> Login:
        """The login of one of its users. Raises ``StopIteration`` for another name."""
        return next(user for user in self.users if user.name == name)

    def client_properties(self, name: str) -> Path:
        """The ``client.properties`` file with which one of its users logs in."""
        return client_properties_file(self.folder, self.users.index(self.user(name)))


def client_properties_file(folder: Path, number: int) -> Path:
    """The ``client.properties`` of a user, by the place among the users: a name may be one that no file can have."""
    return folder / f"client-{number}.properties"
