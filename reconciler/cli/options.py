"""Options that several commands share, so that they are spelled and explained once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.cli.arguments import ConnectionArguments
    from reconciler.workflows import Access, GivenBaseline, TrustedTree


def add_output_options(parser: argparse.ArgumentParser, *, formats: tuple[str, ...] = ("text", "json")) -> None:
    """``--format``, ``--color``, ``-q``, ``-v``."""
    parser.add_argument("--format", choices=formats, default=formats[0], help="what stdout holds (default: %(default)s)")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colour (default: %(default)s)")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    add_diagnosis_options(parser)


def add_diagnosis_options(parser: argparse.ArgumentParser, *, before_command: bool = False) -> None:
    """``-v`` and ``--log-format``; both may stand before and after the command, and ``-v`` counts in both places."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        dest="verbose_before" if before_command else "verbose",
        help="log on stderr what is done; -vv also logs what libraries do, and prints tracebacks",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text" if before_command else argparse.SUPPRESS,
        help="stderr holds lines for people, or one JSON object a line (default: text)",
    )


def add_out_option(parser: argparse.ArgumentParser, formats: tuple[str, ...]) -> None:
    """``--out``, the same result in further forms at once."""
    text = f"also write it to a file; FORMAT is one of {', '.join(formats)}; repeatable"
    parser.add_argument("--out", action="append", default=[], metavar="FORMAT=FILE", help=text)


def add_path_argument(parser: argparse.ArgumentParser) -> None:
    """``PATH...``, the manifests."""
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="files or folders with manifests (default: .)")


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Which cluster of the manifests, and how to reach it when not as its document says."""
    parser.add_argument("--cluster", metavar="NAME", help="the Cluster document to use; not needed when there is exactly one")
    add_connection_options(parser)


def add_all_clusters_option(parser: argparse.ArgumentParser) -> None:
    """``--all-clusters``, in place of ``--cluster``."""
    parser.add_argument("--all-clusters", action="store_true", help="every Cluster document, one after the other")


def add_trusted_ref_option(parser: argparse.ArgumentParser) -> None:
    """``--trusted-ref``: whose Cluster and Repository documents hold."""
    parser.add_argument(
        "--trusted-ref",
        metavar="REF",
        help="take connections, scopes, guards, acceptances, owners and limits from this git reference, not from the files here",
    )


def add_base_option(parser: argparse.ArgumentParser) -> None:
    """``--base``: what a plan is going to be merged into."""
    parser.add_argument(
        "--base",
        metavar="REF",
        help="report commits of this git reference that are missing here, and entities that left the manifests [--trusted-ref]",
    )


def add_baseline_option(parser: argparse.ArgumentParser) -> None:
    """``--baseline``: what was applied last."""
    parser.add_argument(
        "--baseline", metavar="REF|FILE", help="what was applied last: a git reference, or the file of apply --record-baseline"
    )


def baseline(
    name: str | None, paths: Sequence[str], trusted: TrustedTree | None, *, all_clusters: bool = False
) -> GivenBaseline | None:
    """The baseline of ``add_baseline_option``. Raises as ``given_baseline``, and for a file with ``--all-clusters``."""
    from pathlib import Path

    from reconciler.workflows import given_baseline

    if name is None:
        return None
    if all_clusters and Path(name).is_file():
        msg = "a baseline file is of one cluster; with --all-clusters give a git reference as --baseline"
        raise UsageError(msg)
    return given_baseline(name, paths, trusted=trusted)


def check_all_clusters(*, all_clusters: bool, **excluded: str | None) -> None:
    """Raise ``UsageError`` when an option that is about one cluster, by its name, comes with ``--all-clusters``."""
    given = [name for name, value in excluded.items() if all_clusters and value]
    if given:
        msg = f"--all-clusters and --{given[0].replace('_', '-')} exclude each other"
        raise UsageError(msg)


def check_one_state(args: ConnectionArguments, current: str | None) -> None:
    """Raise ``UsageError`` when ``--current`` comes with an option that names a live cluster."""
    given = [name for name, value in (("bootstrap-server", args.bootstrap_server), ("zookeeper", args.zookeeper)) if value]
    if current and given:
        msg = f"--current and --{given[0]} exclude each other: a recorded state is read, or a cluster"
        raise UsageError(msg)


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """``--bootstrap-server``, ``--zookeeper`` and ``--command-config``, as in Kafka's own tools."""
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--bootstrap-server", metavar="HOST:PORT,...", help="connect here, not as the Cluster document says")
    place.add_argument(
        "--zookeeper",
        metavar="HOST:PORT/CHROOT",
        help="read and write the quotas in this ZooKeeper (Kafka up to 3.9); brokers from 2.6 on are the better way",
    )
    parser.add_argument("--command-config", metavar="FILE", help="properties file with security settings")


def access(args: ConnectionArguments, *, current: str | None = None) -> Access:
    """How to reach the cluster, of ``add_connection_options`` and, where the command has it, ``--current``."""
    from reconciler.workflows import Access

    return Access(
        bootstrap_server=args.bootstrap_server,
        zookeeper=args.zookeeper,
        command_config=args.command_config,
        current=current,
    )


def add_fail_on_option(parser: argparse.ArgumentParser) -> None:
    """``--fail-on``: from which severity on findings stop the command."""
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "info"),
        default="error",
        help="findings this bad stop the command",
    )


def add_accept_option(parser: argparse.ArgumentParser) -> None:
    """``--accept``, one guard at a time."""
    parser.add_argument("--accept", action="append", default=[], metavar="GUARD", help="accept this guard; repeatable")
