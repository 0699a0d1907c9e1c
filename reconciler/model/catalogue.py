"""The catalogue of ids in ``catalogue.toml``: findings, guards and classes of drift, with their reasons and examples."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, Final

from reconciler.model.finding import Example, Rule, Severity

_HEADS: Final = {
    "quota": "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n",
    "cluster": "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n",
    "repository": "apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n",
}


@cache
def catalogue_tables() -> Mapping[str, Mapping[str, Any]]:
    """The tables. They are read when the first finding is made: other commands need none of it."""
    return tomllib.loads((get_data("reconciler.model", "catalogue.toml") or b"").decode())


@cache
def rules(*tables: str) -> Mapping[str, Rule]:
    """The rules of some tables by id, in their order."""
    return {
        rule_id: Rule(
            id=rule_id,
            severity=Severity(row["severity"]),
            explanation=" ".join(row["text"].split()),
            adjustable=row.get("adjustable", table == "lint"),
        )
        for table in tables
        for rule_id, row in catalogue_tables()[table].items()
    }


def manifest_rules() -> Mapping[str, Rule]:
    """The rules that reading manifests, or writing them, can break."""
    return rules("file", "manifest")


def example_of(row: Mapping[str, Any]) -> Example | None:
    """The example of a row of the catalogue."""
    if "bad" not in row:
        return None
    commands = row.get("commands", False)
    bad, good = (row[side] if commands else _expanded(row[side]) for side in ("bad", "good"))
    return Example(bad=bad, good=good, live=tuple(row.get("live", ())), commands=commands)


def _expanded(text: str) -> str:
    """The documents of an example, whose lines may be entries or fields of ``spec``."""
    lines, before = [], ""
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word in _HEADS and word != before:
            lines.append(_HEADS[word])
        match, _, quotas = rest.partition(" -> ")
        field = f"    - match: {match}\n      quotas: {quotas}\n" if word == "quota" else f"  {rest}\n"
        lines.append(field if word in _HEADS else f"{line}\n")
        before = word
    return "".join(lines)
