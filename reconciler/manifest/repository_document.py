"""The Repository manifest: owners, value limits, budgets and severities of findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reconciler.formats import TEXT, FreeShape, ListShape, ManifestShape, NumberShape, RecordShape, TableShape, TextShape
from reconciler.manifest.documents import (
    BudgetRule,
    ClusterChoice,
    Owner,
    RepositoryDocument,
    SizingRules,
    ValueBounds,
    ValueLimit,
)
from reconciler.manifest.fields import SELECTOR, ClustersShape
from reconciler.manifest.profiles import ABOUT_PROFILES, PROFILE, PROFILE_EXAMPLES, profile
from reconciler.manifest.quota_values import QuotaShape
from reconciler.manifest.reading import Collector
from reconciler.model import DesiredQuota, QuotaKey, Severity, compose, manifest_rules, rules
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
        out.add("invalid-limit", words, least.source, least=least.text, most=most.text)
    return ValueBounds(least=least, most=most)


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
_SPEC: Final = RecordShape(None, "Settings.", {
    "exclude": ListShape(
        TEXT,
        f"YAML files that are not manifests, {_PATHS} excludes all below it.",
        examples=[["mkdocs.yml", "charts/**"]],
    ),
    "include": ListShape(
        TEXT,
        f"Files to read, {_PATHS} includes all below it. Left out: every YAML file. The Repository manifest is always read.",
        min_items=1,
        examples=[["clusters/**", "services/**/kafka-quotas.yaml"]],
    ),
    # A field that is there and cannot be used allows nothing, not everything.
    "clusterPaths": ListShape(
        TEXT,
        f"Where Cluster manifests may lie, {_PATHS} means all below it. A Cluster manifest elsewhere is an error. Left out: "
        "anywhere. With owners, in no folder of an owner.",
        refused=(),
        min_items=1,
        examples=[["clusters/**"]],
    ),
    "owners": TableShape(
        lambda _, **values: Owner(**values),
        "Who may declare what, and where. With owners, every ClientQuotas document must name one in metadata.owner.",
        RecordShape(None, "What one owner may declare.", {
            "paths": ListShape(
                TEXT,
                f"Where the owner's documents must be, {_PATHS} means all below it. Left out: anywhere.",
                refused=(),
                min_items=1,
                examples=[["teams/payments/**"]],
            ),
            "entities": ListShape(SELECTOR,
                "The owner's entities. Left out: every entity that no other owner lists.",
                refused=(),
                min_items=1,
                examples=[_ENTITIES],
            ),
            "clusters": ClustersShape(
                "The clusters for which the owner may declare quotas: names, or {labels: {...}}. Left out: every cluster."
            ),
        }),
        examples=[{"team-payments": {"paths": ["teams/payments/**"], "entities": _ENTITIES}}],
    ),
    "limits": ListShape(
        RecordShape(
            _limit,
            "Bounds of some keys, for an owner, some entities, some clusters. What is left out means all.",
            {
                "owner": TextShape(
                    "Only for manifests of this owner. It needs spec.owners, which makes every manifest name its owner."
                ),
                "match": SELECTOR,
                "clusters": ClustersShape(
                    "The clusters on which the limit applies: names, or {labels: {...}}. Left out: every cluster."
                ),
                **{
                    key.value: RecordShape(
                        _bounds,
                        about,
                        {
                            "min": QuotaShape(key, "The smallest value that may be declared."),
                            "max": QuotaShape(key, "The largest value that may be declared."),
                        },
                        attributes={"min": "least", "max": "most"},
                        min_properties=1,
                    )
                    for key, about in _KEYS.items()
                },
            },
            min_properties=1,
        ),
        "Smallest and largest values that may be declared, checked for every cluster with all overrides. Every limit that "
        "matches applies.",
        examples=[[{"owner": "team-payments", "producer_byte_rate": {"max": "200MiB"}}]],
    ),
    "budgets": ListShape(
        RecordShape(
            _budget,
            "The budget of one owner for some keys, on some clusters.",
            {
                "owner": TextShape("The owner, as metadata.owner of its manifests names it."),
                "clusters": ClustersShape(
                    "The clusters on which the budget applies: names, or {labels: {...}}. Left out: every cluster."
                ),
                **{key.value: QuotaShape(key, about) for key, about in _KEYS.items()},
            },
            required=("owner",),
            min_properties=2,
        ),
        "What the limits of an owner's entities may add up to on each broker. Of several for one cluster and key the smallest "
        "applies.",
        examples=[[{"owner": "team-payments", "producer_byte_rate": "200MiB"}]],
    ),
    "lint": FreeShape(
        "Other severities for lint rules, by id.",
        {
            "type": "object",
            "additionalProperties": {"enum": list(_SEVERITIES)},
            "examples": [{"percent-encoded-name": "error"}],
        },
        nodes=(YamlMapping,),
        parse=_severities,
    ),
    "profiles": TableShape(
        profile, f"{ABOUT_PROFILES} A Cluster manifest can change them for its cluster.", PROFILE, examples=PROFILE_EXAMPLES
    ),
    "rightsize": RecordShape(
        SizingRules,
        "When rightsize proposes another limit.",
        {
            "lowerBelow": NumberShape(
                "Percent of a limit. One that no client used above that in the history can be lowered (default 33).",
                minimum=1,
                maximum=80,
            ),
            "days": NumberShape(
                "Days of history to read. A quota without traffic in all of them is unused (default 90).",
                type="integer",
                minimum=14,
            ),
            "changes": NumberShape(
                "The most changes that are proposed to one owner at once (default 20).", type="integer", minimum=1
            ),
        },
        min_properties=1,
    ),
    "stages": ListShape(
        TEXT,
        "Order in which apply --all-clusters writes: each is a value of the label stage of Cluster manifests.",
        min_items=1,
        unique_items=True,
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
                hint = did_you_mean(owner.text, owners)
                out.add("unknown-owner", "the repository declares no owner {owner}{hint}", owner, owner=owner.text, hint=hint)
    values.pop("name", None)
    return RepositoryDocument(file=out.file, span=out.span(root), **values)


REPOSITORY: Final = ManifestShape(
    "Repository",
    "Settings of a whole repository. The file kafka-quotas.yaml at its root.",
    metadata=RecordShape(None, "Words for people.", {"name": TextShape("A name for people.")}),
    spec=_SPEC,
    make=_repository,
)
