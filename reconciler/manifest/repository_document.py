"""The Repository manifest: owners, value limits, budgets, policies, severities of findings, and its path patterns.

In a path pattern ``*`` and ``?`` match within a folder, ``**`` matches across folders.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from reconciler.formats import Fields, Shape, choice, document, flag, labels, listing, record, table, text
from reconciler.manifest.collector import Collector
from reconciler.manifest.documents import (
    BudgetRule,
    ClusterChoice,
    Owner,
    RepositoryDocument,
    RepositoryPolicy,
    ValueBounds,
    ValueLimit,
)
from reconciler.manifest.fields import SELECTOR, TEXT, clusters, selectors
from reconciler.manifest.profiles import profiles
from reconciler.manifest.quota_values import quota_shape
from reconciler.model import (
    DesiredQuota,
    PlanPolicy,
    PolicyExpression,
    PolicySeverity,
    PolicySubject,
    QuotaKey,
    Severity,
    Span,
    compose,
    manifest_rules,
    rules,
)
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlScalar, YamlSequence

_KEYS: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: "Bytes per second and broker, with a unit such as 20MiB.",
    QuotaKey.CONSUMER_BYTE_RATE: "Bytes per second and broker, with a unit such as 20MiB.",
    QuotaKey.REQUEST_PERCENTAGE: "Percent of one thread per broker.",
    QuotaKey.CONTROLLER_MUTATION_RATE: "Partitions per second.",
    QuotaKey.CONNECTION_CREATION_RATE: "Connections per second and broker.",
}


def _by_key(values: Mapping[str, Any]) -> dict[QuotaKey, Any]:
    return {QuotaKey(name): value for name, value in values.items()}


def _bounds(
    _: YamlMapping, out: Collector, *, least: DesiredQuota | None = None, most: DesiredQuota | None = None
) -> ValueBounds:
    if least is not None and most is not None and least.value > most.value:
        words = "the smallest value {least} is above the largest, {most}"
        out.add("invalid-limit", compose(words, least=shown_part(least.text), most=shown_part(most.text)), least.source)
    return ValueBounds(least=least, most=most)


def _bounds_of(key: QuotaKey, about: str) -> Shape:
    return record(
        _bounds,
        about,
        {
            "min": quota_shape(key, "The smallest value that may be declared."),
            "max": quota_shape(key, "The largest value that may be declared."),
        },
        attributes={"min": "least", "max": "most"},
        minProperties=1,
    )


def _limit(
    node: YamlMapping,
    out: Collector,
    *,
    owner: str | None = None,
    match: Any = None,
    clusters: ClusterChoice | None = None,
    **keys: ValueBounds,
) -> ValueLimit:
    return ValueLimit(owner=owner, match=match, clusters=clusters, keys=_by_key(keys), span=out.span(node))


def _budget(
    node: YamlMapping, out: Collector, *, owner: str, clusters: ClusterChoice | None = None, **keys: DesiredQuota
) -> BudgetRule:
    return BudgetRule(owner=owner, clusters=clusters, quotas=_by_key(keys), span=out.span(node))


def _policy(node: YamlMapping, out: Collector, *, clusters: ClusterChoice | None = None, **values: Any) -> RepositoryPolicy:
    built_in = {"description": "", "severity": PolicySeverity.REFUSE, "each": PolicySubject.PLAN}
    values = {**built_in, **values}
    policy = PlanPolicy(subject=values.pop("each"), span=out.span(node), **values)
    return RepositoryPolicy(policy=policy, clusters=clusters)


def _expression(about: str, **keywords: Any) -> Shape:
    def read(node: YamlScalar, out: Collector) -> PolicyExpression | None:
        if node.data is None:
            return None
        return PolicyExpression(text=node.text, span=out.span(node), lines=tuple(_line_places(node, out)))

    return replace(text(about, **keywords), read=read)


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


_SEVERITIES: Final[Mapping[str, Severity | None]] = {severity.value: severity for severity in Severity} | {"off": None}


def _severities(node: YamlMapping, out: Collector) -> dict[str, Severity | None]:
    adjustable = [rule.id for rule in rules("file", "manifest", "lint").values() if rule.adjustable]
    severities: dict[str, Severity | None] = {}
    for rule_id, value in node.items.items():
        if rule_id not in adjustable:
            why = "the severity of this rule cannot be changed" if rule_id in manifest_rules() else "no rule has this id"
            hint = did_you_mean(rule_id, adjustable)
            out.add(
                "unknown-lint-rule", compose("{rule_id}: {why}{hint}", rule_id=shown_part(rule_id), why=why, hint=hint), value
            )
        elif isinstance(value, YamlScalar) and value.text in _SEVERITIES:
            severities[rule_id] = _SEVERITIES[value.text]
    return severities


_PATHS: Final = "as paths from the root: * within a folder, ** across folders. A folder"
_ENTITIES: Final = [{"user": {"prefix": "payments-"}}]
_SPEC: Final = Fields("Settings.", {
    "exclude": listing(
        TEXT,
        f"YAML files that are not manifests, {_PATHS} excludes all below it.",
        examples=[["mkdocs.yml", "charts/**"]],
    ),
    "include": listing(
        TEXT,
        f"Files to read, {_PATHS} includes all below it. Left out: every YAML file. The Repository manifest is always read.",
        minItems=1,
        examples=[["clusters/**", "services/**/kafka-quotas.yaml"]],
    ),
    # A field that is there and cannot be used allows nothing, not everything.
    "clusterPaths": listing(
        TEXT,
        f"Where Cluster manifests may lie, {_PATHS} means all below it. A Cluster manifest elsewhere is an error. Left out: "
        "anywhere. With owners, in no folder of an owner.",
        refused=(),
        minItems=1,
        examples=[["clusters/**"]],
    ),
    "owners": table(
        lambda _, **values: Owner(**values),
        "Who may declare what, and where. With owners, every ClientQuotas document must name one in metadata.owner.",
        Fields("What one owner may declare.", {
            "paths": listing(
                TEXT,
                f"Where the owner's documents must be, {_PATHS} means all below it. Left out: anywhere.",
                refused=(),
                minItems=1,
                examples=[["teams/payments/**"]],
            ),
            "entities": selectors(
                "The owner's entities. Left out: every entity that no other owner lists.",
                refused=(),
                minItems=1,
                examples=[_ENTITIES],
            ),
            "clusters": clusters(
                "The clusters for which the owner may declare quotas: names, or {labels: {...}}. Left out: every cluster."
            ),
            "labels": labels("For the rules of a cluster's backtest: {owners: {labels: ...}}.", examples=[{"tier": "gold"}]),
        }),
        examples=[{"team-payments": {"paths": ["teams/payments/**"], "entities": _ENTITIES}}],
    ),
    "limits": listing(
        record(
            _limit,
            "Bounds of some keys, for an owner, some entities, some clusters. What is left out means all.",
            {
                "owner": text(
                    "Only for manifests of this owner. It needs spec.owners, which makes every manifest name its owner."
                ),
                "match": SELECTOR.about("Only for these entities."),
                "clusters": clusters(
                    "The clusters on which the limit applies: names, or {labels: {...}}. Left out: every cluster."
                ),
                **{key.value: _bounds_of(key, about) for key, about in _KEYS.items()},
            },
            minProperties=1,
        ),
        "Smallest and largest values that may be declared, checked for every cluster with all overrides. Every limit that "
        "matches applies.",
        examples=[[{"owner": "team-payments", "producer_byte_rate": {"max": "200MiB"}}]],
    ),
    "budgets": listing(
        record(
            _budget,
            "The budget of one owner for some keys, on some clusters.",
            {
                "owner": text("The owner, as metadata.owner of its manifests names it."),
                "clusters": clusters(
                    "The clusters on which the budget applies: names, or {labels: {...}}. Left out: every cluster."
                ),
                **{key.value: quota_shape(key, about) for key, about in _KEYS.items()},
            },
            needs=("owner",),
            minProperties=2,
        ),
        "What the limits of an owner's entities may add up to on each broker. Of several for one cluster and key the smallest "
        "applies.",
        examples=[[{"owner": "team-payments", "producer_byte_rate": "200MiB"}]],
    ),
    "policies": listing(
        record(
            _policy,
            "One condition over the plan, or over each of its changes.",
            {
                "name": text(
                    "The name. The id of its guard is policy:NAME.",
                    pattern="^[a-z0-9]+(-[a-z0-9]+)*$",
                    maxLength=63,
                    examples=["friday-removals"],
                ),
                "description": text("What the policy is for. It is the message where none is given."),
                "severity": choice(
                    PolicySeverity,
                    "What a violation does. refuse: the plan cannot be applied. warning: a finding.",
                    default="refuse",
                ),
                "each": choice(
                    PolicySubject,
                    "What the expressions are evaluated for: the plan once, or each of its changes.",
                    default="plan",
                ),
                "clusters": clusters(
                    "The clusters whose plans the policy judges: names, or {labels: {...}}. Left out: every cluster."
                ),
                "when": _expression(
                    "An expression: the policy applies only where it is true. Left out: everywhere.",
                    examples=["change.action == 'delete'"],
                ),
                "require": _expression(
                    "An expression that must be true. Variables: plan (the document of plan --format json, with each: change "
                    "without its changes), now, cluster, and change with each: change.",
                    examples=["now.getDayOfWeek('Europe/Berlin') != 5"],
                ),
                "message": text("What to do about a violation."),
                "acceptable": flag(
                    "Whether a violation can be accepted by the id policy:NAME, with --accept or in a Cluster manifest.",
                    default=False,
                ),
            },
            needs=("name", "require"),
        ),
        "Conditions that every plan has to satisfy, in CEL. A violated policy refuses the plan as a guard does, or warns. Needs "
        "the extra policies.",
    ),
    "lint": Shape(
        schema={
            "type": "object",
            "description": "Other severities for lint rules, by id.",
            "additionalProperties": {"enum": list(_SEVERITIES)},
            "examples": [{"percent-encoded-name": "error"}],
        },
        nodes=(YamlMapping,),
        read=_severities,
    ),
    "profiles": profiles("A Cluster manifest can change them for its cluster."),
    "stages": listing(
        TEXT,
        "Order in which apply --all-clusters writes: each is a value of the label stage of Cluster manifests.",
        minItems=1,
        uniqueItems=True,
        examples=[["staging", "canary", "prod"]],
    ),
})  # fmt: skip


def _repository(root: YamlMapping, out: Collector, **values: Any) -> RepositoryDocument:
    spec = root.items.get("spec")
    owners = values.get("owners", {})
    for name in ("limits", "budgets") if owners else ():
        rules = spec.items.get(name) if isinstance(spec, YamlMapping) else None
        for rule in rules.items if isinstance(rules, YamlSequence) else []:
            owner = rule.items.get("owner") if isinstance(rule, YamlMapping) else None
            if isinstance(owner, YamlScalar) and owner.data is not None and owner.text not in owners:
                message = compose(
                    "the repository declares no owner {owner}{hint}",
                    owner=shown_part(owner.text),
                    hint=did_you_mean(owner.text, owners),
                )
                out.add("unknown-owner", message, owner)
    names: set[str] = set()
    for each in values.get("policies", ()):
        if each.policy.name in names:
            message = compose("two policies have the name {name}", name=shown_part(each.policy.name))
            out.add("invalid-policy", message, each.policy.span)
        names.add(each.policy.name)
    values.pop("name", None)
    return RepositoryDocument(file=out.file, span=out.span(root), **values)


REPOSITORY: Final = document(
    "Repository",
    "Settings of a whole repository. The file kafka-quotas.yaml at its root.",
    metadata=Fields("Words for people.", {"name": text("A name for people.")}),
    spec=_SPEC,
    make=_repository,
)


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
