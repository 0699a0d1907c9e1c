"""The limits of a cluster as Prometheus rules and a Grafana dashboard."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="rules",
        group=CommandGroup.INSPECT,
        summary="Write Prometheus rules and a Grafana dashboard of the limits",
        module="reconciler.features.monitoring.command",
        page="monitor.md",
        examples=(
            ("Write Prometheus rules", "rules quotas --cluster prod --out prometheus=rules.yaml"),
            (
                "Write rules and a dashboard",
                "rules quotas --cluster prod --out prometheus=rules.yaml --out grafana=dashboard.json",
            ),
        ),
    ),
)
