"""``kafka-quotas init`` and ``export``: a repository for quotas, from nothing or from what a cluster already has."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import option_groups, output
from reconciler.cli.declaration import argument, group, option
from reconciler.cli.results import Result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.features.starting.manifests import Export
    from reconciler.model import CurrentState
    from reconciler.render import Line
    from reconciler.workflows import Access


_FORGES: Final = ("github", "gitlab", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitArguments:
    """The command line of ``init``."""

    folder: str = argument("DIR", nargs="?", default=".", help="the new repository [default: .]")
    name: str | None = option(
        "--name",
        metavar="NAME",
        help="use this name for the cluster in the manifests. Without a cluster, --traffic is of the example's cluster of this "
        "name [default: its id, or production]",
    )
    ci: str = option(
        "--ci",
        choices=_FORGES,
        default="github",
        metavar="FORGE",
        help=f"write pipelines for {', '.join(_FORGES[:-1])} or {_FORGES[-1]} [default: github]",
    )
    workflows: str | None = option(
        "--workflows",
        metavar="OWNER/NAME@COMMIT",
        help="let pipelines take kafka-quotas from this repository on github.com [default: a placeholder]",
    )
    traffic: str | None = option(
        "--traffic",
        metavar="SOURCE",
        help="judge pull requests by this traffic: prometheus+https://HOST, an address or table of per-second totals, or a "
        "folder of request logs on a runner. A nightly job keeps totals of logs [default: none]",
    )
    overwrite: bool = option("--overwrite", help="write also into a folder that is not empty")
    place: option_groups.AddressOptions = group(option_groups.AddressOptions)
    current: str | None = option_groups.current("begin with the quotas of this snapshot instead of a live cluster")


def init(args: InitArguments) -> Result:
    """Write the files."""
    from reconciler.features.starting.manifests import connection_to_write, require_free
    from reconciler.features.starting.repository import CLUSTER_FOLDER, TEMPLATE_CLUSTERS, make_repository, require_workflows
    from reconciler.model import ClusterSpec

    access = args.place.access(args.current)
    if args.place.command_config and not args.place.named:
        raise UsageError("--command-config needs --bootstrap-server or --zookeeper")
    if args.workflows:
        require_workflows(args.workflows)
    if args.workflows and args.ci == "none":
        raise UsageError("--workflows names the repository and commit that pipelines take kafka-quotas from. Pass --ci, too")
    folder = Path(args.folder)
    require_free(folder, overwrite=args.overwrite)
    state = _state(args, access)
    if args.name is not None and state is None and (args.traffic is None or args.name not in TEMPLATE_CLUSTERS):
        raise UsageError(
            "--name names the cluster of --bootstrap-server, --zookeeper or --current, or with --traffic one of the example: "
            f"{' or '.join(TEMPLATE_CLUSTERS)}. Give one"
        )
    # The properties are those of the user who makes the repository; a pipeline has its own.
    address = dataclasses.replace(access, command_config=None)
    connection = connection_to_write(ClusterSpec(), address, folder=folder / CLUSTER_FOLDER)
    cluster = state or args.name or TEMPLATE_CLUSTERS[-1]
    files, export = make_repository(
        folder, forge=args.ci, workflows=args.workflows, traffic=args.traffic, cluster=cluster, connection=connection
    )
    return Result(beside=export.findings if export is not None else (), view=lambda: _lines(args, files, export))


def _state(args: InitArguments, access: Access) -> CurrentState | None:
    from reconciler.cli.output import LiveProgress
    from reconciler.model import ClusterSpec, ForeignText
    from reconciler.workflows import open_cluster, snapshot_reader

    if args.current:
        state = snapshot_reader(args.current).current_state()
    elif args.place.named:
        with LiveProgress() as progress:
            progress.step("reading the cluster's quotas")
            with contextlib.closing(open_cluster(ClusterSpec(), access)) as cluster:
                state = cluster.current_state()
    else:
        return None
    for note in state.notes:
        output.tell(note)
    if args.name is None:
        return state
    return dataclasses.replace(state, cluster=dataclasses.replace(state.cluster, name=ForeignText(args.name)))


def _lines(args: InitArguments, files: Mapping[str, str], export: Export | None) -> list[Line]:
    from reconciler.features.starting.repository import PLACEHOLDERS, TEMPLATE_CLUSTERS
    from reconciler.model import display_name, escaped
    from reconciler.render import Style, line

    lines = [line(f"Made a repository of {len(files)} files in {escaped(args.folder)}:")]
    lines += [line(f"  {escaped(path)}") for path in files]
    cluster = TEMPLATE_CLUSTERS[-1]
    if export is not None:
        cluster = export.cluster_name
        lines.append(line(f"The manifests declare {export.declared} entities of cluster {display_name(cluster)}."))
    own = [text for path, text in files.items() if path != "README.md"]
    if words := [word for word in PLACEHOLDERS if any(word in text for text in own)]:
        lines.append(line(("Replace ", Style.WARN), " and ".join(words), ". README.md lists the values."))
    if args.traffic is None and args.ci != "none":
        text = "Pull requests are not checked against traffic, since none is named: kafka-quotas explain record-traffic"
        lines.append(line(text))
    elif args.traffic is not None and export is None:
        name = args.name or cluster
        other = next(other for other in TEMPLATE_CLUSTERS if other != name)
        lines.append(line(f"The traffic is of {name}. --name {other} chooses the other one."))
    folder = shlex.quote(args.folder)
    plan = f"kafka-quotas plan {folder} --cluster={shlex.quote(cluster)}"
    plan += f" --command-config {shlex.quote(args.place.command_config)}" if args.place.command_config else ""
    plan += f" --current {shlex.quote(args.current)}" if args.current else ""
    lines.append(line(("Next:", Style.STRONG)))
    commands = (f"kafka-quotas validate {folder}", plan, f"git -C {folder} init && git -C {folder} add .")
    return [*lines, *(line(f"  {escaped(command)}") for command in commands)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportArguments:
    """The command line of ``export``."""

    paths: tuple[str, ...] = option_groups.connection_paths()
    folder: Path | None = option("--folder", metavar="DIR", help="write a Cluster manifest and its quotas into this folder")
    overwrite: bool = option("--overwrite", help="write also into a folder that is not empty")
    snapshot: Path | None = option(
        "--snapshot", metavar="FILE", help="write a snapshot for plan --current and backtest --current"
    )
    connection: option_groups.ConnectionOptions = group(option_groups.ConnectionOptions)
    format: str = option_groups.format_option()


def export(args: ExportArguments) -> Result:
    """Read the cluster, and write the files."""
    from reconciler.cli.output import LiveProgress
    from reconciler.documents import FINDINGS, FindingList
    from reconciler.features.starting.manifests import export_cluster, require_free
    from reconciler.resolution import callback_notes
    from reconciler.workflows import load_target, open_cluster

    if args.folder is None and args.snapshot is None:
        raise UsageError("name an output: --folder DIR for manifests, --snapshot FILE for a snapshot")
    if args.folder is not None:
        require_free(args.folder, overwrite=args.overwrite)
    spec, access = load_target(args.paths, cluster=args.connection.cluster).spec, args.connection.access()
    with LiveProgress() as progress:
        progress.step("connecting to the cluster")
        with contextlib.closing(open_cluster(spec, access)) as cluster:
            progress.step("reading the cluster's quotas")
            state, made = export_cluster(cluster, spec, access, folder=args.folder, snapshot=args.snapshot)
    for note in (*callback_notes(state.cluster), *state.notes):
        output.tell(note)
    findings = made.findings if made else ()
    files = (len(made.files) if made else 0) + (args.snapshot is not None)
    counts = {"files": files, "clusters": 1, "entities": len(state.entities)}
    return Result(
        beside=findings if args.format == "text" else (),
        view=lambda: _export_lines(args, made, len(state.entities)),
        document=lambda: FINDINGS.write(FindingList.of(findings, counts)),
    )


def _export_lines(args: ExportArguments, made: Export | None, total: int) -> list[Line]:
    from reconciler.model import display_name, escaped
    from reconciler.render import line

    lines = []
    if made is not None:
        name = display_name(made.cluster_name)
        lines.append(line(f"Wrote {made.declared} of {total} entities of cluster {name} to {escaped(str(args.folder))}:"))
        lines += [line(f"  {path}") for path in made.files]
        if made.declared < total:
            lines.append(line(f"{total - made.declared} could not be declared. The warnings name them."))
    if args.snapshot is not None:
        lines.append(line(f"Wrote a snapshot of {total} entities to {escaped(str(args.snapshot))}."))
    return lines
