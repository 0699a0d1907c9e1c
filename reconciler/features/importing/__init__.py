"""Quota files of declarative tools into entities and values: jikkou, Strimzi, Terraform. Everything else in a file is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.features.importing.conversion import ImportSummary, import_files
    from reconciler.features.importing.import_result import ImportedQuota, ImportResult
    from reconciler.features.importing.jikkou import read_jikkou
    from reconciler.features.importing.strimzi import read_strimzi
    from reconciler.features.importing.terraform import read_terraform

__getattr__ = lazy_face(__name__)
