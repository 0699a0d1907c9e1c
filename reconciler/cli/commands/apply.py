"""``kafka-quotas apply``: change the cluster to what the manifests declare, and verify."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import every_cluster, exit_codes, option_groups, output, writing
from reconciler.cli.declaration import group, option
from reconciler.cli.every_cluster import CHANGED_SINCE, ChosenClusters, Wanted, load_one
from reconciler.cli.option_groups import BASELINE, baseline_reader
from reconciler.cli.results import Result
from reconciler.cli.writing import INTERRUPTS
from reconciler.errors import NotConfirmedError, UsageError

if TYPE_CHECKING:
    from reconciler.cli.output import PatientProgress
    from reconciler.formats import Json
    from reconciler.model import ApplyReport, Finding, Plan
    from reconciler.workflows import Approval, Intent, RolloutResult, Withheld


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyArguments:
    """The command line of ``apply``."""

    paths: tuple[str, ...] = option_groups.PATHS
    plan: str | None = option(
        "--plan", metavar="FILE", help="apply this saved plan (plan --out json=FILE), and refuse when a new plan would differ"
    )
    owner: tuple[str, ...] = option_groups.OWNERS
    write: writing.LongWritingOptions = group(writing.LongWritingOptions)
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    base: str | None = option_groups.BASE
    baseline: str | None = BASELINE
    record_baseline: str | None = option(
        "--record-baseline", section="Git", metavar="FILE", help="write a baseline for drift to this file, after a complete run"
    )
    clusters: ChosenClusters = group(ChosenClusters, all_clusters="apply to every cluster (not with --cluster)")
    changed_since: str | None = CHANGED_SINCE
    parallel: int = option(
        "--parallel", section="Cluster", default=8, metavar="N", help="with --all-clusters: N clusters at once [default: 8]"
    )
    keep_going: bool = option("--keep-going", section="Cluster", help="with --all-clusters: go on after a cluster that failed")
    format: str = option_groups.format_option()

    @property
    def wanted(self) -> Wanted:
        """What is read of the manifests."""
        from reconciler.workflows import References

        return Wanted(
            paths=self.paths,
            choice=self.clusters,
            references=References(trusted=self.trusted_ref, base=self.base),
            fail_on=self.fail_on,
            owners=self.owner,
            changed_since=self.changed_since,
        )


def run(args: ApplyArguments) -> Result:
    """Apply and print the report; the exit code states whether anything was written."""
    from reconciler.cli.output import PatientProgress
    from reconciler.policy import check_guard_ids
    from reconciler.ports import SystemClock
    from reconciler.workflows import (
        Dialogue,
        apply_manifests,
        check_recordable,
        open_cluster,
        source_of,
    )

    check_guard_ids(args.write.accept)
    args.clusters.check(
        since=args.changed_since,
        plan=args.plan,
        expect_digest=args.write.expect_digest,
        record_baseline=args.record_baseline,
    )
    if args.clusters.all_clusters:
        from reconciler.cli.commands.apply import apply_to_every

        return apply_to_every(args)
    access = args.clusters.access()
    with writing.audited(args.write, "apply", args.format) as audit, PatientProgress() as progress:
        approval = _approval(args)
        approver = writing.Approver(write=args.write, as_json=args.format == "json", progress=progress)
        progress.step("reading the manifests")
        intent = load_one(args.wanted)
        given = baseline_reader(args.baseline, args.paths)(intent.trusted)
        if args.record_baseline:
            check_recordable(intent, Path(args.record_baseline), validate_only=args.write.validate_only)
        audit.about(intent.spec, access, source=lambda: source_of(Path(intent.paths[0])), trusted=intent.trusted)
        progress.step("connecting to the cluster")
        cluster = open_cluster(intent.spec, access, trusted=intent.trusted)
        with writing.given_back(cluster):
            report = apply_manifests(
                intent,
                cluster,
                approval,
                dialogue=Dialogue(confirm=approver.confirm, show=approver.show_findings, on_refusal=approver.show_refused),
                clock=SystemClock(),
                progress=progress,
                given=given,
            )
    return writing.finish(args.write, report, audit, args.format, also=lambda: _record(args, report, intent))


def _approval(args: ApplyArguments) -> Approval:
    from reconciler.planning import read_saved_plan
    from reconciler.workflows import Approval

    saved = read_saved_plan(output.read_file(Path(args.plan)), name=args.plan) if args.plan else None
    return Approval(
        accepted=args.write.accept,
        expected_digest=args.write.expect_digest,
        saved=saved,
        settings=args.write.settings(),
        step_down=args.write.steps(),
    )


def _record(args: ApplyArguments, report: ApplyReport, intent: Intent) -> None:
    from reconciler.workflows import is_clean, write_baseline

    if not args.record_baseline:
        return
    if is_clean(report):
        write_baseline(intent, report, Path(args.record_baseline))
    elif not output.is_quiet():
        output.tell("no baseline was recorded: the run was not a complete one")


_MOST_PARALLEL: Final = 200


def apply_to_every(args: ApplyArguments) -> Result:
    """Write every cluster, stage by stage.

    Each has a plan of its own, so none is confirmed here: ``--auto-approve`` or ``--validate-only`` is needed.
    """
    from reconciler.cli.output import PatientProgress
    from reconciler.workflows import Rollout, plan_rollout

    _check(args)
    with PatientProgress() as progress:
        progress.step("reading the manifests")
        planned = plan_rollout(every_cluster.load_every(args.wanted))
        run = _EachCluster(args, progress)
        rollout = Rollout(
            work=run.apply,
            ended=run.ended,
            parallel=args.parallel,
            keep_going=args.keep_going,
            stop_wanted=INTERRUPTS.stop_wanted,
        )
        # Until the process ends: a signal begins no further cluster, and costs no report of one that was written.
        INTERRUPTS.hold()
        results = rollout.run(planned)
    return run.finish(results)


def _check(args: ApplyArguments) -> None:
    if not 1 <= args.parallel <= _MOST_PARALLEL:
        raise UsageError(f"--parallel takes a number from 1 to {_MOST_PARALLEL}, not {args.parallel}")
    if not args.write.auto_approve and not args.write.validate_only:
        raise NotConfirmedError("--all-clusters asks for no confirmation. Review plan --all-clusters and pass --auto-approve")
    if args.write.report and Path(args.write.report).is_file():
        raise UsageError("with --all-clusters, --report names a folder for a report of each cluster, and this is a file")


class _EachCluster:
    """Writes one cluster, and keeps what is printed and recorded of all."""

    def __init__(self, args: ApplyArguments, progress: PatientProgress) -> None:
        self._args = args
        self._progress = progress
        self._baseline = baseline_reader(args.baseline, args.paths, all_clusters=True)
        # A signal is raised in the main thread, and these runs may be in others: it ends them between two requests.
        self._settings = dataclasses.replace(args.write.settings(), breakable=contextlib.nullcontext)
        self._steps = args.write.steps()
        self._printing = threading.Lock()
        self._findings: dict[str | None, tuple[Finding, ...]] = {}
        """Of the plan of each cluster, to be printed above its report."""

    def apply(self, intent: Intent, earlier: Withheld) -> ApplyReport:
        """Raises ``ReconcilerError``, only when nothing was written."""
        from reconciler.cli import writing
        from reconciler.model import display_name
        from reconciler.ports import SystemClock
        from reconciler.workflows import (
            Approval,
            Dialogue,
            apply_manifests,
            open_cluster,
            source_of,
        )

        write, access = self._args.write, self._args.clusters.access()
        intent = dataclasses.replace(intent, scope=dataclasses.replace(intent.scope, withheld_before=earlier))
        with writing.audited(write, "apply") as audit:
            audit.about(intent.spec, access, source=lambda: source_of(Path(intent.paths[0])), trusted=intent.trusted)
            self._progress.step(f"applying to cluster {display_name(intent.spec.name or '')}")
            cluster = open_cluster(intent.spec, access, trusted=intent.trusted)
            with writing.given_back(cluster):
                report = apply_manifests(
                    intent,
                    cluster,
                    Approval(accepted=write.accept, settings=self._settings, step_down=self._steps),
                    dialogue=Dialogue(confirm=lambda _: True, show=self._keep_findings),
                    clock=SystemClock(),
                    progress=self._progress,
                    given=self._baseline(None),
                )
            audit.ended(report)
            audit.notify(report)
        return report

    def _keep_findings(self, plan: Plan) -> None:
        self._findings[plan.cluster.name] = plan.findings

    def ended(self, stage: str | None, result: RolloutResult) -> None:
        """Print the report of one cluster, and write its file, while others go on."""
        from reconciler.documents import APPLY_REPORT
        from reconciler.files import write_whole
        from reconciler.model import ClusterFailure, display_name, escaped, slug_of
        from reconciler.render import Style, apply_report_lines, failure_lines, findings_lines, line

        if self._args.write.report and not isinstance(result, ClusterFailure):
            folder = Path(self._args.write.report)
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / f"{slug_of(result.cluster.name or 'kafka')}.json", [APPLY_REPORT.text(result)])
        if self._args.format == "json":
            return
        where = f" (stage {escaped(stage)})" if stage is not None else ""
        if isinstance(result, ClusterFailure):
            lines = failure_lines(result)
        else:
            lines = (
                line((f"Cluster {display_name(result.cluster.name or '')}{where}", Style.STRONG)),
                *findings_lines(self._findings.get(result.cluster.name, result.findings)),
                *apply_report_lines(result),
            )
        with self._printing, self._progress.silent():
            output.print_lines(lines)

    def finish(self, results: Sequence[RolloutResult]) -> Result:
        """The document, or a count, and the exit code."""
        from reconciler.documents import APPLY_REPORT, cluster_failure_to_json, clusters_to_json
        from reconciler.model import ClusterFailure
        from reconciler.render import line

        def document() -> Json:
            return clusters_to_json(
                cluster_failure_to_json(r) if isinstance(r, ClusterFailure) else APPLY_REPORT.write(r) for r in results
            )

        result = Result(exit=exit_code(results), view=lambda: (line(), line(_counted(results))), document=document)
        if INTERRUPTS.stop_wanted() and any(_is_left(each) for each in results):
            code = exit_codes.PARTIAL if any(_wrote(each) for each in results) else exit_codes.INTERRUPTED
            return dataclasses.replace(result, exit=code, notes=("interrupted",))
        return result


def _wrote(result: RolloutResult) -> bool:
    from reconciler.model import ClusterFailure

    return not isinstance(result, ClusterFailure) and result.wrote


def _is_left(result: RolloutResult) -> bool:
    """True for a cluster that failed, or was not begun."""
    from reconciler.model import ClusterFailure
    from reconciler.workflows import NOT_BEGUN, is_failure

    return is_failure(result) or (isinstance(result, ClusterFailure) and result.failure_reason == NOT_BEGUN)


def _counted(results: Sequence[RolloutResult]) -> str:
    from reconciler.model import ClusterFailure
    from reconciler.text import count_of
    from reconciler.workflows import NOT_BEGUN, is_failure

    done = sum(not isinstance(r, ClusterFailure) and not is_failure(r) for r in results)
    withheld = sum(not isinstance(r, ClusterFailure) and not is_failure(r) and bool(r.withheld) for r in results)
    failed = sum(is_failure(r) for r in results)
    left = sum(isinstance(r, ClusterFailure) and r.failure_reason == NOT_BEGUN for r in results)
    counts = f"{done} applied ({withheld} with withheld owners), {failed} failed, {left} not begun"
    return f"{count_of(len(results), 'cluster')}: {counts}."


def exit_code(results: Sequence[RolloutResult]) -> int:
    """0; 3 for withheld owners, or where all failures are refusals; 1 when nothing was written; 4 when some of it was."""
    from reconciler.model import ApplyResult, ClusterFailure
    from reconciler.workflows import is_failure

    failures = [result for result in results if is_failure(result)]
    reports = [result for result in results if not isinstance(result, ClusterFailure)]
    if not failures:
        return exit_codes.REFUSED if any(report.withheld for report in reports) else exit_codes.DONE
    if any(_wrote(result) for result in results):
        return exit_codes.PARTIAL
    refused = all(not isinstance(each, ClusterFailure) and each.result is ApplyResult.REFUSED for each in failures)
    return exit_codes.REFUSED if refused else exit_codes.NOT_DONE
