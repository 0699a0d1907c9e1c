"""``kafka-quotas clusters``: list the clusters, and those that a change affects, for the matrix of a pipeline."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.formats import Json
    from reconciler.model import ChangedCluster
    from reconciler.render import Line

_FORMATS: Final = ("text", "json", "outputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustersArguments(OutputArguments):
    """The command line of ``clusters``."""

    paths: tuple[str, ...]
    cluster: tuple[str, ...]
    changed_since: str | None
    trusted_ref: str | None
    out: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``clusters``."""
    options.add_path_argument(parser)
    cluster = options.section(parser, "Cluster")
    cluster.add_argument("--cluster", action="append", default=[], metavar="NAME", help="list this cluster only (repeatable)")
    options.section(parser, "Git").add_argument(
        "--changed-since",
        metavar="REF",
        help="compare with this git reference, with {cluster} for the name of each cluster, such as "
        "refs/kafka-quotas/baseline/{cluster}",
    )
    options.add_trusted_ref_option(parser)
    options.add_output_options(parser, formats=_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> ClustersArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(ClustersArguments, namespace)


def run(args: ClustersArguments) -> int:
    """Print the clusters; 0, also when nothing changed."""
    from reconciler.files import write_whole
    from reconciler.workflows import find_changed_clusters

    files = output.parse_out(args.out, formats=_FORMATS)
    changed_clusters = find_changed_clusters(
        args.paths, since=args.changed_since, trusted_ref=args.trusted_ref, only=args.cluster
    )
    for name, path in files:
        write_whole(path, [_as(name, changed_clusters, args)])
    output.print_result(
        args,
        document=lambda: _document(changed_clusters),
        lines=lambda: _lines(changed_clusters, args),
        other=lambda name: _as(name, changed_clusters, args),
    )
    return exit_codes.DONE


def _as(name: str, changed_clusters: Sequence[ChangedCluster], args: ClustersArguments) -> str:
    from reconciler.formats import canonical_bytes, document_text
    from reconciler.render import plain

    if name == "json":
        return document_text(_document(changed_clusters))
    if name == "text":
        return plain(_lines(changed_clusters, args))
    to_do: list[Json] = [{"cluster": cluster.name, "slug": cluster.slug} for cluster in changed_clusters if cluster.to_do]
    untrusted = sum(not cluster.trusted for cluster in changed_clusters)
    return f"count={len(to_do)}\nuntrusted={untrusted}\nmatrix={canonical_bytes(to_do).decode()}\n"


def _document(changed_clusters: Sequence[ChangedCluster]) -> dict[str, Json]:
    from reconciler.formats import FORMAT_VERSION

    rows: list[Json] = [
        {
            "name": cluster.name,
            "slug": cluster.slug,
            "change": cluster.change.value,
            "since": cluster.since,
            "reasons": [*cluster.reasons],
            "trusted": cluster.trusted,
            "to_do": cluster.to_do,
        }
        for cluster in changed_clusters
    ]
    return {"format_version": FORMAT_VERSION, "clusters": rows}


def _lines(changed_clusters: Sequence[ChangedCluster], args: ClustersArguments) -> list[Line]:
    """What became of each cluster; only its name where nothing was compared."""
    from reconciler.model import display_name
    from reconciler.render import line

    lines = []
    for cluster in changed_clusters:
        since = f" since {cluster.since[:12]}" if cluster.since else ""
        why = f" ({', '.join(cluster.reasons)})" if cluster.reasons else ""
        trust = ", not in the trusted reference, so not yet planned" if not cluster.trusted else ""
        change = f"{cluster.change.value:<8} " if args.changed_since is not None else ""
        lines.append(line(f"{change}{display_name(cluster.name)}{why}{since}{trust}"))
    return lines or [line("No Cluster manifest was found.")]
