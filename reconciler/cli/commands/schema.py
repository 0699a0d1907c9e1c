"""``kafka-quotas tool schema``: print a JSON Schema, for an editor or another tool."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from reconciler.cli.declaration import argument
from reconciler.cli.results import Result
from reconciler.formats import load_schema, schema_names

_KINDS: Final = {
    "ClientQuotas": "client-quotas",
    "Cluster": "cluster",
    "Repository": "repository",
    "TrafficMapping": "traffic-mapping",
}
_NAMES: Final = (*_KINDS, *schema_names())


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaArguments:
    """The command line of ``tool schema``."""

    kind: str = argument("KIND", choices=_NAMES, help=f"one of {', '.join(_NAMES)}")


def run(args: SchemaArguments) -> Result:
    """The schema as it is shipped."""
    schema = load_schema(_KINDS.get(args.kind, args.kind))
    return Result(forms={"text": lambda: json.dumps(schema, indent=2, ensure_ascii=False) + "\n"})
