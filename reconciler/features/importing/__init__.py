"""Quota files of declarative tools into entities and values: jikkou, Strimzi, Terraform. Everything else in a file is named."""

from __future__ import annotations

from typing import Final

from reconciler.hooks import Command, CommandGroup

NEEDS: Final = ("starting",)

COMMANDS: Final = (
    Command(
        name="import",
        group=CommandGroup.START,
        summary="Convert the quota files of other tools into manifests",
        module="reconciler.features.importing.command",
        page="import.md",
        examples=(
            ("Convert the files of jikkou", "import --from jikkou jikkou --folder quotas"),
            (
                "Write the convertible part of a Terraform state",
                "import --from terraform terraform.tfstate --folder quotas --partial",
            ),
        ),
    ),
)

RULES: Final = ("reconciler.features.importing.import_result:EXPLAINED",)
