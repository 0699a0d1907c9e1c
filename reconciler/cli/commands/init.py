"""``kafka-quotas init``: make a repository for quotas, from nothing or from what a cluster already has."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.cli import exit_codes, options, output
from reconciler.cli.arguments import OutputArguments, typed
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import Connection, CurrentState
    from reconciler.render import Line
    from reconciler.workflows import Made, Workflows

_FORGES: Final = ("github", "gitlab", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitArguments(OutputArguments):
    """The command line of ``init``."""

    folder: str
    bootstrap_server: str | None
    zookeeper: str | None
    command_config: str | None
    current: str | None
    name: str | None
    ci: str
    workflows: str | None
    overwrite: bool
    adopt: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``init``."""
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="the new repository [default: .]")
    parser.add_argument("--name", metavar="NAME", help="use this name for the cluster in the manifests [default: its id]")
    parser.add_argument(
        "--ci",
        choices=_FORGES,
        default="github",
        metavar="FORGE",
        help=f"write pipelines for {', '.join(_FORGES[:-1])} or {_FORGES[-1]} [default: %(default)s]",
    )
    parser.add_argument(
        "--workflows",
        metavar="OWNER/NAME@COMMIT",
        help="let pipelines take kafka-quotas from this repository on github.com [default: what pip recorded, or a placeholder]",
    )
    parser.add_argument("--overwrite", action="store_true", help="write also into a folder that is not empty")
    parser.add_argument(
        "--adopt",
        action="store_true",
        help="make an owner with a folder for each prefix of names on the cluster, and isolate owners",
    )
    options.add_connection_options(parser)
    options.add_current_option(parser, "begin with the quotas of this snapshot instead of a live cluster")
    options.add_output_options(parser)


def parse(namespace: argparse.Namespace) -> InitArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(InitArguments, namespace)


def run(args: InitArguments) -> int:
    """Write the files, print which and what to do next."""
    from reconciler.workflows import Setting, make_repository, parse_workflows, require_room

    options.check_one_state(args, args.current)
    if args.command_config and not args.bootstrap_server and not args.zookeeper:
        raise UsageError("--command-config needs --bootstrap-server or --zookeeper")
    workflows = parse_workflows(args.workflows) if args.workflows else _own_workflows(args)
    if args.workflows and args.ci == "none":
        raise UsageError("--workflows names the repository and commit that pipelines take kafka-quotas from. Pass --ci, too")
    folder = Path(args.folder)
    require_room(folder, overwrite=args.overwrite)
    state = _state(args)
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
    if made.export is not None and made.export.findings and args.format == "text":
        from reconciler.render import findings_lines

        output.print_lines(args, findings_lines(made.export.findings), sys.stderr)
    output.print_result(args, document=lambda: _document(args, made), lines=lambda: _lines(args, made))
    return exit_codes.DONE


def _own_workflows(args: InitArguments) -> Workflows | None:
    """Those of the commit that runs here, if it came from GitHub: pipelines then install what was tried."""
    from reconciler.model import escaped
    from reconciler.workflows import Workflows, installed_from

    installation = installed_from()
    if args.ci == "none":
        return None
    if installation.repository is not None and installation.commit is not None:
        return Workflows(repository=installation.repository, commit=installation.commit)
    if installation.folder is not None:
        output.tell(
            f"kafka-quotas runs from a checkout in {escaped(installation.folder)}, which pipelines cannot install. "
            "Pass --workflows OWNER/NAME@COMMIT, or replace OWNER/kafka-quotas and the commit in the pipelines"
        )
    return None


def _state(args: InitArguments) -> CurrentState | None:
    import dataclasses

    from reconciler.cli.progress import PatientProgress
    from reconciler.model import ClusterSpec, ForeignText
    from reconciler.workflows import open_cluster, snapshot_reader

    if args.current:
        state = snapshot_reader(args.current).current_state()
    elif args.bootstrap_server or args.zookeeper:
        with PatientProgress(args) as progress:
            progress.step("reading the cluster's quotas")
            with contextlib.closing(open_cluster(ClusterSpec(), options.access(args))) as cluster:
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
    from reconciler.model import ClusterSpec
    from reconciler.workflows import CLUSTER_FOLDER, connection_to_write

    # The properties are those of whoever makes the repository; a pipeline has its own.
    return connection_to_write(
        ClusterSpec(), folder=folder / CLUSTER_FOLDER, bootstrap_server=args.bootstrap_server, zookeeper=args.zookeeper
    )


def _next(args: InitArguments, made: Made) -> list[str]:
    folder = shlex.quote(args.folder)
    cluster = shlex.quote(made.clusters[-1])
    how = f" --command-config {shlex.quote(args.command_config)}" if args.command_config else ""
    plan = f"kafka-quotas plan {folder} --cluster={cluster}{how}"
    if args.current:
        plan += f" --current {shlex.quote(args.current)}"
    return [f"kafka-quotas validate {folder}", plan, f"git -C {folder} init && git -C {folder} add ."]


def _document(args: InitArguments, made: Made) -> dict[str, Json]:
    from reconciler.documents import finding_to_json
    from reconciler.formats import FORMAT_VERSION

    return {
        "format_version": FORMAT_VERSION,
        "folder": args.folder,
        "files": [*made.files],
        "clusters": [*made.clusters],
        "placeholders": [*made.placeholders],
        "findings": [finding_to_json(finding) for finding in made.export.findings] if made.export else [],
        "next": [*_next(args, made)],
    }


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
