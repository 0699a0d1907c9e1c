"""``apply --all-clusters``: each cluster's report as soon as it is there, a file for each, and one exit code for all."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import every_cluster, exit_codes, output, run_outputs
from reconciler.cli.baseline_option import BaselineSource
from reconciler.cli.interrupts import INTERRUPTS
from reconciler.cli.results import Result
from reconciler.errors import NotConfirmedError, UsageError

if TYPE_CHECKING:
    from reconciler.cli.commands.apply import ApplyArguments
    from reconciler.cli.progress import PatientProgress
    from reconciler.formats import Json
    from reconciler.model import ApplyReport, Finding, Plan
    from reconciler.workflows import Intent, RolloutResult, Withheld

_MOST_PARALLEL: Final = 200


def apply_to_every(args: ApplyArguments) -> Result:
    """Write every cluster, stage by stage.

    Each has a plan of its own, so none is confirmed here: ``--auto-approve`` or ``--validate-only`` is needed.
    """
    from reconciler.cli.progress import PatientProgress
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
        self._baseline = BaselineSource(args.baseline, args.paths, all_clusters=True)
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
        with run_outputs.audited(write, "apply") as audit:
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
                    given=self._baseline.given(None),
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
