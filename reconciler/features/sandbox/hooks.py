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
            ("Run a local Kafka until Ctrl-C", "sandbox run"),
            ("Run every step on one", "sandbox demo"),
        ),
    ),
    Command(
        name="sandbox run",
        group=CommandGroup.START,
        summary="Run a Kafka until Ctrl-C, or beside a command",
        module="reconciler.features.sandbox.command:run_beside",
        page="tutorial.md",
        examples=(
            ("Run three nodes that log every request", "sandbox run --nodes 3 --request-log"),
            ("Run a script beside a Kafka with a user, and stop Kafka afterwards", "sandbox run --user alice -- ./check.sh"),
        ),
        description="Start a Kafka, print its address, and stop it at Ctrl-C. With COMMAND, run it with BOOTSTRAP_SERVER set, "
        "stop the Kafka, and exit with COMMAND's exit code.",
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
