"""The Repository manifest: owners, value limits, severities of findings, and its path patterns.

In a path pattern ``*`` and ``?`` match within a folder, ``**`` matches across folders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from reconciler.manifest.catalogue import RULES
from reconciler.manifest.collector import Collector, items, mapping, scalar, selector, selectors, texts
from reconciler.manifest.documents import BudgetRule, Owner, RepositoryDocument, ValueBounds, ValueLimit
from reconciler.manifest.policy_entries import parse_policies
from reconciler.manifest.profiles import parse_profiles
from reconciler.manifest.quota_entries import cluster_choice, quota_value
from reconciler.model import LINT_RULES, DesiredQuota, QuotaKey, Severity, Span, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar

_SEVERITIES: Final[Mapping[str, Severity | None]] = {s.value: s for s in Severity} | {"off": None}


def repository(root: YamlMapping, out: Collector) -> RepositoryDocument:
    """The Repository document, as far as it can be understood."""
    spec = mapping(root, "spec")
    owners = dict(_owners(mapping(spec, "owners"), out))
    lint = mapping(spec, "lint")
    severities: dict[str, Severity | None] = {}
    adjustable = [rule.id for rule in (*RULES.values(), *LINT_RULES.values()) if rule.adjustable]
    for rule_id, value in lint.items.items() if lint else ():
        if rule_id not in adjustable:
            why = "the severity of this rule cannot be changed" if rule_id in RULES else "no rule has this id"
            out.add(
                "unknown-lint-rule",
                compose(
                    "{rule_id}: {why}{hint}",
                    rule_id=shown_part(rule_id),
                    why=why,
                    hint=did_you_mean(rule_id, adjustable),
                ),
                value,
            )
        elif isinstance(value, YamlScalar) and value.text in _SEVERITIES:
            severities[rule_id] = _SEVERITIES[value.text]
    return RepositoryDocument(
        file=out.file,
        span=out.span(root),
        exclude=texts(spec, "exclude"),
        include=texts(spec, "include"),
        # A field that is there and cannot be used allows nothing.
        cluster_paths=texts(spec, "clusterPaths") if spec is not None and "clusterPaths" in spec.items else None,
        owners=owners,
        limits=tuple(_limits(items(spec, "limits"), owners, out)),
        lint=severities,
        profiles=parse_profiles(mapping(spec, "profiles"), out),
        budgets=tuple(_budgets(items(spec, "budgets"), owners, out)),
        policies=tuple(parse_policies(items(spec, "policies"), out)),
        stages=texts(spec, "stages"),
    )


def _owners(node: YamlMapping | None, out: Collector) -> Iterator[tuple[str, Owner]]:
    for name, value in node.items.items() if node else ():
        if not isinstance(value, YamlMapping):
            continue
        line, column = node.keys[name] if node else (1, 1)
        labels = mapping(value, "labels")
        # A field that is there and cannot be used allows nothing, not everything.
        yield (
            name,
            Owner(
                name=name,
                paths=texts(value, "paths") if "paths" in value.items else None,
                entities=selectors(value.items["entities"], out) if "entities" in value.items else None,
                clusters=cluster_choice(value.items.get("clusters"), out),
                labels={k: v.text for k, v in labels.items.items() if isinstance(v, YamlScalar)} if labels else {},
                span=Span(file=out.file, line=line, column=column),
            ),
        )


def _limits(nodes: tuple[YamlNode, ...], owners: Mapping[str, Owner], out: Collector) -> Iterator[ValueLimit]:
    for node in nodes:
        if not isinstance(node, YamlMapping):
            continue
        owner = scalar(node, "owner")
        if owner is not None and owners and owner.text not in owners:
            out.add(
                "unknown-owner",
                compose(
                    "the repository declares no owner {owner}{hint}",
                    owner=shown_part(owner.text),
                    hint=did_you_mean(owner.text, owners),
                ),
                owner,
            )
        yield ValueLimit(
            owner=owner.text if owner is not None else None,
            match=selector(node.items.get("match"), out),
            clusters=cluster_choice(node.items.get("clusters"), out),
            keys={key: _bounds(key, value, out) for key in QuotaKey if (value := mapping(node, key.value)) is not None},
            span=out.span(node),
        )


def _budgets(nodes: tuple[YamlNode, ...], owners: Mapping[str, Owner], out: Collector) -> Iterator[BudgetRule]:
    for node in nodes:
        owner = scalar(node, "owner")
        if not isinstance(node, YamlMapping) or owner is None:
            continue
        if owners and owner.text not in owners:
            message = compose(
                "the owner {owner} does not exist{hint}", owner=shown_part(owner.text), hint=did_you_mean(owner.text, owners)
            )
            out.add("unknown-owner", message, owner)
        quotas = {}
        for key in QuotaKey:
            value = scalar(node, key.value)
            if value is not None and (quota := quota_value(key, value, None, out)) is not None:
                quotas[key] = quota
        clusters = cluster_choice(node.items.get("clusters"), out)
        yield BudgetRule(owner=owner.text, clusters=clusters, quotas=quotas, span=out.span(node))


def _bounds(key: QuotaKey, node: YamlMapping, out: Collector) -> ValueBounds:
    least, most = _bound(key, node, "min", out), _bound(key, node, "max", out)
    if least is not None and most is not None and least.value > most.value:
        out.add(
            "invalid-limit",
            compose(
                "the smallest value {least} is above the largest, {most}",
                least=shown_part(least.text),
                most=shown_part(most.text),
            ),
            least.source,
        )
    return ValueBounds(least=least, most=most)


def _bound(key: QuotaKey, node: YamlMapping, name: str, out: Collector) -> DesiredQuota | None:
    written = scalar(node, name)
    return quota_value(key, written, None, out) if isinstance(written, YamlScalar) else None


def path_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A test for paths relative to the root, with ``/`` between parts; a pattern that matches a folder takes all below it."""
    compiled = [_compiled(pattern) for pattern in patterns]
    return lambda path: any(pattern.fullmatch(path) for pattern in compiled)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Between two stars the leftmost match is as good as any, so it is atomic: no pattern makes matching slow."""
    parts = [part for part in pattern.removeprefix("./").split("/") if part]
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_part(part))
    first, *others = runs
    if not others:
        return re.compile("/".join(first) + "(?:/.*)?", re.DOTALL)
    text = "".join(f"{part}/" for part in first)
    for run in others[:-1]:
        if run:
            text += f"(?>(?:[^/]+/)*?{'/'.join(run)}/)"
    last = others[-1]
    text += f"(?:[^/]+/)*?{'/'.join(last)}(?:/.*)?" if last else ".*"
    return re.compile(text, re.DOTALL)


def _part(part: str) -> str:
    chunks = ["".join("[^/]" if c == "?" else re.escape(c) for c in chunk) for chunk in re.split(r"\*+", part)]
    first, *others = chunks
    if not others:
        return first
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in others[:-1] if chunk)
    # The last chunk is at the end of the part.
    return f"{first}{middle}[^/]*{others[-1]}(?=/|\\Z)"
