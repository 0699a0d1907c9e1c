"""The commands: those of the core, and those that features add."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

from reconciler.hooks import Command, CommandGroup, added

CORE: Final = (
    Command(
        name="export",
        group=CommandGroup.START,
        summary="Write a live cluster's quotas as manifests or a snapshot",
        module="reconciler.cli.commands.export",
    ),
    Command(
        name="validate",
        group=CommandGroup.CHECK,
        summary="Check manifests without a cluster",
        module="reconciler.cli.commands.validate",
        is_short=True,
    ),
    Command(
        name="plan",
        group=CommandGroup.CHECK,
        summary="Show the changes that apply would make",
        module="reconciler.cli.commands.plan",
        is_short=True,
    ),
    Command(
        name="backtest",
        group=CommandGroup.CHECK,
        summary="Replay recorded traffic against current and proposed quotas",
        module="reconciler.cli.commands.backtest",
    ),
    Command(
        name="compact",
        group=CommandGroup.CHECK,
        summary="Sum up recorded traffic by client and second",
        module="reconciler.cli.commands.compact",
    ),
    Command(
        name="apply",
        group=CommandGroup.CHANGE,
        summary="Change a cluster's quotas to match the manifests, and verify",
        module="reconciler.cli.commands.apply",
        needs_reader=True,
        is_short=True,
    ),
    Command(
        name="revert",
        group=CommandGroup.CHANGE,
        summary="Restore the quotas from before a run, and verify",
        module="reconciler.cli.commands.revert",
        needs_reader=True,
        is_short=True,
    ),
    Command(
        name="alter",
        group=CommandGroup.CHANGE,
        summary="Change the quotas of one entity by hand, and verify",
        module="reconciler.cli.commands.alter",
        needs_reader=True,
        is_short=True,
    ),
    Command(
        name="describe",
        group=CommandGroup.INSPECT,
        summary="Print quotas as a cluster has them",
        module="reconciler.cli.commands.describe",
        is_short=True,
    ),
    Command(
        name="resolve",
        group=CommandGroup.INSPECT,
        summary="Show which limits apply to a client, and why",
        module="reconciler.cli.commands.resolve",
        is_short=True,
    ),
    Command(
        name="drift",
        group=CommandGroup.INSPECT,
        summary="Compare a cluster with the manifests and the last apply",
        module="reconciler.cli.commands.drift",
        is_short=True,
    ),
    Command(
        name="explain",
        group=CommandGroup.REFERENCE,
        summary="Explain a finding, a guard or a class of drift",
        module="reconciler.cli.commands.explain",
    ),
    Command(name="tool", group=CommandGroup.REFERENCE, summary="Run one of the small tools: schemas, saved plans, pipelines"),
    Command(
        name="tool schema",
        group=CommandGroup.REFERENCE,
        summary="Print the JSON Schema of a document",
        module="reconciler.cli.commands.schema",
    ),
    Command(
        name="tool render",
        group=CommandGroup.REFERENCE,
        summary="Print a saved plan in another format",
        module="reconciler.cli.commands.render",
    ),
    Command(
        name="tool clusters",
        group=CommandGroup.REFERENCE,
        summary="List clusters, and which of them a change affects",
        module="reconciler.cli.commands.clusters",
    ),
    Command(
        name="tool check-traffic",
        group=CommandGroup.REFERENCE,
        summary="Check rows of a producer of recorded traffic",
        description="Check rows of a producer against the canonical traffic schema: columns, types, times and names. "
        "Exit 1 on a failure.",
        module="reconciler.cli.commands.check_traffic",
    ),
    Command(
        name="tool completion",
        group=CommandGroup.REFERENCE,
        summary="Print the completion script for a shell",
        module="reconciler.cli.commands.completion",
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
