"""ClientQuotas documents: entries and groups, as entities with values. What the schema refused is skipped."""

from __future__ import annotations

import ipaddress
import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from reconciler.formats import TEXT, ChoiceShape, FreeShape, ListShape, ManifestShape, RecordShape, TableShape, TextShape
from reconciler.manifest.documents import ClientQuotasDocument, ClusterChoice, Override, QuotaEntry, QuotaGroup
from reconciler.manifest.fields import ClustersShape, profile_choice
from reconciler.manifest.quota_values import QuotasShape
from reconciler.manifest.reading import Collector
from reconciler.model import (
    DEFAULT,
    DesiredEntity,
    DesiredQuota,
    Entity,
    EntityName,
    EntityType,
    ExpiringQuota,
    Span,
    UnitQuota,
    compose,
)
from reconciler.resolution import GroupLimit, MemberKind, reserved_entity
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, scalar_text

MOST_ENTITIES: Final = 10_000
"""Of one entry: a list of users and a list of client-ids name a product."""
_TYPES: Final = frozenset(entity_type.value for entity_type in EntityType)
_PLAIN: Final = frozenset({DesiredQuota})
_NAMED: Final = _TYPES - {EntityType.IP.value}
_DEFAULT: Final = {"const": True, "description": "The default entity of this type: everyone who has no quota by name."}
_NAME: Final = {
    "description": "A literal name, taken exactly as it is written (on is the name on, 0123 is 0123), or {default: true} for the "
    "default entity of this type.",
    "type": ("string", "number", "boolean", "object"),
    "minLength": 1,
    "properties": {"default": _DEFAULT},
    "required": ("default",),
    "additionalProperties": False,
    "examples": ["payments-api", {"default": True}],
}
_NAMES: Final = {
    **_NAME,
    "type": ("string", "number", "boolean", "object", "array"),
    "items": _NAME,
    "minItems": 1,
    "examples": ["payments-api", ["payments-api", "refunds-api"], {"default": True}],
}
_ABOUT_TYPES: Final = {
    EntityType.USER: "The principal's name without its type: alice, not User:alice. Or {default: true}.",
    EntityType.CLIENT_ID: "The client.id of producers and consumers, or {default: true}.",
    EntityType.IP: "One IPv4 or IPv6 address, or {default: true}. It cannot be combined with user or client-id.",
}


def _entities(match: YamlMapping, out: Collector) -> list[tuple[Entity, Span]] | None:
    """The entities with their places: one, or with lists of names one a combination. None when Kafka has no such entity.

    The first is the entity of findings about the entry.
    """
    if len(match.items) == 1:
        # The entry of nearly every manifest.
        ((entity_type, node),) = match.items.items()
        if (
            entity_type in _NAMED
            and isinstance(node, YamlScalar)
            and node.data.__class__ is str
            and _ORDINARY.fullmatch(node.text)
        ):
            out.entity = Entity(parts=((entity_type, node.text),))
            return [(out.entity, out.span(match))]
    names = {entity_type: _listed_names(entity_type, node, out) for entity_type, node in match.items.items()}
    if len(names) > 1 and EntityType.IP in names:
        out.add("illegal-entity", "an ip cannot be combined with a user or a client-id. Make two entries of it", match)
        return None
    if not names or not all(names.values()):
        return None
    lists = [number for number, node in enumerate(match.items.values()) if isinstance(node, YamlSequence)]
    out.entity = Entity.of({entity_type: listed[0][0] for entity_type, listed in names.items()})
    if not lists:
        return [(out.entity, out.span(match))]
    count = math.prod(map(len, names.values()))
    if count > MOST_ENTITIES:
        message = f"this entry names {count:,} entities, more than {MOST_ENTITIES:,}. Make several entries of it"
        out.add("too-many-entities", message, match)
        return None
    return [
        (
            Entity.of({entity_type: name for entity_type, (name, _) in zip(names, combination, strict=True)}),
            out.span(combination[lists[-1]][1]),
        )
        for combination in itertools.product(*names.values())
    ]


def _listed_names(entity_type: str, node: YamlNode, out: Collector) -> list[tuple[EntityName, YamlNode]]:
    """The names of one type, all of them checked. None when the schema refused one, and reports it."""
    listed = node.items if isinstance(node, YamlSequence) else [node]
    names: list[tuple[EntityName, YamlNode]] = []
    for item in listed if entity_type in _TYPES else ():
        if isinstance(item, YamlScalar) and item.data is not None and item.text:
            names.append((item.text, item))
            if entity_type == EntityType.IP or not _ORDINARY.fullmatch(item.text):
                for rule_id, message in name_problems(entity_type, item.text):
                    out.add(rule_id, message, item)
        elif isinstance(item, YamlMapping) and item.data == {"default": True}:
            names.append((DEFAULT, item))
    return names if len(names) == len(listed) else []


def _override(node: YamlMapping, out: Collector) -> Override | None:
    values = _OVERRIDE.values(node, out)
    if "clusters" not in values:
        return None
    _require_values(node, "this override", out)
    return Override(**{"quotas": {}, **values}, span=out.span(node))


def _require_values(node: YamlMapping, what: str, out: Collector) -> None:
    if "quotas" not in node.items and "profile" not in node.items:
        out.add("missing-field", f"{what} has neither quotas nor a profile", node)


_QUOTAS: Final = QuotasShape(
    "The limits of this entity. A key that is left out is not set, and removed from the cluster if it is there. Empty ({}): the "
    "entity has no quotas, and those that it has on the cluster are removed.",
    nullable=False,
)
_NOTE: Final = TextShape("Why. Shown in plans and comments.")
_OVERRIDE: Final = RecordShape(None, "Other values for some clusters.", {
    "clusters": ClustersShape("Which clusters: a list of names, or {labels: {...}}."),
    "profile": TextShape("Another profile for these clusters.", parse=profile_choice, examples=["gold"]),
    "quotas": QuotasShape("Keys to set for these clusters. Null drops a key, keys that are not named stay.", nullable=True),
}, required=("clusters",), parse=_override)  # fmt: skip
_ENTRY: Final = RecordShape(None, "One entity and its limits.", {
    "match": FreeShape(
        "user, client-id, both, or ip alone. A list of names makes one entity of each, with the same limits.",
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {each.value: {**_NAMES, "description": about} for each, about in _ABOUT_TYPES.items()},
        },
        nodes=(YamlMapping,),
        parse=_entities,
    ),
    "profile": TextShape(
        "A profile of the Repository or Cluster manifest: its limits apply where quotas names no other.",
        parse=profile_choice,
        examples=["gold"],
    ),
    "quotas": _QUOTAS,
    "note": _NOTE,
    "rightsize": ChoiceShape(
        {"never": False},
        "never: rightsize proposes no other limits for this entry, and lists it with its note, which is then required.",
    ),
    "overrides": ListShape(
        _OVERRIDE,
        "Other values for some clusters. At most one override may match a cluster.",
    ),
}, required=("match",))  # fmt: skip


def _entries(nodes: YamlSequence, out: Collector) -> list[QuotaEntry]:
    """An entry for each entity that ``match`` names, all with the same values."""
    entries: list[QuotaEntry] = []
    for node in nodes.items:
        match = node.items.get("match") if isinstance(node, YamlMapping) else None
        if isinstance(node, YamlMapping) and isinstance(match, YamlMapping):
            values = _ENTRY.values(node, out)
            if "profile" not in values and "quotas" not in node.items:
                _require_values(node, "this entry", out)
            overrides, profile, note = values.get("overrides", ()), values.get("profile"), values.get("note")
            rightsize = values.get("rightsize", True)
            if not rightsize and note is None:
                out.add("missing-field", "rightsize: never needs a note. Write the reason as note", node.items["rightsize"])
            written = values.get("quotas", {})
            quotas = {"quotas": written} if _PLAIN.issuperset(map(type, written.values())) else _by_kind(written)
            for entity, source in values.get("match", ()):
                declared = DesiredEntity(entity=entity, source=source, owner=out.owner, note=note, **quotas)
                entries.append(QuotaEntry(declared=declared, profile=profile, overrides=overrides, rightsize=rightsize))
            out.entity = None
    return entries


def _by_kind(written: dict[Any, Any]) -> dict[str, Any]:
    """The values of an entry or a group, by the field of ``DesiredEntity`` that has values of their kind."""
    kinds = {"quotas": DesiredQuota, "units": UnitQuota, "expiring": ExpiringQuota}
    return {field: {key: value for key, value in written.items() if isinstance(value, kind)} for field, kind in kinds.items()}


def _members(node: YamlSequence, _: Collector) -> list[YamlScalar]:
    return [item for item in node.items if isinstance(item, YamlScalar) and item.data is not None]


def _group(
    out: Collector, *, name: str, span: Span, match: bool = False, quotas: Any = None, note: str | None = None, **listed: Any
) -> QuotaGroup | None:
    kinds = (MemberKind.USER_PREFIX, MemberKind.CLIENT_ID_PREFIX) if match else (MemberKind.USER, MemberKind.CLIENT_ID)
    members = {}
    for field, kind in zip(("users", "client_ids"), kinds, strict=True):
        for member in listed.get(field, ()):
            members[kind, member.text] = out.span(member)
            for rule_id, message in () if match else name_problems(kind.value, member.text):
                out.add(rule_id, message, member)
    if not members:
        out.add("missing-field", "this group has neither users nor client-ids", span)
        return None
    entity = reserved_entity(GroupLimit(group=name))
    limits = DesiredEntity(entity=entity, source=span, owner=out.owner, note=note, **_by_kind(quotas or {}))
    return QuotaGroup(name=name, members=members, limits=limits)


def _owner(node: YamlScalar, out: Collector) -> tuple[str, Span] | None:
    if node.data is None:
        return None
    out.owner = node.text
    return node.text, out.span(node)


def _client_quotas(
    root: YamlMapping,
    out: Collector,
    *,
    name: str | None = None,
    owner: tuple[str, Span] | None = None,
    clusters: ClusterChoice | None = None,
    **declared: Any,
) -> ClientQuotasDocument:
    spec = root.items.get("spec")
    # The schema reports an empty spec.
    if isinstance(spec, YamlMapping) and spec.items and not spec.items.keys() & {"quotas", "groups"}:
        out.add("missing-field", "spec has neither quotas nor groups. Write spec.quotas", spec)
    out.owner = None
    return ClientQuotasDocument(
        file=out.file,
        span=out.span(root),
        name=name,
        owner=owner[0] if owner else None,
        owner_span=owner[1] if owner else None,
        clusters=clusters,
        entries=tuple(declared.get("quotas", ())),
        groups=tuple(declared.get("groups", {}).values()),
    )


CLIENT_QUOTAS: Final = ManifestShape(
    "ClientQuotas",
    "Client quotas of one team or purpose, for all clusters or some.",
    metadata=RecordShape(None, "Words for people. The identity of a quota is its entity.", {
        "name": TextShape("A name for this document."),
        "owner": TextShape("The team that owns these quotas.", parse=_owner),
    }),
    spec=RecordShape(None, "What is declared.", {
        "clusters": ClustersShape(
            "Which clusters these quotas are for: a list of Cluster names, or {labels: {...}}. Left out: every cluster."
        ),
        "groups": TableShape(
            _group,
            "Groups of users and client-ids that share limits, by name. Brokers with the plugin of groups let all members share "
            "one limit. Otherwise each member gets an equal part.",
            RecordShape(None, "The members of a group and their common limits.", {
                "users": ListShape(TEXT, "Names of principals without their type.", min_items=1, parse=_members),
                "client-ids": ListShape(TEXT, "Client-ids, for clients of any user.", min_items=1, parse=_members),
                "match": ChoiceShape(
                    {"exact": False, "prefix": True},
                    "prefix: every name that begins with one of these is a member. Needs the plugin of groups on the brokers. "
                    "Default: exact.",
                ),
                "quotas": _QUOTAS,
                "note": _NOTE,
            }, required=("quotas",)),
            property_names={"minLength": 1},
            examples=[
                {"payments": {"users": ["payments-api", "payments-batch"], "quotas": {"producer_byte_rate": "60MiB"}}}
            ],
        ),
        "quotas": ListShape(_ENTRY, "One entry for each entity.", parse=_entries),
    }, min_properties=1),
    make=_client_quotas,
)  # fmt: skip


MAX_NAME_BYTES: Final = 32767
"""The protocol's limit for one string, in UTF-8."""

_ORDINARY: Final = re.compile(r"[A-Za-z0-9._-]{1,1000}")
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")
_TEMPLATE: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\{\{.*?\}\}|\{%.*?%\}|%\([^)]*\)[sd]|<[A-Za-z][A-Za-z0-9_ .-]*>")


def name_problems(entity_type: str, name: str) -> Iterator[tuple[str, str]]:
    """Pairs of rule id and message for one literal name."""
    if entity_type == EntityType.IP:
        yield from _address_problems(name)
        return
    if _ORDINARY.fullmatch(name):
        return
    if len(name) * 4 > MAX_NAME_BYTES and (size := len(name.encode("utf-8", "surrogatepass"))) > MAX_NAME_BYTES:
        yield "name-too-long", f"this {entity_type} has {size} bytes. Kafka's protocol allows {MAX_NAME_BYTES}"
    if name == "<default>":
        yield (
            "literal-default-name",
            f"this is the literal name '<default>'. For the default {entity_type} write {{default: true}}",
        )
    elif entity_type == EntityType.USER and name.startswith("User:"):
        yield (
            "user-prefix",
            compose(
                "{name}: quotas take the name without its type. Did you mean {bare}?",
                name=shown_part(name),
                bare=shown_part(name[5:]),
            ),
        )
    yield from _oddities(name)


def _oddities(name: str) -> Iterator[tuple[str, str]]:
    """Pairs of rule id and message for what Kafka takes in any name, and is most likely a mistake."""
    if _ENCODED.search(name):
        yield (
            "percent-encoded-name",
            compose("{name} looks percent-encoded. Write the name as the client sends it", name=shown_part(name)),
        )
    if name != name.strip() or not name.isprintable():
        yield (
            "unusual-name",
            compose("{name} has blanks at its ends, control characters or invisible characters", name=shown_part(name)),
        )
    if name != "<default>" and (template := _TEMPLATE.search(name)):
        yield (
            "unrendered-template",
            compose(
                "{template} in {name} is a template that was not filled in. Write the name itself",
                template=shown_part(template[0]),
                name=shown_part(name),
            ),
        )
    if name.endswith("*"):
        yield "wildcard-name", compose("{name}: names are literal, an asterisk matches nothing but itself", name=shown_part(name))


def _address_problems(name: str) -> Iterator[tuple[str, str]]:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        yield _not_an_address(name)
        return
    canonical = str(getattr(address, "ipv4_mapped", None) or address)
    if canonical != name:
        yield (
            "ip-not-canonical",
            compose(
                "{name} is another spelling of {canonical}, which brokers treat as the same address",
                name=shown_part(name),
                canonical=canonical,
            ),
        )


def _not_an_address(name: str) -> tuple[str, str]:
    if "/" in name:
        return "ip-invalid", compose("{name} is a network. Kafka limits single addresses", name=shown_part(name))
    if _HOST_NAME.fullmatch(name) and len(name) <= 253 and name.strip("0123456789."):
        message = compose(
            "{name} is a host name. Each broker resolves it once, for itself. Write the address", name=shown_part(name)
        )
        return "ip-host-name", message
    return "ip-invalid", compose("{name} is not an IPv4 or IPv6 address", name=shown_part(name))


def match_text(entity: Entity) -> str:
    """``{user: alice, client-id: "a b"}``: the ``match`` of an entity, in one line of YAML."""
    parts = (f"{kind}: {'{default: true}' if name is DEFAULT else scalar_text(name)}" for kind, name in entity.parts)
    return f"{{{', '.join(parts)}}}"
