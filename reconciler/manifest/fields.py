"""Fields that several kinds of manifests have: selectors, and the choice of clusters and of a profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.formats import TEXT, FlagShape, FreeShape, LabelsShape, RecordShape, Shape, TextShape
from reconciler.manifest.documents import ClusterChoice
from reconciler.manifest.reading import Collector
from reconciler.model import EntityType, MatchKind, ProfileChoice, Selector, TypeMatch
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence

_MATCHES: Final = {
    MatchKind.DEFAULT: {"const": True, "description": "The default entity of this type."},
    MatchKind.NAMED: {"const": True, "description": "Every entity with a name."},
    MatchKind.ANY: {"const": True, "description": "Named or default."},
    MatchKind.PREFIX: TextShape("Names that start with this."),
    MatchKind.GLOB: TextShape("Names that match this pattern of * and ?."),
}
_KINDS: Final = {kind.value: kind for kind in _MATCHES}


def _match(node: YamlScalar | YamlMapping, _: Collector) -> TypeMatch | None:
    if isinstance(node, YamlScalar):
        return TypeMatch(kind=MatchKind.NAME, text=node.text) if node.data is not None else None
    (word, value), *others = node.items.items() or [("", node)]
    kind = _KINDS.get(word)
    if others or kind is None or not isinstance(value, YamlScalar):
        return None
    if kind in (MatchKind.DEFAULT, MatchKind.NAMED, MatchKind.ANY):
        return TypeMatch(kind=kind)
    return TypeMatch(kind=kind, text=value.text)


_MATCHER: Final = FreeShape(
    "A literal name, or exactly one of default, named, any, prefix, glob.",
    {
        "type": ("string", "number", "boolean", "object"),
        "minLength": 1,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": _MATCHES,
    },
    name="matcher",
    nodes=(YamlScalar, YamlMapping),
    parse=_match,
)


def _selector(node: YamlMapping, out: Collector) -> Selector | None:
    values = SELECTOR.values(node, out)
    if not values or len(values) < len(node.items):
        # Without one of its types it would select more than was written.
        return None
    strict = values.pop("strict", False)
    return Selector(types=tuple(values.items()), strict=strict) if values else None


SELECTOR: Final = RecordShape(
    None,
    "Entities that have all listed types and match them. Types not listed may be present unless strict.",
    {**{entity_type.value: _MATCHER for entity_type in EntityType}, "strict": FlagShape("True: no other type may be present.")},
    attributes={entity_type.value: entity_type.value for entity_type in EntityType},
    min_properties=1,
    name="selector",
    parse=_selector,
)


def profile_choice(node: YamlScalar, out: Collector) -> ProfileChoice:
    """The name of a profile, with its place."""
    return ProfileChoice(name=node.text, source=out.span(node))


@dataclass(frozen=True)
class ClustersShape(Shape):
    """Which clusters: names, or labels."""

    nodes: tuple[type[YamlNode], ...] = field(default=(YamlSequence, YamlMapping), kw_only=True)
    about: str

    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""
        return {
            "description": self.about,
            "type": ("array", "object"),
            "items": TEXT,
            "minItems": 1,
            "properties": {"labels": LabelsShape("Labels that a cluster must all have.", min_properties=1)},
            "required": ("labels",),
            "additionalProperties": False,
            "examples": [["prod-eu"], {"labels": {"tier": "gold"}}],
        }

    def read(self, node: Any, out: Collector, /) -> Any:
        """Return the choice of clusters."""
        if isinstance(node, YamlSequence):
            names = tuple((item.text, out.span(item)) for item in node.items if isinstance(item, YamlScalar))
            return ClusterChoice(names=names, span=out.span(node))
        wanted = node.items.get("labels")
        if not isinstance(wanted, YamlMapping):
            return None
        texts = {label: value.text for label, value in wanted.items.items() if isinstance(value, YamlScalar)}
        return ClusterChoice(labels=texts, span=out.span(node))
