"""``kafka-quotas tool clusters``: the clusters of the manifests, and which of them a change is about.

Nothing is read of any cluster. A pipeline makes a job for each from this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli.declaration import option
from reconciler.cli.option_groups import PATHS, TRUSTED_REF, format_option, out_option
from reconciler.cli.results import OutFile, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.formats import Json
    from reconciler.model import ChangedCluster
    from reconciler.render import Line

_FORMATS: Final = ("text", "json", "outputs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustersArguments:
    """The command line of ``tool clusters``."""

    paths: tuple[str, ...] = PATHS
    cluster: tuple[str, ...] = option("--cluster", section="Cluster", metavar="NAME", help="list this cluster only (repeatable)")
    changed_since: str | None = option(
        "--changed-since",
        section="Git",
        metavar="REF",
        help="compare with this git reference, with {cluster} for the name of each cluster, such as "
        "refs/kafka-quotas/baseline/{cluster}",
    )
    trusted_ref: str | None = TRUSTED_REF
    format: str = format_option(_FORMATS)
    out: tuple[OutFile, ...] = out_option(_FORMATS)


def run(args: ClustersArguments) -> Result:
    """The clusters; exit 0, also when nothing changed."""
    from reconciler.documents import CLUSTERS, ClusterChanges
    from reconciler.workflows import find_changed_clusters

    changed_clusters = find_changed_clusters(
        args.paths, since=args.changed_since, trusted_ref=args.trusted_ref, only=args.cluster
    )
    return Result(
        view=lambda: _lines(changed_clusters, args),
        document=lambda: CLUSTERS.write(ClusterChanges(clusters=tuple(changed_clusters))),
        forms={"outputs": lambda: _outputs(changed_clusters)},
    )


def _outputs(changed_clusters: Sequence[ChangedCluster]) -> str:
    from reconciler.formats import canonical_bytes

    to_do: list[Json] = [{"cluster": cluster.name, "slug": cluster.slug} for cluster in changed_clusters if cluster.to_do]
    untrusted = sum(not cluster.trusted for cluster in changed_clusters)
    return f"count={len(to_do)}\nuntrusted={untrusted}\nmatrix={canonical_bytes(to_do).decode()}\n"


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
