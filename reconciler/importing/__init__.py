"""Quota files of other tools into entities and values: jikkou, Terraform, helmsman, kafka-configs and more. It never guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.importing.ansible import read_ansible
    from reconciler.importing.helmsman import read_helmsman
    from reconciler.importing.import_result import EXAMPLES, IMPORT_RULES, ImportedQuota, ImportResult
    from reconciler.importing.jikkou import read_jikkou
    from reconciler.importing.julie import read_julie
    from reconciler.importing.kafka_configs import read_kafka_configs
    from reconciler.importing.monedula import read_monedula
    from reconciler.importing.rpk import read_rpk
    from reconciler.importing.strimzi import read_strimzi
    from reconciler.importing.terraform import read_terraform

__all__ = [
    "EXAMPLES",
    "IMPORT_RULES",
    "ImportResult",
    "ImportedQuota",
    "read_ansible",
    "read_helmsman",
    "read_jikkou",
    "read_julie",
    "read_kafka_configs",
    "read_monedula",
    "read_rpk",
    "read_strimzi",
    "read_terraform",
]

__getattr__ = lazy_face(__name__)
