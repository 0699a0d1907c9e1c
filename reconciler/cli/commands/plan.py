"""``kafka-quotas plan``: what apply would change, without changing anything."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli import exit_codes, option_groups
from reconciler.cli.declaration import group, option
from reconciler.cli.every_cluster import ChosenClusters, Wanted, result_for
from reconciler.cli.option_groups import BASELINE, baseline_reader
from reconciler.cli.results import PLAN_FORMATS, OutFile, Result, result_of_plan
from reconciler.errors import UsageError
from reconciler.hooks import added, load

if TYPE_CHECKING:
    from reconciler.model import Plan
    from reconciler.ports import Progress
    from reconciler.workflows import GivenBaseline, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanViewOptions:
    """What a plan shows beside its changes, and what checks them."""

    show_effects: bool = option("--show-effects", help="show which known clients move to another limit")
    step_down: float | None = option_groups.step_down("show the steps of apply --step-down with this factor")
    server_check: str | None = option(
        "--server-check",
        section="Safety",
        choices=("cluster", "sandbox"),
        metavar="WHERE",
        help="let a broker check the changes without writing: cluster (needs AlterConfigs there) or sandbox (a local Kafka)",
    )
    fail_on_guard: bool = option(
        "--fail-on-guard", section="Safety", help="exit 3 when a guard needs acceptance or blocks the plan"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """The command line of ``plan``."""

    paths: tuple[str, ...] = option_groups.PATHS
    views: PlanViewOptions = group(PlanViewOptions)
    accept: tuple[str, ...] = option_groups.ACCEPT
    fail_on: str = option_groups.FAIL_ON
    trusted_ref: str | None = option_groups.TRUSTED_REF
    base: str | None = option_groups.BASE
    baseline: str | None = BASELINE
    clusters: ChosenClusters = group(ChosenClusters, all_clusters="plan every cluster (not with --cluster)")
    current: str | None = option_groups.CURRENT
    detailed_exitcode: bool = option_groups.detailed_exitcode("exit 2 when there are changes")
    format: str = option_groups.format_option(PLAN_FORMATS)
    out: tuple[OutFile, ...] = option_groups.out_option(PLAN_FORMATS)


def run(args: PlanArguments) -> Result:
    """Plan; exit 1 for findings that stop it, 3 with ``--fail-on-guard``, and 2 with ``--detailed-exitcode``."""
    from reconciler.cli.output import LiveProgress
    from reconciler.workflows import References

    if args.accept:
        from reconciler.policy import check_guard_ids

        check_guard_ids(args.accept)
    args.clusters.check(current=args.current)
    args.clusters.access(args.current)
    wanted = Wanted(
        paths=args.paths,
        choice=args.clusters,
        references=References(trusted=args.trusted_ref, base=args.base),
        fail_on=args.fail_on,
    )
    with LiveProgress() as progress:
        progress.step("reading the manifests")
        baseline = baseline_reader(args.baseline, args.paths, all_clusters=args.clusters.all_clusters)
        return result_for(
            wanted, lambda intent: _result(args, _plan(args, intent, baseline(intent.trusted), progress)), args.format, args.out
        )


def _result(args: PlanArguments, plan: Plan) -> Result:
    from reconciler.model import Severity
    from reconciler.workflows import stop_on

    limit = Severity(args.fail_on)
    code = exit_codes.DIFFERENCES if args.detailed_exitcode and plan.changes else exit_codes.DONE
    refused = [guard.id for guard in plan.tripped] if args.views.fail_on_guard else []
    if refused:
        code = exit_codes.REFUSED
    stops = any(finding.fails(limit) for finding in plan.findings)
    if stops:
        code = exit_codes.NOT_DONE
    made = result_of_plan(plan)
    if refused:
        need = "guard needs acceptance" if len(refused) == 1 else "guards need acceptance"
        made = dataclasses.replace(made, notes=(f"{len(refused)} {need}: {', '.join(refused)}. apply would not write this plan",))
    then = (lambda: stop_on(plan.findings, limit)) if stops else None
    return dataclasses.replace(made, exit=code, beside=plan.findings, then=then)


def _plan(args: PlanArguments, intent: Intent, given: GivenBaseline | None, progress: Progress) -> Plan:
    from reconciler.model import display_name
    from reconciler.ports import SystemClock
    from reconciler.workflows import make_plan, quota_reader

    name = f"cluster {display_name(intent.spec.name)}" if intent.spec.name else "the cluster"
    progress.step(f"reading the quotas of {name}")
    with quota_reader(intent.spec, args.clusters.access(args.current), trusted=intent.trusted) as source:
        plan = make_plan(
            intent, source, accepted=args.accept, clock=SystemClock(), given=given, show_effects=args.views.show_effects
        )
        if args.views.step_down is not None:
            from reconciler.apply import StepDown
            from reconciler.workflows import in_steps

            plan = in_steps(plan, StepDown(factor=args.views.step_down))
        if args.views.server_check is None:
            return plan
        for place in added("SERVER_CHECKS"):
            checked: Plan = load(place)(plan, args.views.server_check, source, progress=progress)
            return checked
        raise UsageError("--server-check needs the feature sandbox, and its folder is not installed")
