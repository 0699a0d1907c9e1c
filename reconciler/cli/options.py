"""Options that several commands share, so that they are spelled and explained once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from reconciler.cli.declaration import add_common_options, section_of
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.cli.arguments import ConnectionArguments
    from reconciler.workflows import Access, GivenBaseline, TrustedTree


_MOST_PARALLEL: Final = 200

section = section_of


def add_output_options(
    parser: argparse.ArgumentParser, *, formats: tuple[str, ...] = ("text", "json"), out: bool = False, also: str = ""
) -> None:
    """``--format``, ``--out`` where the command has it, and the options of every command.

    ``--out`` writes the same result in further forms at once. ``also``: what else it writes.
    """
    group = section(parser, "Output")
    group.add_argument(
        "--format",
        choices=formats,
        default=formats[0],
        metavar="FORMAT",
        help=f"print the result as {_alternatives(formats)} [default: %(default)s]",
    )
    if out:
        group.add_argument(
            "--out",
            action="append",
            default=[],
            metavar="FORMAT=FILE",
            help=f"also write the result to a file in one of these formats{also} (repeatable)",
        )
    add_common_options(parser)


def _alternatives(words: Sequence[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def add_path_argument(parser: argparse.ArgumentParser) -> None:
    """``PATH...``, the manifests."""
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="files or folders with manifests [default: .]")


def add_connection_path_argument(parser: argparse.ArgumentParser, *, also: str = "") -> None:
    """``PATH...`` of a command that takes no quotas from manifests; ``also``: what it takes beside the connection."""
    parser.add_argument(
        "paths", nargs="*", default=[], metavar="PATH", help=f"manifests with the connection of the cluster{also} [default: none]"
    )


def add_cluster_option(parser: argparse.ArgumentParser, text: str | None = None) -> None:
    """``--cluster``: which cluster of the manifests."""
    known = "choose this Cluster manifest, when there are several"
    section(parser, "Cluster").add_argument("--cluster", metavar="NAME", help=text or known)


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Which cluster of the manifests, and how to reach it when not as its manifest states."""
    add_cluster_option(parser)
    add_connection_options(parser)


def add_all_clusters_option(parser: argparse.ArgumentParser, verb: str) -> None:
    """``--all-clusters``, in place of ``--cluster``; ``verb``: what the command does to each."""
    section(parser, "Cluster").add_argument(
        "--all-clusters", action="store_true", help=f"{verb} every cluster (not with --cluster)"
    )


def add_parallel_option(parser: argparse.ArgumentParser) -> None:
    """``--parallel``, beside ``--all-clusters``."""
    section(parser, "Cluster").add_argument(
        "--parallel", type=int, default=8, metavar="N", help="with --all-clusters: N clusters at once [default: %(default)s]"
    )


def add_changed_since_option(parser: argparse.ArgumentParser, verb: str) -> None:
    """``--changed-since``, beside ``--all-clusters``; ``verb``: what the command does to a cluster."""
    section(parser, "Git").add_argument(
        "--changed-since",
        metavar="REF",
        help=f"with --all-clusters: {verb} only clusters whose manifests differ from this git reference",
    )


def check_changed_since(*, all_clusters: bool, since: str | None) -> None:
    """Raise ``UsageError`` for ``--changed-since`` where one cluster is named already."""
    if since is not None and not all_clusters:
        raise UsageError("--changed-since needs --all-clusters")


def check_parallel(number: int) -> int:
    """Raise ``UsageError`` for a number of clusters that is not sensible."""
    if not 1 <= number <= _MOST_PARALLEL:
        raise UsageError(f"--parallel takes a number from 1 to {_MOST_PARALLEL}, not {number}")
    return number


def add_owner_option(parser: argparse.ArgumentParser, verb: str) -> None:
    """``--owner``, one owner at a time; ``verb``: what the command does to the changes of these owners."""
    section(parser, "Options").add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="NAME",
        help=f"{verb} only changes of this owner's entities, and measure the guards for it alone (repeatable)",
    )


def add_current_option(parser: argparse.ArgumentParser, text: str) -> None:
    """``--current``: a snapshot in place of the live cluster."""
    section(parser, "Cluster").add_argument("--current", metavar="FILE", help=text)


def add_trusted_ref_option(parser: argparse.ArgumentParser) -> None:
    """``--trusted-ref``: whose Cluster and Repository documents count."""
    section(parser, "Git").add_argument(
        "--trusted-ref",
        metavar="REF",
        help="take connections, scopes, guards, acceptances, owners and limits from this git reference instead of the files here",
    )


def add_base_option(parser: argparse.ArgumentParser) -> None:
    """``--base``: what a plan is going to be merged into."""
    section(parser, "Git").add_argument(
        "--base",
        metavar="REF",
        help="report commits of this git reference that are missing here, and entities that left the manifests "
        "[default: --trusted-ref]",
    )


def add_baseline_option(parser: argparse.ArgumentParser, also: str = "") -> None:
    """``--baseline``: what was applied last."""
    section(parser, "Git").add_argument(
        "--baseline",
        metavar="REF|FILE",
        help=f"compare with the last apply: a git reference, or the file of apply --record-baseline{also}",
    )


def add_detailed_exitcode_option(parser: argparse.ArgumentParser, text: str) -> None:
    """``--detailed-exitcode``."""
    section(parser, "Output").add_argument("--detailed-exitcode", action="store_true", help=text)


def baseline(
    name: str | None, paths: Sequence[str], trusted: TrustedTree | None, *, all_clusters: bool = False
) -> GivenBaseline | None:
    """The baseline of ``add_baseline_option``. Raises ``UsageError`` for a file with ``--all-clusters``."""
    from reconciler.workflows import given_baseline

    if name is None:
        return None
    check_baseline(name, all_clusters=all_clusters)
    return given_baseline(name, paths, trusted=trusted)


def check_baseline(name: str | None, *, all_clusters: bool) -> None:
    """Raise ``UsageError`` for a baseline file with ``--all-clusters``."""
    from pathlib import Path

    if all_clusters and name is not None and Path(name).is_file():
        raise UsageError("a baseline file is of one cluster. With --all-clusters give a git reference as --baseline")


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


def add_folder_option(parser: argparse.ArgumentParser, *, text: str, required: bool = False, default: str | None = None) -> None:
    """``--folder``, where a command writes several files."""
    parser.add_argument("--folder", metavar="DIR", required=required, default=default, help=text)


def add_github_options(parser: argparse.ArgumentParser, *, wait: float) -> argparse._ArgumentGroup:
    """Which repository, and how GitHub's API is asked."""
    from pathlib import Path

    group = section(parser, "GitHub")
    group.add_argument("--repository", metavar="OWNER/NAME", help="use this repository [default: GITHUB_REPOSITORY]")
    group.add_argument("--api-url", metavar="URL", help="ask this API [default: GITHUB_API_URL, else that of github.com]")
    group.add_argument("--token-file", type=Path, metavar="FILE", help="read the token from this file [default: GITHUB_TOKEN]")
    _add_wait(group, wait)
    return group


def add_forge_options(parser: argparse.ArgumentParser, *, wait: float) -> argparse._ArgumentGroup:
    """Which repository of which forge, and how its API is asked."""
    from pathlib import Path

    group = section(parser, "Forge")
    group.add_argument(
        "--forge", choices=("github", "gitlab"), help="comment on this forge [default: the one that runs this job, else github]"
    )
    group.add_argument(
        "--repository", metavar="NAME", help="use this repository or project [default: GITHUB_REPOSITORY or CI_PROJECT_ID]"
    )
    group.add_argument("--api-url", metavar="URL", help="ask this API [default: GITHUB_API_URL or CI_API_V4_URL]")
    group.add_argument(
        "--token-file", type=Path, metavar="FILE", help="read the token from this file [default: GITHUB_TOKEN or GITLAB_TOKEN]"
    )
    group.add_argument(
        "--ca-file",
        type=Path,
        metavar="FILE",
        help="trust the certificates in this PEM file only [default: CI_SERVER_TLS_CA_FILE of GitLab, else the system's]",
    )
    _add_wait(group, wait)
    return group


def _add_wait(group: argparse._ArgumentGroup, wait: float) -> None:
    group.add_argument(
        "--wait",
        type=float,
        default=wait,
        metavar="SECONDS",
        help="wait up to this long for rate limits and faults, in all [default: %(default)g]",
    )


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """``--bootstrap-server``, ``--zookeeper`` and ``--command-config``, as in Kafka's own tools."""
    group = section(parser, "Cluster")
    place = group.add_mutually_exclusive_group()
    place.add_argument(
        "--bootstrap-server", metavar="HOST:PORT,...", help="connect to these brokers instead of those in the Cluster manifest"
    )
    place.add_argument(
        "--zookeeper",
        metavar="HOST:PORT/CHROOT",
        help="read and write the quotas in this ZooKeeper: needed before Kafka 2.6, possible up to 3.9",
    )
    group.add_argument("--command-config", metavar="FILE", help="read security settings from this properties file")


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
    section(parser, "Safety").add_argument(
        "--fail-on",
        choices=("error", "warning", "info"),
        default="error",
        metavar="SEVERITY",
        help="stop on findings of this severity or a higher one: error, warning or info [default: %(default)s]",
    )


def add_accept_option(parser: argparse.ArgumentParser) -> None:
    """``--accept``, one guard at a time."""
    section(parser, "Safety").add_argument(
        "--accept", action="append", default=[], metavar="GUARD", help="accept this guard for one run (repeatable)"
    )
