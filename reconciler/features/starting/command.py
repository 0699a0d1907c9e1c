"""``kafka-quotas init``: make a repository for quotas, from nothing or from what a cluster already has."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.cli import option_groups, output
from reconciler.cli.declaration import argument, group, option
from reconciler.cli.results import Result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.features.starting.repository import Made
    from reconciler.model import Connection, CurrentState
    from reconciler.render import Line
    from reconciler.workflows import Access

_FORGES: Final = ("github", "gitlab", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitArguments:
    """The command line of ``init``."""

    folder: str = argument("DIR", nargs="?", default=".", help="the new repository [default: .]")
    name: str | None = option("--name", metavar="NAME", help="use this name for the cluster in the manifests [default: its id]")
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
    overwrite: bool = option("--overwrite", help="write also into a folder that is not empty")
    adopt: bool = option(
        "--adopt", help="make an owner with a folder for each prefix of names on the cluster, and isolate owners"
    )
    place: option_groups.AddressOptions = group(option_groups.AddressOptions)
    current: str | None = option_groups.current("begin with the quotas of this snapshot instead of a live cluster")


def run(args: InitArguments) -> Result:
    """Write the files."""
    from reconciler.features.starting.export import require_free
    from reconciler.features.starting.repository import Setting, make_repository, parse_workflows

    access = args.place.access(args.current)
    if args.place.command_config and not args.place.named:
        raise UsageError("--command-config needs --bootstrap-server or --zookeeper")
    workflows = parse_workflows(args.workflows) if args.workflows else None
    if args.workflows and args.ci == "none":
        raise UsageError("--workflows names the repository and commit that pipelines take kafka-quotas from. Pass --ci, too")
    folder = Path(args.folder)
    require_free(folder, overwrite=args.overwrite)
    state = _state(args, access)
    if args.name is not None and state is None:
        raise UsageError("--name names the cluster of --bootstrap-server, --zookeeper or --current. Give one")
    if args.adopt and state is None:
        raise UsageError("--adopt adopts the quotas of --bootstrap-server, --zookeeper or --current. Give one")
    made = make_repository(
        folder,
        Setting(forge=args.ci, version=reconciler.__version__, workflows=workflows),
        overwrite=args.overwrite,
        state=state,
        connection=_connection(args, folder),
        adopt=args.adopt,
    )
    return Result(beside=made.export.findings if made.export is not None else (), view=lambda: _lines(args, made))


def _state(args: InitArguments, access: Access) -> CurrentState | None:
    from reconciler.cli.output import PatientProgress
    from reconciler.model import ClusterSpec, ForeignText
    from reconciler.workflows import open_cluster, snapshot_reader

    if args.current:
        state = snapshot_reader(args.current).current_state()
    elif args.place.named:
        with PatientProgress() as progress:
            progress.step("reading the cluster's quotas")
            with contextlib.closing(open_cluster(ClusterSpec(), access)) as cluster:
                state = cluster.current_state()
    else:
        return None
    for note in state.notes:
        output.tell(note)
    return (
        state
        if args.name is None
        else dataclasses.replace(state, cluster=dataclasses.replace(state.cluster, name=ForeignText(args.name)))
    )


def _connection(args: InitArguments, folder: Path) -> Connection | None:
    from reconciler.features.starting.export import connection_to_write
    from reconciler.features.starting.repository import CLUSTER_FOLDER
    from reconciler.model import ClusterSpec

    # The properties are those of whoever makes the repository; a pipeline has its own.
    return connection_to_write(
        ClusterSpec(),
        folder=folder / CLUSTER_FOLDER,
        bootstrap_server=args.place.bootstrap_server,
        zookeeper=args.place.zookeeper,
    )


def _next(args: InitArguments, made: Made) -> list[str]:
    folder = shlex.quote(args.folder)
    cluster = shlex.quote(made.clusters[-1])
    how = f" --command-config {shlex.quote(args.place.command_config)}" if args.place.command_config else ""
    plan = f"kafka-quotas plan {folder} --cluster={cluster}{how}"
    if args.current:
        plan += f" --current {shlex.quote(args.current)}"
    return [f"kafka-quotas validate {folder}", plan, f"git -C {folder} init && git -C {folder} add ."]


def _lines(args: InitArguments, made: Made) -> list[Line]:
    from reconciler.model import display_name, escaped
    from reconciler.render import Style, line

    lines = [line(f"Made a repository of {len(made.files)} files in {escaped(str(made.folder))}:")]
    lines += [line(f"  {escaped(path)}") for path in made.files]
    if made.export is not None:
        lines.append(line(f"The manifests declare {made.export.declared} entities of cluster {display_name(made.clusters[0])}."))
    if made.placeholders:
        lines.append(line(("Replace ", Style.WARN), " and ".join(made.placeholders), ". README.md lists the values."))
    lines.append(line(("Next:", Style.STRONG)))
    lines += [line(f"  {escaped(command)}") for command in _next(args, made)]
    return lines
