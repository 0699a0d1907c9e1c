"""``kafka-quotas drift``: whether the cluster still has what was merged and applied, without ever writing."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import every_cluster, exit_codes, notifying, options, output, renderings
from reconciler.cli.arguments import ClusterArguments, typed
from reconciler.errors import ManifestError, ReconcilerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reconciler.formats import Json
    from reconciler.model import Drift, Selector
    from reconciler.ports import Progress
    from reconciler.render import Block
    from reconciler.workflows import GivenBaseline, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftArguments(ClusterArguments):
    """The command line of ``drift``."""

    all_clusters: bool
    parallel: int
    baseline: str | None
    current: str | None
    trusted_ref: str | None
    ignore: tuple[str, ...]
    show_unmanaged: bool
    fail_on: str
    fail_on_unmanaged: bool
    detailed_exitcode: bool
    out: tuple[str, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``drift``."""
    options.add_path_argument(parser)
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="TYPE=GLOB",
        help="leave entities with such a name out of the drift, such as user=tmp-*, and count them in the summary (repeatable)",
    )
    parser.add_argument("--show-unmanaged", action="store_true", help="list unmanaged entities in the text too")
    options.add_fail_on_option(parser)
    options.section(parser, "Safety").add_argument(
        "--fail-on-unmanaged", action="store_true", help="exit 1 when an entity in the scope is unmanaged"
    )
    options.add_trusted_ref_option(parser)
    options.add_baseline_option(parser)
    options.add_cluster_options(parser)
    options.add_all_clusters_option(parser, "compare")
    options.add_parallel_option(parser)
    options.add_current_option(parser, "compare with this snapshot instead of the live cluster")
    options.add_detailed_exitcode_option(parser, "exit 2 on drift, to which unmanaged entities do not belong")
    options.add_output_options(parser, formats=renderings.DRIFT_FORMATS, out=True)


def parse(namespace: argparse.Namespace) -> DriftArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(DriftArguments, namespace)


def run(args: DriftArguments) -> int:
    """Compare and print; 0, or 2 for differences with ``--detailed-exitcode``, or 1 for findings that stop it."""
    from reconciler.cli.progress import PatientProgress
    from reconciler.documents import DRIFT_FORMAT_VERSION
    from reconciler.model import ClusterFailure, Severity
    from reconciler.workflows import References, for_every, load_every_intent, load_intent, with_lint

    files = output.parse_out(args.out, formats=renderings.DRIFT_FORMATS)
    options.check_one_state(args, args.current)
    options.check_all_clusters(
        all_clusters=args.all_clusters,
        cluster=args.cluster,
        bootstrap_server=args.bootstrap_server,
        zookeeper=args.zookeeper,
        current=args.current,
    )
    ignore = tuple(_selector(text) for text in args.ignore)
    references, fail_on = References(trusted=args.trusted_ref), Severity(args.fail_on)
    with PatientProgress(args) as progress:
        progress.step("reading the manifests")
        try:
            if args.all_clusters:
                every_cluster.check_formats(args, files)
                intents = load_every_intent(args.paths, fail_on=fail_on, references=references, by_owner=True)
                # A baseline file is refused here, so no file of the work tree is read.
                given = options.baseline(args.baseline, args.paths, None, all_clusters=True)
                drifts = for_every(
                    intents,
                    lambda intent: _drift(args, with_lint(intent), given, ignore, progress),
                    parallel=options.check_parallel(args.parallel),
                )
                with progress.silent():
                    every_cluster.print_every(
                        args,
                        drifts,
                        document=_document,
                        lines=lambda drift: _lines(args, drift),
                        files=files,
                        version=DRIFT_FORMAT_VERSION,
                    )
                stopped = any(map(_has_errors, (drift for drift in drifts if not isinstance(drift, ClusterFailure))))
                code = every_cluster.exit_code(
                    drifts, differs=lambda drift: drift.differs, detailed=args.detailed_exitcode, stopped=stopped
                )
                return code or _unmanaged(args, [drift for drift in drifts if not isinstance(drift, ClusterFailure)])
            intent = with_lint(
                load_intent(args.paths, cluster=args.cluster, fail_on=fail_on, references=references, by_owner=True)
            )
            given = options.baseline(args.baseline, args.paths, intent.trusted)
        except ManifestError as error:
            if not args.all_clusters:
                output.write_findings(files, error.findings)
            output.print_findings(args, error.findings, to_stdout=True)
            raise
        drift = _drift(args, intent, given, ignore, progress)
    output.print_findings(args, drift.findings, to_stdout=False)
    _print(args, drift, files)
    if _has_errors(drift):
        return exit_codes.NOT_DONE
    if args.detailed_exitcode and drift.differs:
        return exit_codes.DIFFERENCES
    return _unmanaged(args, (drift,))


def _has_errors(drift: Drift) -> bool:
    """Errors in the manifests of isolated owners, whose entities were not compared."""
    from reconciler.model import Severity

    return any(finding.severity is Severity.ERROR for finding in drift.findings)


def _unmanaged(args: DriftArguments, drifts: Sequence[Drift]) -> int:
    """The exit code that ``--fail-on-unmanaged`` asks for, and its reason on stderr."""
    count = sum(len(drift.unmanaged_in_scope) for drift in drifts)
    if not args.fail_on_unmanaged or not count:
        return exit_codes.DONE
    are = "1 entity in the scope is" if count == 1 else f"{count} entities in the scope are"
    output.tell(f"{are} unmanaged (--fail-on-unmanaged). Declare, remove or exclude what --show-unmanaged lists")
    return exit_codes.NOT_DONE


def _drift(
    args: DriftArguments, intent: Intent, given: GivenBaseline | None, ignore: Sequence[Selector], progress: Progress
) -> Drift:
    from reconciler.model import display_name
    from reconciler.workflows import find_drift, quota_reader

    access = options.access(args, current=args.current)
    progress.step(
        f"reading the quotas of cluster {display_name(intent.spec.name)}" if intent.spec.name else "reading the cluster"
    )
    try:
        with quota_reader(intent.spec, access, trusted=intent.trusted) as reader:
            drift = find_drift(intent, reader, given, ignore=ignore)
    except ReconcilerError as error:
        notifying.notify_of_error(intent.spec, error, command="drift")
        raise
    notifying.notify_of_drift(intent.spec, drift)
    return drift


def _print(args: DriftArguments, drift: Drift, files: Sequence[tuple[str, Path]]) -> None:
    from reconciler.files import write_whole

    for name, path in files:
        write_whole(path, [renderings.drift_as(name, drift)])
    output.print_result(
        args,
        document=lambda: _document(drift),
        lines=lambda: _lines(args, drift),
        other=lambda name: renderings.drift_as(name, drift),
    )


def _document(drift: Drift) -> Json:
    from reconciler.documents import drift_to_json

    return drift_to_json(drift)


def _lines(args: DriftArguments, drift: Drift) -> Sequence[Block]:
    from reconciler.render import drift_view

    return drift_view(drift, show_unmanaged=args.show_unmanaged).lines


def _selector(text: str) -> Selector:
    from reconciler.model import EntityType, MatchKind, Selector, TypeMatch

    entity_type, equals, glob = text.partition("=")
    types = [known.value for known in EntityType]
    if not equals or not glob or entity_type not in types:
        msg = f"--ignore takes TYPE=GLOB with TYPE one of {', '.join(types)}, not {text!r}"
        raise UsageError(msg)
    return Selector(types=((entity_type, TypeMatch(kind=MatchKind.GLOB, text=glob)),))
