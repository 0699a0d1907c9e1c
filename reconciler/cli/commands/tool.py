"""``kafka-quotas tool schema``: print a JSON Schema, for an editor or another tool."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import output, results
from reconciler.cli.declaration import argument, option
from reconciler.cli.option_groups import PATHS, TRUSTED_REF, format_option, out_option
from reconciler.cli.results import OutFile, Result
from reconciler.formats import load_schema, schema_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.formats import Json
    from reconciler.model import ChangedCluster
    from reconciler.render import Line


_KINDS: Final = {
    "ClientQuotas": "client-quotas",
    "Cluster": "cluster",
    "FindingsBaseline": "findings-baseline",
    "Repository": "repository",
    "TrafficMapping": "traffic-mapping",
}
_NAMES: Final = (*_KINDS, *schema_names())


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaArguments:
    """The command line of ``tool schema``."""

    kind: str = argument("KIND", choices=_NAMES, help=f"one of {', '.join(_NAMES)}")


def print_schema(args: SchemaArguments) -> Result:
    """The schema as it is shipped."""
    schema = load_schema(_KINDS.get(args.kind, args.kind))
    return Result(forms={"text": lambda: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"})


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


def list_clusters(args: ClustersArguments) -> Result:
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

    to_do: list[Json] = [
        {"cluster": cluster.name, "slug": cluster.slug, "traffic": "" if cluster.traffic is None else cluster.traffic.value}
        for cluster in changed_clusters
        if cluster.to_do
    ]
    untrusted = sum(not cluster.trusted for cluster in changed_clusters)
    return f"count={len(to_do)}\nuntrusted={untrusted}\nmatrix={canonical_bytes(to_do).decode()}\n"


def _lines(changed_clusters: Sequence[ChangedCluster], args: ClustersArguments) -> list[Line]:
    """Return a line for each cluster: its change, or only its name where nothing was compared."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderArguments:
    """The command line of ``tool render``."""

    file: str = argument("FILE", help="a saved plan (plan --out json=FILE), or the JSON of apply")
    format: str = format_option(results.PLAN_FORMATS)
    out: tuple[OutFile, ...] = out_option(results.PLAN_FORMATS)


def render(args: RenderArguments) -> Result:
    """Read and check the document; exit 1 for a file that is neither or a plan that was changed by hand."""
    from reconciler.documents import APPLY_REPORT, read_plan

    text = output.read_file(Path(args.file))
    if not _is_report(text):
        return results.result_of_plan(read_plan(text, name=args.file))
    from reconciler.render import apply_summary_view

    summary = APPLY_REPORT.read(text, name=args.file)
    return Result(view=lambda: apply_summary_view(summary, name=args.file), document=lambda: json.loads(text))


def _is_report(text: str) -> bool:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "result" in document and "changes" in document


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainArguments:
    """The command line of ``explain``."""

    id: str | None = argument(
        "ID", nargs="?", help="the [id] of a finding, a guard or a class of drift, or a page [default: list all]"
    )


def explain(args: ExplainArguments) -> Result:
    """One explanation or page, or without an id all of them in a line each."""
    from reconciler.render import explanation_lines, index_lines
    from reconciler.workflows import explain_id, explanations, page_names

    if args.id:
        chosen = explain_id(args.id)
        return Result(view=lambda: explanation_lines(chosen))
    return Result(view=lambda: index_lines(list(explanations().values()), page_names()))
