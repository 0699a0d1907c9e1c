"""A real local Kafka from published jars, and clients that make traffic."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="sandbox",
        group=CommandGroup.START,
        summary="Run a local Kafka, or every step on one",
        page="tutorial.md",
        examples=(("Run a local Kafka until Ctrl-C", "sandbox run"), ("Run every step on one", "sandbox demo")),
    ),
    Command(
        name="sandbox run",
        group=CommandGroup.START,
        summary="Run a Kafka until Ctrl-C",
        module="reconciler.features.sandbox.command",
        page="tutorial.md",
        examples=(
            ("Run three nodes that log every request", "sandbox run --nodes 3 --request-log"),
            ("Run a Kafka with a user who logs in", "sandbox run --user alice"),
        ),
        description="Start a Kafka, print its address, and stop it at Ctrl-C.",
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

SERVER_CHECKS: Final = ("reconciler.features.sandbox.server_check:check_plan",)
"""Each lets a broker check a plan."""
