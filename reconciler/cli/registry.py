"""The commands: those of the core, and those that features add."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from reconciler.hooks import Command, CommandGroup, added

CORE: Final = (
    Command(
        name="validate",
        group=CommandGroup.CHECK,
        summary="Check manifests without a cluster",
        module="reconciler.cli.commands.validate",
        page="change-a-quota.md",
        examples=(
            ("Check all manifests below a folder", "validate quotas"),
            ("Fail on warnings, and keep a SARIF file for CI", "validate quotas --fail-on warning --out sarif=findings.sarif"),
        ),
        is_short=True,
    ),
    Command(
        name="plan",
        group=CommandGroup.CHECK,
        summary="Show the changes that apply would make",
        module="reconciler.cli.commands.plan",
        page="pull-requests.md",
        examples=(
            ("Compare the manifests with the live cluster", "plan quotas --cluster prod"),
            (
                "Compare with a snapshot, and save the plan and a comment",
                "plan quotas --current prod.json --out json=plan.json --out markdown=plan.md",
            ),
        ),
        is_short=True,
    ),
    Command(
        name="backtest",
        group=CommandGroup.CHECK,
        summary="Replay recorded traffic against current and proposed quotas",
        module="reconciler.cli.commands.backtest",
        page="backtest.md",
        examples=(
            ("Replay the request logs of one broker", "backtest quotas --traffic 1=/logs/broker-1 --current prod.json"),
            (
                "Write a page with plots from per-second totals",
                "backtest quotas --traffic history --current prod.json --out html=backtest.html",
            ),
        ),
    ),
    Command(
        name="apply",
        group=CommandGroup.CHANGE,
        summary="Change a cluster's quotas to match the manifests, and verify",
        module="reconciler.cli.commands.apply",
        page="apply.md",
        examples=(
            ("Show the plan, ask, write and verify", "apply quotas --cluster prod"),
            (
                "Apply exactly the plan that was reviewed, and keep a report for revert",
                "apply quotas --plan plan.json --auto-approve --report report.json",
            ),
        ),
        needs_reader=True,
        is_short=True,
    ),
    Command(
        name="describe",
        group=CommandGroup.INSPECT,
        summary="Print quotas as a cluster has them",
        module="reconciler.cli.commands.describe",
        page="describe-and-alter.md",
        examples=(
            ("Print every quota of a cluster", "describe --bootstrap-server b1:9092"),
            ("Show who set the quotas of users that begin with 'etl-'", "describe quotas --prefix user=etl- --history"),
        ),
        is_short=True,
    ),
    Command(
        name="drift",
        group=CommandGroup.INSPECT,
        summary="Compare a cluster with the manifests and the last apply",
        module="reconciler.cli.commands.drift",
        page="emergency.md",
        examples=(
            ("Compare a cluster with the manifests and the last apply", "drift quotas --cluster prod --baseline baseline.json"),
            ("Exit 2 on differences, for a scheduled job", "drift quotas --all-clusters --detailed-exitcode --format json"),
        ),
        is_short=True,
    ),
    Command(
        name="explain",
        group=CommandGroup.REFERENCE,
        summary="Explain a finding or a guard, or print a page of the docs",
        module="reconciler.cli.commands.tool:explain",
        page="guards.md",
        examples=(
            ("Explain the guard against removals", "explain prune"),
            ("Read how to find the cause of an incident", "explain why"),
            ("List all ids and pages", "explain"),
        ),
    ),
    Command(
        name="tool",
        group=CommandGroup.REFERENCE,
        summary="Run one of the small tools: schemas, saved plans, pipelines",
        page="change-a-quota.md",
        examples=(
            ("Print the schema of manifests, for an editor", "tool schema ClientQuotas"),
            ("Print a saved plan as text", "tool render plan.json"),
        ),
    ),
    Command(
        name="tool schema",
        group=CommandGroup.REFERENCE,
        summary="Print the JSON Schema of a document",
        module="reconciler.cli.commands.tool:print_schema",
        page="change-a-quota.md",
        examples=(
            ("Print the schema of manifests, for an editor", "tool schema ClientQuotas"),
            ("Print the schema of a saved plan", "tool schema plan"),
        ),
    ),
    Command(
        name="tool render",
        group=CommandGroup.REFERENCE,
        summary="Print a saved plan in another format",
        module="reconciler.cli.commands.tool:render",
        page="ci.md",
        examples=(
            ("Print a saved plan as text", "tool render plan.json"),
            ("Write it as a page and for code scanning", "tool render plan.json --out html=plan.html --out sarif=plan.sarif"),
        ),
    ),
    Command(
        name="tool clusters",
        group=CommandGroup.REFERENCE,
        summary="List clusters, and which of them a change affects",
        module="reconciler.cli.commands.tool:list_clusters",
        page="ci.md",
        examples=(
            ("List the clusters that a branch changes", "tool clusters quotas --changed-since origin/main"),
            (
                "Write them as the matrix of a workflow",
                "tool clusters quotas --changed-since origin/main --out outputs=matrix.txt",
            ),
        ),
    ),
)
OF_CORE: Final = {command.name: command for command in CORE}


@functools.cache
def _every() -> Mapping[str, Command]:
    """Commands and their actions by name, in the order of ``--help``: group by group, the core's first."""
    every = (*CORE, *added("COMMANDS"))
    return {command.name: command for group in CommandGroup for command in every if command.group is group}


@functools.cache
def commands() -> Mapping[str, Command]:
    """Every command by its name, in the order of ``--help``."""
    return {name: command for name, command in _every().items() if " " not in name}


def actions_of(name: str) -> Mapping[str, Command]:
    """The actions of a command by their own names, such as ``schema`` of ``tool schema``."""
    core = OF_CORE.get(name)
    if core is not None and core.module:
        return {}
    known = _every()
    return {each.removeprefix(f"{name} "): command for each, command in known.items() if each.startswith(f"{name} ")}


def find_command(name: str) -> Command | None:
    """The command of this name, if there is one. No feature is asked for one of the core's."""
    return OF_CORE.get(name) or _every().get(name)


def command_groups() -> dict[str, dict[str, str]]:
    """The lines of ``--help``: by title, the summary of each command."""
    return {
        group.value: {command.name: command.summary for command in commands().values() if command.group is group}
        for group in CommandGroup
    }
