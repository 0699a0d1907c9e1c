"""``tool check-traffic``: the rows of a producer against the canonical traffic schema."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="tool check-traffic",
        group=CommandGroup.REFERENCE,
        summary="Check rows of a producer of recorded traffic",
        description="Check rows of a producer against the canonical traffic schema: columns, types, times and names. "
        "Exit 1 on a failure.",
        module="reconciler.features.traffic_check.command",
        page="from-python.md",
        examples=(
            ("Check a folder of Parquet files", "tool check-traffic --traffic lake/traffic"),
            ("Check a table, and fail on warnings", "tool check-traffic --traffic table:lake.traffic --fail-on warning"),
        ),
    ),
)
