"""Fields that several kinds of manifests have: selectors, and the choice of clusters and of a profile."""

from __future__ import annotations

from typing import Any, Final

from reconciler.errors import MissingDependencyError
from reconciler.formats import TEXT, Fields, Shape, flag, labels, listing, text
from reconciler.manifest.collector import Collector
from reconciler.manifest.documents import ClusterChoice
from reconciler.model import (
    MAX_REGEXES,
    EntityType,
    MatchKind,
    PatternError,
    ProfileChoice,
    Selector,
    TypeMatch,
    compile_regex,
    compose,
)
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence


def _words(about: str) -> dict[str, Any]:
    return {"const": True, "description": about}


_MATCHES: Final = {
    MatchKind.DEFAULT: _words("The default entity of this type."),
    MatchKind.NAMED: _words("Every entity with a name."),
    MatchKind.ANY: _words("Named or default."),
    MatchKind.PREFIX: text("Names that start with this."),
    MatchKind.GLOB: text("Names that match this pattern of * and ?."),
    MatchKind.REGEX: text("Names that match this regular expression from end to end. No back-references, look-around or flags."),
}
_KINDS: Final = {kind.value: kind for kind in _MATCHES}


def _match(node: YamlScalar | YamlMapping, out: Collector) -> TypeMatch | None:
    if isinstance(node, YamlScalar):
        return TypeMatch(kind=MatchKind.NAME, text=node.text) if node.data is not None else None
    (word, value), *others = node.items.items() or [("", node)]
    kind = _KINDS.get(word)
    if others or kind is None or not isinstance(value, YamlScalar):
        return None
    if kind in (MatchKind.DEFAULT, MatchKind.NAMED, MatchKind.ANY):
        return TypeMatch(kind=kind)
    if kind is MatchKind.REGEX and (problem := _regex_problem(value.text, out)):
        message = compose(
            "{value} cannot be used as a regular expression: {problem}", value=shown_part(value.text), problem=problem
        )
        out.add("invalid-selector", message, value)
        return None
    return TypeMatch(kind=kind, text=value.text)


def _regex_problem(expression: str, out: Collector) -> str | None:
    out.regexes.add(expression)
    if len(out.regexes) > MAX_REGEXES:
        return f"the file has more than {MAX_REGEXES} different expressions. Write a prefix or a glob"
    try:
        compile_regex(expression)
    except (PatternError, MissingDependencyError) as error:
        return str(error)
    return None


_MATCHER: Final = Shape(
    name="matcher",
    schema={
        "description": "A literal name, or exactly one of default, named, any, prefix, glob, regex.",
        "type": ("string", "number", "boolean", "object"),
        "minLength": 1,
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": _MATCHES,
    },
    nodes=(YamlScalar, YamlMapping),
    read=_match,
)
_SELECTOR: Final = Fields("Entities that have all listed types and match them. Types not listed may be present unless strict.", {
    **{entity_type.value: _MATCHER for entity_type in EntityType},
    "strict": flag("True: no other type may be present."),
}, attributes={entity_type.value: entity_type.value for entity_type in EntityType}, minProperties=1)  # fmt: skip


def _selector(node: YamlMapping, out: Collector) -> Selector | None:
    values = _SELECTOR.read(node, out)
    if not values or len(values) < len(node.items):
        # Without one of its types it would select more than was written.
        return None
    strict = values.pop("strict", False)
    return Selector(types=tuple(values.items()), strict=strict) if values else None


SELECTOR: Final = Shape(
    name="selector",
    schema=_SELECTOR.schema,
    nodes=(YamlMapping,),
    read=_selector,
)


def selectors(about: str, **keywords: Any) -> Shape:
    """A list of selectors."""
    return listing(SELECTOR, about, **keywords)


def clusters(about: str) -> Shape:
    """Which clusters: names, or labels."""
    examples = [["prod-eu"], {"labels": {"tier": "gold"}}]
    return Shape(schema=names_or_labels(about, "a cluster", examples), nodes=(YamlSequence, YamlMapping), read=cluster_choice)


def names_or_labels(about: str, what: str, examples: list[Any]) -> dict[str, Any]:
    """The schema of a list of names, or of ``{labels: {...}}``."""
    return {
        "description": about,
        "type": ("array", "object"),
        "items": TEXT,
        "minItems": 1,
        "properties": {"labels": labels(f"Labels that {what} must all have.", minProperties=1)},
        "required": ("labels",),
        "additionalProperties": False,
        "examples": examples,
    }


def cluster_choice(node: YamlNode, out: Collector) -> ClusterChoice | None:
    """``clusters:`` of a document, an override or a rule."""
    if isinstance(node, YamlSequence):
        names = tuple((item.text, out.span(item)) for item in node.items if isinstance(item, YamlScalar))
        return ClusterChoice(names=names, span=out.span(node))
    wanted = node.items.get("labels") if isinstance(node, YamlMapping) else None
    if not isinstance(wanted, YamlMapping):
        return None
    texts = {label: value.text for label, value in wanted.items.items() if isinstance(value, YamlScalar)}
    return ClusterChoice(labels=texts, span=out.span(node))


def profile(about: str, **keywords: Any) -> Shape:
    """The name of a profile, with its place."""
    named = text(about, **keywords)
    return Shape(
        schema=named.schema,
        nodes=named.nodes,
        read=lambda node, out: None if node.data is None else ProfileChoice(name=node.text, source=out.span(node)),
    )
