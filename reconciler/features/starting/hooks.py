"""What a start adds: the command init."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

COMMANDS: Final = (
    Command(
        name="init",
        group=CommandGroup.START,
        summary="Create a repository of manifests and CI workflows",
        module="reconciler.features.starting.command",
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
