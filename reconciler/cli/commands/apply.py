"""``kafka-quotas apply``: change the cluster to what the manifests declare, and verify."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import option_groups, output, writing
from reconciler.cli.declaration import group, option
from reconciler.cli.every_cluster import ChosenClusters, Wanted, load_one
from reconciler.cli.option_groups import BASELINE, baseline_reader
from reconciler.cli.results import Result
from reconciler.errors import UsageError
from reconciler.hooks import added, load

if TYPE_CHECKING:
    from reconciler.model import ApplyReport, BacktestReport
    from reconciler.workflows import Approval, Intent, TrustedTree


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How the steps of ``--step-down`` are watched."""

    watch: tuple[str, ...] = option(
        "--watch",
        section="Steps",
        metavar="SOURCE",
        help="with --step-down: look at the changed clients after each step, and give the step back when brokers throttle one of "
        "them too long. SOURCE is spec.traffic for that of the Cluster manifest, prometheus+http(s)://HOST[:PORT][/PATH], or "
        "[BROKER=]metrics+http(s)://HOST:PORT/metrics (repeatable for pages of exporters)",
    )
    backtest: str | None = option(
        "--backtest",
        section="Steps",
        metavar="FILE",
        help="accept what this report of backtest --format json predicted for --watch, and keep its predictions in --report for "
        "why --run [default: --watch accepts 1 %% of the time]",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyArguments:
    """The command line of ``apply``."""

    paths: tuple[str, ...] = option_groups.PATHS
    plan: str | None = option(
        "--plan", metavar="FILE", help="apply this saved plan (plan --out json=FILE), and refuse when a new plan would differ"
    )
    write: writing.LongWritingOptions = group(writing.LongWritingOptions)
    watching: WatchOptions = group(WatchOptions)
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    base: str | None = option_groups.BASE
    baseline: str | None = BASELINE
    record_baseline: str | None = option(
        "--record-baseline", section="Git", metavar="FILE", help="write a baseline for drift to this file, after a complete run"
    )
    clusters: ChosenClusters = group(ChosenClusters, all_clusters="apply to every cluster (not with --cluster)")
    keep_going: bool = option("--keep-going", section="Cluster", help="with --all-clusters: go on after a cluster that failed")
    format: str = option_groups.format_option()

    @property
    def wanted(self) -> Wanted:
        """Return the references and rules by which the manifests are read."""
        from reconciler.workflows import References

        return Wanted(
            paths=self.paths,
            choice=self.clusters,
            references=References(trusted=self.trusted_ref, base=self.base),
            fail_on=self.fail_on,
        )


def run(args: ApplyArguments) -> Result:
    """Apply and print the report; the exit code states whether anything was written."""
    from reconciler.cli.output import LiveProgress
    from reconciler.policy import check_guard_ids
    from reconciler.ports import SystemClock
    from reconciler.workflows import Dialogue, apply_manifests, open_cluster, source_of

    check_guard_ids(args.write.accept)
    args.clusters.check(
        plan=args.plan,
        expect_digest=args.write.expect_digest,
        record_baseline=args.record_baseline,
        backtest=args.watching.backtest,
    )
    if args.watching.watch:
        _check_watch(args)
    if args.clusters.all_clusters:
        for place in added("ROLLOUTS"):
            result: Result = load(place)(args)
            return result
        raise UsageError("apply --all-clusters needs the feature rollout, and its folder is not installed")
    access = args.clusters.access()
    with writing.audited(args.write, "apply", args.format) as audit, LiveProgress() as progress:
        approval = _approval(args)
        approver = writing.Approver(write=args.write, as_json=args.format == "json", progress=progress)
        progress.step("reading the manifests")
        intent = load_one(args.wanted)
        if args.watching.backtest:
            approval = replace(approval, backtest=_read_backtest(args.watching.backtest, intent.trusted))
        given = baseline_reader(args.baseline, args.paths)(intent.trusted)
        if args.record_baseline:
            from reconciler.workflows import check_recordable

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
    baseline = args.record_baseline
    also = (lambda: _record(baseline, report, intent)) if baseline is not None else None
    return writing.finish(
        args.write, report, audit, args.format, also=also, cluster=lambda: (*args.paths, *args.clusters.command_words())
    )


def _check_watch(args: ApplyArguments) -> None:
    """Raise ``UsageError`` for a watch that would see nothing of a step."""
    from reconciler.apply import WINDOW_SECONDS

    steps = args.write.steps()
    if steps is None:
        raise UsageError("--watch needs --step-down FACTOR")
    if steps.wait_seconds < WINDOW_SECONDS:
        raise UsageError(
            f"--watch looks for at least {WINDOW_SECONDS:g} seconds after each step, the longest window of a rate. "
            "Raise --step-wait"
        )


def _approval(args: ApplyArguments) -> Approval:
    from reconciler import planning
    from reconciler.workflows import Approval

    saved = planning.read_saved_plan(output.read_file(Path(args.plan)), name=args.plan) if args.plan else None
    return Approval(
        accepted=args.write.accept,
        expected_digest=args.write.expect_digest,
        saved=saved,
        settings=args.write.settings(),
        step_down=args.write.steps(),
        watch=args.watching.watch,
    )


def _read_backtest(file: str, trusted: TrustedTree | None) -> BacktestReport:
    from reconciler.documents import BACKTEST

    if trusted is not None:
        trusted.files.require_same(file)
    return BACKTEST.read(output.read_file(Path(file)), name=file)


def _record(file: str, report: ApplyReport, intent: Intent) -> None:
    from reconciler.workflows import is_clean, write_baseline

    if is_clean(report):
        write_baseline(intent, report, Path(file))
    elif not output.is_quiet():
        output.tell("no baseline was recorded: the run was not a complete one")
