"""Options that several commands share: constants for single ones, dataclasses for those that go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.cli.declaration import argument, option
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.workflows import Access, GivenBaseline, TrustedTree


PATHS: Final = argument("PATH", nargs="*", default=["."], help="files or folders with manifests [default: .]")
TRUSTED_REF: Final = option(
    "--trusted-ref",
    section="Git",
    metavar="REF",
    help="take connections, scopes, guards, exceptions, owners and limits from this git reference instead of the files here",
)
BASE: Final = option(
    "--base",
    section="Git",
    metavar="REF",
    help="report commits of this git reference that are missing here, and entities that left the manifests "
    "[default: --trusted-ref]",
)
FAIL_ON: Final = option(
    "--fail-on",
    section="Safety",
    choices=("error", "warning", "info"),
    default="error",
    metavar="SEVERITY",
    help="stop on findings of this severity or a higher one: error, warning or info [default: error]",
)
ACCEPT: Final = option("--accept", section="Safety", metavar="GUARD", help="accept this guard for one run (repeatable)")


def step_down(text: str) -> Any:
    """``--step-down``, and what it does."""
    return option("--step-down", section="Steps", metavar="FACTOR", help=text)


def connection_paths(also: str = "") -> Any:
    """``PATH...`` of a command that takes no quotas from manifests; ``also``: what it takes beside the connection."""
    return argument("PATH", nargs="*", default=[], help=f"manifests with the connection of the cluster{also} [default: none]")


CURRENT: Final = option("--current", section="Cluster", metavar="FILE", help="read this snapshot instead of the live cluster")


def current(text: str) -> Any:
    """``--current``, where it is more than a snapshot in place of the live cluster."""
    return option("--current", section="Cluster", metavar="FILE", help=text)


def detailed_exitcode(text: str) -> Any:
    """``--detailed-exitcode``, and when it counts."""
    return option("--detailed-exitcode", section="Output", help=text)


def format_option(formats: Sequence[str] = ("text", "json")) -> Any:
    """``--format``; the first is the default."""
    words = " or ".join(part for part in (", ".join(formats[:-1]), formats[-1]) if part)
    text = f"print the result as {words} [default: {formats[0]}]"
    return option("--format", section="Output", choices=formats, default=formats[0], metavar="FORMAT", help=text)


def out_option(formats: Sequence[str]) -> Any:
    """``--out``: the same result in further forms at once."""

    def parse(text: str) -> tuple[str, str]:
        from reconciler.cli.results import parse_out_file

        return parse_out_file(text, formats)

    text = "also write the result to a file in one of these formats (repeatable)"
    return option("--out", section="Output", action="append", default=[], type=parse, metavar="FORMAT=FILE", help=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressOptions:
    """How to reach a cluster; spelled as in Kafka's own tools."""

    bootstrap_server: str | None = option(
        "--bootstrap-server",
        section="Cluster",
        exclusive=True,
        metavar="HOST:PORT,...",
        help="connect to these brokers instead of those in the Cluster manifest",
    )
    zookeeper: str | None = option(
        "--zookeeper",
        section="Cluster",
        exclusive=True,
        metavar="HOST:PORT/CHROOT",
        help="read and write the quotas in this ZooKeeper: needed before Kafka 2.8, possible up to 3.9",
    )
    command_config: str | None = option(
        "--command-config", section="Cluster", metavar="FILE", help="read security settings from this properties file"
    )

    def access(self, current: str | None = None) -> Access:
        """Return the way to the cluster, or to the snapshot ``current``. Raises ``UsageError`` for both."""
        from reconciler.workflows import Access

        if current and (self.bootstrap_server or self.zookeeper):
            msg = f"--current and --{self.named} exclude each other: a recorded state is read, or a cluster"
            raise UsageError(msg)
        return Access(
            bootstrap_server=self.bootstrap_server, zookeeper=self.zookeeper, command_config=self.command_config, current=current
        )

    def command_words(self) -> tuple[str, ...]:
        """The same options for a command that is shown."""
        values = {"bootstrap-server": self.bootstrap_server, "zookeeper": self.zookeeper, "command-config": self.command_config}
        return tuple(word for name, value in values.items() if value is not None for word in (f"--{name}", value))

    @property
    def named(self) -> str | None:
        """The option that names a live cluster, without its dashes."""
        return "bootstrap-server" if self.bootstrap_server else "zookeeper" if self.zookeeper else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions(AddressOptions):
    """Which cluster of the manifests, and how to reach it when not as its manifest states."""

    cluster: str | None = option(
        "--cluster", section="Cluster", metavar="NAME", help="choose this Cluster manifest, when there are several"
    )

    def command_words(self) -> tuple[str, ...]:
        """Return the same as ``AddressOptions.command_words``."""
        chosen = () if self.cluster is None else ("--cluster", self.cluster)
        return (*chosen, *AddressOptions.command_words(self))


BASELINE: Final = option(
    "--baseline",
    section="Git",
    metavar="REF|FILE",
    help="compare with the last apply: a git reference, or the file of apply --record-baseline",
)


def require_reference(name: str) -> None:
    """Raise ``UsageError`` for a file, where the baseline of all clusters is wanted."""
    if Path(name).is_file():
        raise UsageError("a baseline file is of one cluster. With --all-clusters give a git reference as --baseline")


def baseline_reader(
    name: str | None, paths: Sequence[str], *, all_clusters: bool = False
) -> Callable[[TrustedTree | None], GivenBaseline | None]:
    """Reads the baseline that the user named, if any: a file of a repository as the trusted reference has it.

    A reference is read once for all clusters. Raises ``UsageError`` for a file with ``all_clusters``.
    """
    if name is None:
        return lambda _: None
    from reconciler.workflows import given_baseline

    if not all_clusters:
        return lambda trusted: given_baseline(name, paths, trusted=trusted)
    require_reference(name)
    of_all = given_baseline(name, paths)
    return lambda _: of_all
