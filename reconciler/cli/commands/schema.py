"""``kafka-quotas schema``: print a JSON Schema, for an editor or another tool."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from reconciler.cli import exit_codes, options

_KINDS: Final = {
    "ClientQuotas": "client-quotas",
    "Cluster": "cluster",
    "Repository": "repository",
    "TrafficMapping": "traffic-mapping",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``schema``."""
    from reconciler.formats import schema_names

    names = (*_KINDS, *schema_names())
    parser.add_argument("kind", choices=names, metavar="KIND", help=f"one of {', '.join(names)}")
    options.add_diagnosis_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the schema as it is shipped."""
    import json

    from reconciler.formats import load_schema

    sys.stdout.write(json.dumps(load_schema(_KINDS.get(args.kind, args.kind)), indent=2, ensure_ascii=False) + "\n")
    sys.stdout.flush()
    return exit_codes.DONE
