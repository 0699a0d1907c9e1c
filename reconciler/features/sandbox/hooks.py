"""What the local Kafka adds: a command, and the broker of ``--server-check=sandbox``."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="sandbox",
        group=CommandGroup.START,
        summary="Run a local Kafka, or every step on one",
        page="tutorial.md",
        examples=(
            ("Start a local Kafka in the background", "sandbox start"),
            ("Run one command beside a local Kafka", "sandbox run -- ./check.sh"),
        ),
    ),
    Command(
        name="sandbox start",
        group=CommandGroup.START,
        summary="Start a Kafka in the background",
        module="reconciler.features.sandbox.command:start",
        page="tutorial.md",
        examples=(
            ("Start one node", "sandbox start"),
            ("Start three nodes that log every request", "sandbox start --nodes 3 --request-log --folder kafka"),
        ),
        description="Start a Kafka that runs in the background until 'sandbox stop'. Print its address when it runs already.",
    ),
    Command(
        name="sandbox status",
        group=CommandGroup.START,
        summary="Print addresses and log files",
        module="reconciler.features.sandbox.command:status",
        page="tutorial.md",
        examples=(
            ("Print addresses and log files", "sandbox status"),
            ("Print them for a script", "sandbox status --format json"),
        ),
        description="Print where the Kafka runs. Exit 0 when it runs, else 1.",
    ),
    Command(
        name="sandbox stop",
        group=CommandGroup.START,
        summary="Stop the Kafka",
        module="reconciler.features.sandbox.command:stop",
        page="tutorial.md",
        examples=(
            ("Stop the local Kafka", "sandbox stop"),
            ("Stop it and log each step", "sandbox stop -v"),
        ),
        description="Stop the Kafka of 'sandbox start'. A temporary folder is deleted, one of --folder stays.",
    ),
    Command(
        name="sandbox run",
        group=CommandGroup.START,
        summary="Run a command beside a Kafka",
        module="reconciler.features.sandbox.command:run_beside",
        page="tutorial.md",
        examples=(
            ("Run a script beside a Kafka, and stop Kafka afterwards", "sandbox run -- ./check.sh"),
            ("Give the script a user with a password", "sandbox run --user alice -- ./check.sh"),
        ),
        description="Start a Kafka, run COMMAND with BOOTSTRAP_SERVER set, stop the Kafka, and exit with COMMAND's exit code.",
    ),
    Command(
        name="sandbox demo",
        group=CommandGroup.START,
        summary="Run every step: validate, plan, backtest, apply",
        module="reconciler.features.sandbox.command:demo",
        page="install.md",
        examples=(
            ("Run every step on a local Kafka", "sandbox demo"),
            ("Let the clients send for a minute", "sandbox demo --seconds 60"),
        ),
        description="Start a Kafka, show every step from manifests to drift with real clients, and stop the Kafka.",
    ),
)

LOCAL_KAFKAS: Final = ("reconciler.features.sandbox.cluster:seeded_sandbox",)
"""Each opens a local Kafka of a version that has a state."""
