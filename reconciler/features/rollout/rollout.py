"""``apply --all-clusters``: stage by stage, some clusters at a time within a stage, and no further after the first failure.

Each cluster's report is printed as soon as it is there, and there is one exit code for all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from reconciler.cli import every_cluster, exit_codes, output, writing
from reconciler.cli.commands.apply import ApplyArguments
from reconciler.cli.option_groups import baseline_reader
from reconciler.cli.output import LiveProgress
from reconciler.cli.results import Result
from reconciler.cli.writing import INTERRUPTS
from reconciler.documents import APPLY_REPORT, cluster_failure_to_json, clusters_to_json
from reconciler.errors import NotConfirmedError, UsageError
from reconciler.files import write_whole
from reconciler.formats import Json
from reconciler.model import (
    ApplyReport,
    ApplyResult,
    ClusterFailure,
    ClusterIdentity,
    Finding,
    Plan,
    display_name,
    escaped,
    slug_of,
)
from reconciler.ports import SystemClock
from reconciler.render import Style, apply_report_lines, failure_lines, findings_lines, line
from reconciler.text import count_of, list_some
from reconciler.workflows import Approval, Dialogue, Intent, apply_manifests, for_every, open_cluster, source_of

_AT_ONCE: Final = 8
_LABEL: Final = "stage"
_NOT_BEGUN: Final = "not-begun"
_MOST_NAMED: Final = 5
_GOOD: Final = (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO)

RolloutResult: TypeAlias = ApplyReport | ClusterFailure
Stages: TypeAlias = Mapping[str | None, Sequence[Intent | ClusterFailure]]
"""Clusters by stage, in the order of the stages. ``None``: the Repository manifest has none."""


def _sort_into_stages(intents: Sequence[Intent | ClusterFailure]) -> Stages:
    """Sort clusters into ``stages`` of the Repository manifest, by their label ``stage``.

    Raises ``UsageError`` when a cluster has no such label, or one that is not among the stages. A cluster with errors in its
    manifests is in the first stage, so that nothing is written before it is corrected.
    """
    names = next((stages for intent in intents if isinstance(intent, Intent) and (stages := intent.loaded.repository.stages)), ())
    if not names:
        return {None: intents}
    by_stage: dict[str | None, list[Intent | ClusterFailure]] = {name: [] for name in names}
    unknown = []
    for intent in intents:
        name = intent.spec.labels.get(_LABEL) if isinstance(intent, Intent) else names[0]
        if name in names:
            by_stage[name].append(intent)
        elif isinstance(intent, Intent):
            unknown.append(display_name(intent.spec.name or ""))
    if unknown:
        raise UsageError(
            f"{count_of(len(unknown), 'cluster')} of no stage: {list_some(unknown, _MOST_NAMED)}. Give each the label "
            f"{_LABEL} with one of {list_some(list(names), _MOST_NAMED)}"
        )
    return by_stage


def _is_failure(result: RolloutResult) -> bool:
    """True for a result that stops a rollout."""
    if isinstance(result, ClusterFailure):
        return not result.skipped
    return result.result not in _GOOD


def apply_to_every(args: ApplyArguments) -> Result:
    """Write every cluster, stage by stage.

    Each has a plan of its own, so none is confirmed here: ``--auto-approve`` or ``--validate-only`` is needed.
    """
    _check(args)
    with LiveProgress() as progress:
        progress.step("reading the manifests")
        stages = _sort_into_stages(every_cluster.load_every(args.wanted))
        rollout = _Rollout(args, progress)
        # Until the process ends: a signal begins no further cluster, and costs no report of one that was written.
        INTERRUPTS.hold()
        results: list[RolloutResult] = []
        for name, stage in stages.items():
            results += for_every(stage, rollout.write, parallel=_AT_ONCE, done=partial(rollout.ended, name))
    return _finish(results)


def _check(args: ApplyArguments) -> None:
    if not args.write.auto_approve and not args.write.validate_only:
        raise NotConfirmedError("--all-clusters asks for no confirmation. Review plan --all-clusters and pass --auto-approve")
    if args.write.report and Path(args.write.report).is_file():
        raise UsageError("with --all-clusters, --report names a folder for a report of each cluster, and this is a file")


class _Rollout:
    """One run over all stages: writes clusters, and prints and records their results. After a failure none is begun."""

    def __init__(self, args: ApplyArguments, progress: LiveProgress) -> None:
        self._args = args
        self._progress = progress
        self._baseline = baseline_reader(args.baseline, args.paths, all_clusters=True)
        # A signal is raised in the main thread, and these runs may be in others: it ends them between two requests.
        settings = dataclasses.replace(args.write.settings(), breakable=contextlib.nullcontext)
        self._approval = Approval(
            accepted=args.write.accept, settings=settings, step_down=args.write.steps(), watch=args.watching.watch
        )
        self._printing = threading.Lock()
        self._findings: dict[str | None, tuple[Finding, ...]] = {}
        """Of the plan of each cluster, to be printed above its report."""
        self._failed: str | None = None
        self._stopped = threading.Event()

    def write(self, intent: Intent) -> RolloutResult:
        """Write a cluster, unless the run is stopped. Raises ``ReconcilerError``, only when nothing was written."""
        if not (self._stopped.is_set() or INTERRUPTS.stop_wanted()):
            return self._apply(intent)
        after = f"cluster {display_name(self._failed)} failed before" if self._failed else "the run was stopped before"
        cluster = ClusterIdentity(name=intent.spec.name, id=intent.spec.cluster_id)
        return ClusterFailure(cluster=cluster, failure_reason=_NOT_BEGUN, message=f"not begun: {after}", skipped=True)

    def _apply(self, intent: Intent) -> ApplyReport:
        write, access = self._args.write, self._args.clusters.access()
        with writing.audited(write, "apply") as audit:
            audit.about(intent.spec, access, source=lambda: source_of(Path(intent.paths[0])), trusted=intent.trusted)
            self._progress.step(f"applying to cluster {display_name(intent.spec.name or '')}")
            cluster = open_cluster(intent.spec, access, trusted=intent.trusted)
            with writing.given_back(cluster):
                report = apply_manifests(
                    intent,
                    cluster,
                    self._approval,
                    dialogue=Dialogue(confirm=lambda _: True, show=self._keep_findings),
                    clock=SystemClock(),
                    progress=self._progress,
                    given=self._baseline(None),
                )
            report = audit.with_context(report)
            audit.ended(report)
        return report

    def _keep_findings(self, plan: Plan) -> None:
        self._findings[plan.cluster.name] = plan.findings

    def ended(self, stage: str | None, result: RolloutResult) -> None:
        """Print the report of one cluster, and write its file, while others go on. The first failure stops the run."""
        if _is_failure(result) and not (self._args.keep_going or self._stopped.is_set() or INTERRUPTS.stop_wanted()):
            self._failed = result.cluster.name
            self._stopped.set()
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


def _finish(results: Sequence[RolloutResult]) -> Result:
    """The document, or a count, and the exit code."""

    def document() -> Json:
        return clusters_to_json(
            cluster_failure_to_json(r) if isinstance(r, ClusterFailure) else APPLY_REPORT.write(r) for r in results
        )

    done = sum(not isinstance(r, ClusterFailure) and not _is_failure(r) for r in results)
    failed, left = sum(map(_is_failure, results)), sum(map(_is_left, results))
    counts = f"{count_of(len(results), 'cluster')}: {done} applied, {failed} failed, {left} not begun."
    code = _exit_code(results)
    notes: tuple[str, ...] = ()
    if INTERRUPTS.stop_wanted() and (failed or left):
        code, notes = exit_codes.PARTIAL if any(map(_wrote, results)) else exit_codes.INTERRUPTED, ("interrupted",)
    return Result(exit=code, view=lambda: (line(), line(counts)), document=document, notes=notes)


def _wrote(result: RolloutResult) -> bool:
    return not isinstance(result, ClusterFailure) and result.wrote


def _is_left(result: RolloutResult) -> bool:
    return isinstance(result, ClusterFailure) and result.failure_reason == _NOT_BEGUN


def _exit_code(results: Sequence[RolloutResult]) -> int:
    """0; 3 where all failures are refusals; 1 when nothing was written; 4 when some of it was."""
    failures = [result for result in results if _is_failure(result)]
    if not failures:
        return exit_codes.DONE
    if any(map(_wrote, results)):
        return exit_codes.PARTIAL
    refused = all(not isinstance(each, ClusterFailure) and each.result is ApplyResult.REFUSED for each in failures)
    return exit_codes.REFUSED if refused else exit_codes.NOT_DONE
