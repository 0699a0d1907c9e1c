"""``policies`` of the Repository manifest, with the place of each line of their expressions in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.manifest.collector import Collector, scalar, text
from reconciler.manifest.documents import RepositoryPolicy
from reconciler.manifest.quota_entries import cluster_choice
from reconciler.model import PlanPolicy, PolicyExpression, PolicySeverity, PolicySubject, Span, compose
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

_SEVERITIES: Final = {severity.value: severity for severity in PolicySeverity}
_SUBJECTS: Final = {subject.value: subject for subject in PolicySubject}


def parse_policies(nodes: tuple[YamlNode, ...], out: Collector) -> Iterator[RepositoryPolicy]:
    """The policies that can be understood; one that cannot is an error, so no plan is made without it."""
    names: set[str] = set()
    for node in nodes:
        name, require = text(node, "name"), scalar(node, "require")
        severity = _SEVERITIES.get(text(node, "severity") or PolicySeverity.REFUSE.value)
        subject = _SUBJECTS.get(text(node, "each") or PolicySubject.PLAN.value)
        if not isinstance(node, YamlMapping) or name is None or require is None or severity is None or subject is None:
            continue
        if name in names:
            out.add("invalid-policy", compose("two policies have the name {name}", name=shown_part(name)), node)
        names.add(name)
        acceptable = scalar(node, "acceptable")
        when = scalar(node, "when")
        policy = PlanPolicy(
            name=name,
            description=text(node, "description") or "",
            severity=severity,
            subject=subject,
            require=_expression(require, out),
            when=_expression(when, out) if when is not None else None,
            message=text(node, "message"),
            acceptable=acceptable is not None and acceptable.data is True,
            span=out.span(node),
        )
        yield RepositoryPolicy(policy=policy, clusters=cluster_choice(node.items.get("clusters"), out))


def _expression(node: YamlScalar, out: Collector) -> PolicyExpression:
    return PolicyExpression(text=node.text, span=out.span(node), lines=tuple(_line_places(node, out)))


def _line_places(node: YamlScalar, out: Collector) -> Iterator[Span]:
    """Where each line of a scalar is written: of a block with ``|``, or of text on one line. Folded text has no such places."""
    first = out.line(node.line)
    sign = first[node.column - 1 : node.column]
    if sign == "|":
        lines = node.text.splitlines()
        written = next((number for number, line in enumerate(lines) if line.strip()), 0)
        source = out.line(node.line + 1 + written)
        indent = source.find(lines[written]) if lines else -1
        for number in range(len(lines) if indent >= 0 else 0):
            yield Span(file=out.file, line=node.line + 1 + number, column=indent + 1)
    elif sign != ">" and "\n" not in node.text:
        start = first.find(node.text, node.column - 1)
        if start >= 0:
            yield Span(file=out.file, line=node.line, column=start + 1)
