"""``kafka-quotas schema``: print a JSON Schema, for an editor or another tool."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Final

from reconciler.cli import exit_codes, options
from reconciler.cli.arguments import typed

_KINDS: Final = {
    "ClientQuotas": "client-quotas",
    "Cluster": "cluster",
    "Repository": "repository",
    "TrafficMapping": "traffic-mapping",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaArguments:
    """The command line of ``schema``."""

    kind: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``schema``."""
    from reconciler.formats import schema_names

    names = (*_KINDS, *schema_names())
    parser.add_argument("kind", choices=names, metavar="KIND", help=f"one of {', '.join(names)}")
    options.add_diagnosis_options(parser)


def parse(namespace: argparse.Namespace) -> SchemaArguments:
    """The options of ``add_arguments`` with their types."""
    return typed(SchemaArguments, namespace)


def run(args: SchemaArguments) -> int:
    """Print the schema as it is shipped."""
    import json

    from reconciler.formats import load_schema

    sys.stdout.write(json.dumps(load_schema(_KINDS.get(args.kind, args.kind)), indent=2, ensure_ascii=False) + "\n")
    sys.stdout.flush()
    return exit_codes.DONE
