"""What quota groups do against their limits: ``why``, ``headroom``, ``report`` and ``doctor``."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

NEEDS: Final = ("prometheus",)

COMMANDS: Final = (
    Command(
        name="why",
        group=CommandGroup.INSPECT,
        summary="Explain an incident: who filled which quota, and who set it",
        module="reconciler.features.insight.why_command",
        page="why.md",
        examples=(
            ("Explain a throttle of today", 'why quotas --name client-id=checkout --at "14:03" --traffic 1=kafka-request.log'),
            (
                "Find the longest incident of a client in a compacted history",
                "why quotas --name user=orders --since 2026-11-22T00:00Z --traffic history/",
            ),
        ),
    ),
    Command(
        name="headroom",
        group=CommandGroup.INSPECT,
        summary="Show how near clients are to their limits now",
        module="reconciler.features.insight.headroom_command",
        page="monitor.md",
        examples=(
            (
                "Show who is near a limit, with rates from Prometheus",
                "headroom quotas --cluster prod --traffic prometheus+http://prometheus:9090",
            ),
            (
                "Exit with 2 when a client is above 80 % of its limit, by the page of one exporter",
                "headroom --current prod.json --traffic 1=metrics+http://b1:7071/metrics --over 80% --detailed-exitcode",
            ),
        ),
    ),
    Command(
        name="report",
        group=CommandGroup.INSPECT,
        summary="Write one page about every cluster",
        module="reconciler.features.insight.report_command",
        page="monitor.md",
        examples=(
            ("Write one page about every cluster", "report quotas --out html=report.html"),
            ("Show a snapshot in place of the live cluster", "report quotas --current prod.json --out html=report.html"),
        ),
        keeps_files=True,
        is_short=True,
    ),
    Command(
        name="doctor",
        group=CommandGroup.INSPECT,
        summary="Check manifests and cluster, or a source of metrics",
        module="reconciler.features.insight.doctor_command",
        page="troubleshooting.md",
        examples=(
            ("Check everything that work on a cluster needs", "doctor prod"),
            ("Check what a Prometheus server shows of clients", "doctor --traffic prometheus+https://prometheus.example.org"),
        ),
    ),
)

STEP_WATCHERS: Final = ("reconciler.features.insight.step_watch:watch_steps",)

HISTORIES: Final = ("reconciler.features.insight.value_history:histories",)
