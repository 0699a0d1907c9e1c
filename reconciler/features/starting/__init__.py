"""A new repository of manifests, with its pipelines."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="export",
        group=CommandGroup.START,
        summary="Write a live cluster's quotas as manifests or a snapshot",
        module="reconciler.features.starting.command:export",
        page="adopt-a-cluster.md",
        examples=(
            (
                "Write all quotas of a cluster as manifests",
                "export --bootstrap-server b1:9092 --command-config client.properties --folder quotas",
            ),
            ("Keep a snapshot for plan --current and backtest --current", "export quotas --cluster prod --snapshot prod.json"),
        ),
    ),
    Command(
        name="init",
        group=CommandGroup.START,
        summary="Create a repository of manifests and CI workflows",
        module="reconciler.features.starting.command:init",
        page="ci.md",
        examples=(
            ("Create an empty repository without pipelines", "init quotas --ci none"),
            (
                "Begin with the quotas of a live cluster, for GitLab",
                "init quotas --ci gitlab --bootstrap-server b1:9092 --command-config client.properties --name prod",
            ),
        ),
    ),
)
