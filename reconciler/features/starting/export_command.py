"""``kafka-quotas export``: write manifests, or a snapshot, from a live cluster."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.results import Result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.features.starting.export import ExportResult
    from reconciler.render import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportArguments:
    """The command line of ``export``."""

    paths: tuple[str, ...] = option_groups.connection_paths()
    folder: Path | None = option("--folder", metavar="DIR", help="write a Cluster manifest and its quotas into this folder")
    overwrite: bool = option("--overwrite", help="write also into a folder that is not empty")
    snapshot: Path | None = option(
        "--snapshot", metavar="FILE", help="write a snapshot for plan --current and backtest --current"
    )
    split_by: str | None = option(
        "--split-by",
        choices=("owner", "prefix"),
        metavar="WHAT",
        help="write a folder for each owner of the Repository manifest (owner), or for each prefix of names (prefix)",
    )
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    format: str = option_groups.format_option()


def run(args: ExportArguments) -> Result:
    """Read the cluster, and write the files."""
    from reconciler.cli.output import PatientProgress
    from reconciler.documents import FINDINGS, FindingList
    from reconciler.features.starting.export import connection_to_write, export_cluster, owners_to_split, require_free
    from reconciler.resolution import callback_notes
    from reconciler.workflows import load_target, open_cluster

    if args.folder is None and args.snapshot is None:
        msg = "name an output: --folder DIR for manifests, --snapshot FILE for a snapshot"
        raise UsageError(msg)
    folder = args.folder
    if folder is not None:
        require_free(folder, overwrite=args.overwrite)
    if args.split_by and folder is None:
        raise UsageError("--split-by needs --folder")
    owners = owners_to_split(args.split_by, args.paths)
    spec = load_target(args.paths, cluster=args.connection.cluster).spec
    connection = None
    if folder is not None:
        connection = connection_to_write(
            spec,
            folder=folder,
            bootstrap_server=args.connection.bootstrap_server,
            zookeeper=args.connection.zookeeper,
            command_config=args.connection.command_config,
        )
    with PatientProgress() as progress:
        progress.step("connecting to the cluster")
        with contextlib.closing(open_cluster(spec, args.connection.access())) as cluster:
            progress.step("reading the cluster's quotas")
            result = export_cluster(
                cluster,
                spec,
                folder=folder,
                snapshot=args.snapshot,
                connection=connection,
                owners=owners,
            )
    for note in (*callback_notes(result.state.cluster), *result.state.notes):
        output.tell(note)
    findings = result.export.findings if result.export else ()
    counts = {"files": _files(result), "clusters": 1, "entities": len(result.state.entities)}
    return Result(
        beside=findings if args.format == "text" else (),
        view=lambda: _lines(result),
        document=lambda: FINDINGS.write(FindingList.of(findings, counts)),
    )


def _files(result: ExportResult) -> int:
    return (len(result.export.files) if result.export else 0) + (result.snapshot is not None)


def _lines(result: ExportResult) -> list[Line]:
    from reconciler.model import display_name, escaped
    from reconciler.render import line

    total = len(result.state.entities)
    lines = []
    if result.export is not None:
        name = display_name(result.export.cluster_name)
        lines.append(
            line(f"Wrote {result.export.declared} of {total} entities of cluster {name} to {escaped(str(result.folder))}:")
        )
        lines += [line(f"  {file.path}") for file in result.export.files]
        if result.export.declared < total:
            lines.append(line(f"{total - result.export.declared} could not be declared. They are comments in cluster.yaml."))
    if result.snapshot is not None:
        lines.append(line(f"Wrote a snapshot of {total} entities to {escaped(str(result.snapshot))}."))
    return lines
