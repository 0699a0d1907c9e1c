"""Recorded traffic summed up by client and second, file by file into a folder, or by day into a dataset of Spark."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="compact",
        group=CommandGroup.CHECK,
        summary="Sum up recorded traffic by client and second",
        module="reconciler.features.compacting.command",
        page="record-traffic.md",
        examples=(
            ("Sum up the logs of two brokers", "compact --traffic 1=/logs/broker-1 --traffic 2=/logs/broker-2 --folder history"),
            ("Sum up on a Spark cluster", "compact --traffic /logs --folder history --master spark://host:7077"),
        ),
    ),
)
