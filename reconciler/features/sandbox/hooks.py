"""What the local Kafka adds: a command, and the broker of ``--server-check=sandbox``."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandExamples, CommandGroup

_MODULE: Final = "reconciler.features.sandbox.command"
COMMANDS: Final = (
    Command(name="sandbox", group=CommandGroup.START, summary="Run a local Kafka, or every step on one"),
    Command(
        name="sandbox start",
        group=CommandGroup.START,
        summary="Start a Kafka in the background",
        description="Start a Kafka that runs in the background until 'sandbox stop'. Print its address when it runs already.",
        module=f"{_MODULE}:start",
    ),
    Command(
        name="sandbox status",
        group=CommandGroup.START,
        summary="Print addresses and log files",
        description="Print where the Kafka runs. Exit 0 when it runs, else 1.",
        module=f"{_MODULE}:status",
    ),
    Command(
        name="sandbox stop",
        group=CommandGroup.START,
        summary="Stop the Kafka",
        description="Stop the Kafka of 'sandbox start'. A temporary folder is deleted, one of --folder stays.",
        module=f"{_MODULE}:stop",
    ),
    Command(
        name="sandbox run",
        group=CommandGroup.START,
        summary="Run a command beside a Kafka",
        description="Start a Kafka, run COMMAND with BOOTSTRAP_SERVER set, stop the Kafka, and exit with COMMAND's exit code.",
        module=f"{_MODULE}:run_beside",
    ),
    Command(
        name="sandbox demo",
        group=CommandGroup.START,
        summary="Run every step: validate, plan, backtest, apply",
        description="Start a Kafka, show every step from manifests to drift with real clients, and stop the Kafka.",
        module=f"{_MODULE}:demo",
    ),
)

EXAMPLES: Final = (
    (
        "sandbox demo",
        CommandExamples(
            page="install.md",
            lines=(
                ("Run every step on a local Kafka", "sandbox demo"),
                ("Let the clients send for a minute", "sandbox demo --seconds 60"),
            ),
        ),
    ),
    (
        "sandbox",
        CommandExamples(
            page="tutorial.md",
            lines=(
                ("Start a local Kafka in the background", "sandbox start"),
                ("Run one command beside a local Kafka", "sandbox run -- ./check.sh"),
            ),
        ),
    ),
    (
        "sandbox start",
        CommandExamples(
            page="tutorial.md",
            lines=(
                ("Start one node", "sandbox start"),
                ("Start three nodes that log every request", "sandbox start --nodes 3 --request-log --folder kafka"),
                ("Start one node that records each client's traffic", "sandbox start --record"),
            ),
        ),
    ),
    (
        "sandbox status",
        CommandExamples(
            page="tutorial.md",
            lines=(
                ("Print addresses and log files", "sandbox status"),
                ("Print them for a script", "sandbox status --format json"),
            ),
        ),
    ),
    (
        "sandbox stop",
        CommandExamples(
            page="tutorial.md",
            lines=(
                ("Stop the local Kafka", "sandbox stop"),
                ("Stop it and log each step", "sandbox stop -v"),
            ),
        ),
    ),
    (
        "sandbox run",
        CommandExamples(
            page="tutorial.md",
            lines=(
                ("Run a script beside a Kafka, and stop Kafka afterwards", "sandbox run -- ./check.sh"),
                ("Give the script a user with a password", "sandbox run --user alice -- ./check.sh"),
            ),
        ),
    ),
)

LOCAL_KAFKAS: Final = ("reconciler.features.sandbox.seeding:seeded_sandbox",)
"""Each opens a local Kafka of a version that has a state."""
