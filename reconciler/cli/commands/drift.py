"""``kafka-quotas drift``: whether the cluster still has what was merged and applied, without ever writing to it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, option_groups, output
from reconciler.cli.declaration import group, option
from reconciler.cli.every_cluster import ChosenClusters, Wanted, result_for
from reconciler.cli.option_groups import BASELINE, baseline_reader
from reconciler.cli.results import DRIFT_FORMATS, OutFile, Result
from reconciler.errors import UsageError
from reconciler.hooks import added, load

if TYPE_CHECKING:
    from reconciler.model import Drift
    from reconciler.ports import Progress
    from reconciler.workflows import GivenBaseline, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftArguments:
    """The command line of ``drift``."""

    paths: tuple[str, ...] = option_groups.PATHS
    trusted_ref: str | None = option_groups.TRUSTED_REF
    baseline: str | None = BASELINE
    clusters: ChosenClusters = group(ChosenClusters, all_clusters="compare every cluster (not with --cluster)")
    current: str | None = option_groups.CURRENT
    propose: str | None = option(
        "--propose",
        section="Git",
        choices=("adopt", "revert"),
        metavar="HOW",
        help="keep a pull request about changes made on the cluster: adopt them into the manifests, or revert them on merge",
    )
    detailed_exitcode: bool = option_groups.detailed_exitcode("exit 2 on drift, to which unmanaged entities do not belong")
    format: str = option_groups.format_option(DRIFT_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(DRIFT_FORMATS)


def run(args: DriftArguments) -> Result:
    """Compare; exit 2 for differences with ``--detailed-exitcode``."""
    from reconciler.cli.output import LiveProgress
    from reconciler.workflows import References, with_lint

    args.clusters.check(current=args.current, propose=args.propose)
    if args.propose and not args.baseline:
        msg = "--propose needs --baseline: without one, a merged change that is not applied yet looks like a change by hand"
        raise UsageError(msg)
    args.clusters.access(args.current)
    wanted = Wanted(paths=args.paths, choice=args.clusters, references=References(trusted=args.trusted_ref))
    with LiveProgress() as progress:
        progress.step("reading the manifests")
        baseline = baseline_reader(args.baseline, args.paths, all_clusters=args.clusters.all_clusters)

        def compare(intent: Intent) -> Result:
            given = baseline(intent.trusted)
            drift = _drift(args, with_lint(intent), given, progress)
            return dataclasses.replace(_result(args, drift), then=lambda: _propose(args, intent, drift, given))

        return result_for(wanted, compare, args.format, args.out)


def _result(args: DriftArguments, drift: Drift) -> Result:
    from reconciler.documents import DRIFT
    from reconciler.render import drift_outputs, drift_view, findings_of_drift

    return Result(
        exit=exit_codes.DIFFERENCES if args.detailed_exitcode and drift.differs else exit_codes.DONE,
        view=lambda: drift_view(drift),
        document=lambda: DRIFT.write(drift),
        findings=lambda: (*findings_of_drift(drift), *drift.findings),
        forms={"outputs": lambda: drift_outputs(drift)},
        beside=drift.findings,
    )


def _drift(args: DriftArguments, intent: Intent, given: GivenBaseline | None, progress: Progress) -> Drift:
    from reconciler.model import display_name
    from reconciler.workflows import find_drift, quota_reader

    progress.step(
        f"reading the quotas of cluster {display_name(intent.spec.name)}" if intent.spec.name else "reading the cluster"
    )
    with quota_reader(intent.spec, args.clusters.access(args.current), trusted=intent.trusted) as reader:
        return find_drift(intent, reader, given)


def _propose(args: DriftArguments, intent: Intent, drift: Drift, given: GivenBaseline | None) -> None:
    """Keep the pull request. Raises ``ReconcilerError``."""
    if args.propose is None:
        return
    from reconciler.workflows import quota_reader

    place = next(added("DRIFT_PROPOSERS"), None)
    if place is None:
        raise UsageError("drift --propose needs the feature drift_requests, and its folder is not installed")
    with quota_reader(intent.spec, args.clusters.access(args.current), trusted=intent.trusted) as reader:
        for sentence in load(place)(intent, drift, reader, given, mode=args.propose):
            output.tell(sentence)
