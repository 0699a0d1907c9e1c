"""Findings: one message with a stable id and a place, whatever produced it (schema, lint, broker), and what explains an id.

An explanation has the reason, and an example of what is wrong and what is right. The tests run every one.
"""

from __future__ import annotations

import enum
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from reconciler.model.entity import Entity, escaped


class Severity(enum.StrEnum):
    """How much a finding matters. ``rank`` orders them, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for error, 1 for warning, 2 for info."""
        return list(Severity).index(self)

    def at_least(self, other: Severity) -> bool:
        """True when this severity is as bad as ``other`` or worse."""
        return self.rank <= other.rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """Another place that a finding is about, e.g. the first of two claims."""

    span: Span
    message: str
    """How the place belongs to the finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark about the input. ``id`` is kebab-case and never changes its meaning."""

    id: str
    """Stable id of the rule. kafka-quotas explain ID describes it."""
    severity: Severity
    """Error stops the command. Warning and info do not, unless --fail-on or a rule asks for it."""
    message: str
    span: Span | None = None
    related: tuple[Related, ...] = ()
    """Other places in the manifests that belong to the finding."""
    entity: Entity | None = None
    """The entity that the finding is about. Absent when it is about no single entity."""
    key: str | None = None
    """Quota key that the finding is about. Absent when it is about no single key."""
    as_before: bool = False
    """True when the base of the change, or the baseline of the repository, has the same finding. Never for an error."""

    def fails(self, limit: Severity) -> bool:
        """True when it fails a command that stops on findings of this severity: a finding as before never does."""
        return not self.as_before and self.severity.at_least(limit)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorted by place (file, line, column), then severity and id: the same order in every rendering."""
    return tuple(sorted(findings, key=_order))


def _order(finding: Finding) -> tuple[str, int, int, int, str, str]:
    span = finding.span
    place = (span.file, span.line, span.column) if span else ("", 0, 0)
    return (*place, finding.severity.rank, finding.id, finding.message)


class Span(NamedTuple):  # a dataclass takes three times as long to make, and each entity of a manifest has three places
    """A place in a file. ``line`` and ``column`` count from 1. ``file`` is the path as the user would type it.

    ``str(span)`` is for people: the path is escaped.
    """

    file: str
    """Path of the file."""
    line: FromOne
    """The line, from 1."""
    column: FromOne
    """The column, from 1."""

    def __str__(self) -> str:
        return f"{escaped(self.file)}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of finding. ``adjustable``: a repository may give it another severity, or switch it off."""

    id: str
    severity: Severity
    explanation: str
    adjustable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """``bad`` produces what it is an example of, ``good`` does not.

    Both are manifests (a YAML stream), or with ``commands`` shell commands that make such files in an empty folder and
    check them.
    ``live``: what the cluster has, one entity a line, as ``describe`` prints it.
    """

    bad: str
    """Manifests that produce it, or with commands the commands."""
    good: str
    """The same as it should be."""
    live: tuple[str, ...] = ()
    """What the cluster has, an entity a line."""
    commands: bool = False
    """True when bad and good are commands for an empty folder."""


class Topic(enum.StrEnum):
    """What an id stands for."""

    FINDING = "finding"
    GUARD = "guard"
    DRIFT = "drift"
    PAGE = "page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is known about one id. ``severity`` is for findings only. ``adjustable``: ``spec.lint`` may change it."""

    id: str
    """The id, which never changes its meaning."""
    topic: Topic
    """What the id stands for."""
    text: str
    """The reason, and what to do. Of a page its Markdown."""
    severity: Severity | None = None
    """Severity of a finding before a repository changes it. ``None`` for others."""
    adjustable: bool = False
    """True when spec.lint of the Repository document may change the severity."""
    example: Example | None = None
    """What is wrong, and what is right."""


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


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A whole number of at least this size."""

    lowest: int


@dataclass(frozen=True, slots=True)
class Spelled:
    """A text that this regular expression finds."""

    pattern: str


Count: TypeAlias = Annotated[int, AtLeast(0)]
"""How many there are of something."""
FromOne: TypeAlias = Annotated[int, AtLeast(1)]
"""A number that counts from 1."""
Digest: TypeAlias = Annotated[str, Spelled("^sha256:[0-9a-f]{64}$")]
"""``sha256:`` with 64 hexadecimal digits."""
