"""The long-running reconciler: watches manifests and a cluster, reports differences, and writes where that is switched on."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

NEEDS: Final = ("prometheus",)

COMMANDS: Final = (
    Command(
        name="run",
        group=CommandGroup.CHANGE,
        summary="Watch manifests and a cluster as a service",
        module="reconciler.features.service.run_command",
        page="run.md",
        examples=(
            ("Report drift every five minutes, and write nothing", "run quotas --cluster prod"),
            ("Apply too, with the manifests of a trusted branch", "run quotas --cluster prod --apply --trusted-ref origin/main"),
        ),
        is_service=True,
    ),
    Command(
        name="record",
        group=CommandGroup.CHECK,
        summary="Record traffic from brokers' metrics pages as a service",
        module="reconciler.features.service.record_command",
        page="record-traffic.md",
        examples=(
            (
                "Record one broker for an hour",
                "record --traffic 1=metrics+http://b1:7071/metrics --folder history --duration 3600",
            ),
            (
                "Read a page each second, and keep two days",
                "record --traffic metrics+http://kafka-1:7071 --folder history --interval 1 --keep 2",
            ),
        ),
        is_service=True,
    ),
)
