"""Quota files of other tools into entities and values: jikkou, Terraform, helmsman, kafka-configs. It never guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.importing.helmsman import read_helmsman
    from reconciler.importing.import_result import EXAMPLES, IMPORT_RULES, ImportedQuota, ImportResult
    from reconciler.importing.jikkou import read_jikkou
    from reconciler.importing.kafka_configs import read_kafka_configs
    from reconciler.importing.strimzi import read_strimzi
    from reconciler.importing.terraform import read_terraform

__all__ = [
    "EXAMPLES",
    "IMPORT_RULES",
    "ImportResult",
    "ImportedQuota",
    "read_helmsman",
    "read_jikkou",
    "read_kafka_configs",
    "read_strimzi",
    "read_terraform",
]

__getattr__ = lazy_face(__name__)
