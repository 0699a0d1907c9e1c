"""kafka-helmsman's quota enforcer: its configuration, or the list of quotas alone, as its README describes them.

Which values apply, the strongest first: the quota's ``clusters.NAME``, the quota, ``defaults.clusters.NAME``, ``defaults``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from reconciler.importing.import_result import Gatherer, ImportResult, read_value
from reconciler.model import DEFAULT, Entity, EntityName, Span, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

_KEYS: Final = {
    "producer-byte-rate": "producer_byte_rate",
    "consumer-byte-rate": "consumer_byte_rate",
    "request-percentage": "request_percentage",
}
_NAMES: Final = {"principal": "user", "client": "client-id"}
_DEFAULT: Final = "<default>"
_FIELDS: Final = (*_NAMES, *_KEYS, "clusters")

Values: TypeAlias = dict[str, tuple[str, Span]]
"""A quota's keys (in Kafka's spelling) as written, each with its place."""


def read_helmsman(content: bytes, file: str, other: Callable[[str], tuple[str, bytes] | None]) -> ImportResult:
    """The quotas of one configuration or list. ``other`` gives the file that ``quotasFile`` names, or ``None``."""
    out = Gatherer(file)
    root = _root(content, out)
    if isinstance(root, YamlSequence):
        _Quotas(out, Gatherer(file), None).read(root)
    elif isinstance(root, YamlMapping):
        return _configuration(root, out, other)
    elif root is not None:
        out.refuse("import-syntax", "this is neither a configuration of helmsman's quota enforcer nor a list of quotas", root)
    return out.found()


def _root(content: bytes, out: Gatherer) -> YamlNode | None:
    stream = read_yaml(content)
    if out.problems(stream.problems) or not stream.documents:
        return None
    if len(stream.documents) > 1:
        out.refuse("import-syntax", "helmsman reads one YAML document a file, and here is another", stream.documents[1])
        return None
    return stream.documents[0]


def _configuration(root: YamlMapping, out: Gatherer, other: Callable[[str], tuple[str, bytes] | None]) -> ImportResult:
    quotas, named, defaults = root.items.get("quotas"), root.items.get("quotasFile"), root.items.get("defaults")
    if defaults is not None and not isinstance(defaults, YamlMapping):
        out.refuse("import-syntax", "the defaults are a mapping", defaults)
        return out.found()
    listed, place = out, out
    if quotas is None and isinstance(named, YamlScalar):
        opened = other(named.text)
        if opened is None:
            message = compose(
                "the quotasFile {named} is neither there nor beside this file. Import where helmsman runs",
                named=shown_part(named.text),
            )
            out.refuse("import-nothing-found", message, named)
            return out.found()
        listed = Gatherer(opened[0])
        quotas = _root(opened[1], listed)
    if isinstance(quotas, YamlSequence):
        _Quotas(listed, place, defaults).read(quotas)
    elif quotas is not None:
        listed.refuse("import-syntax", "the quotas are a list", quotas)
    if listed is out:
        return out.found()
    return ImportResult(quotas=tuple(listed.quotas), findings=(*out.findings, *listed.findings))


class _Quotas:
    """One list of quotas, with the defaults of the configuration that names it (its own file: ``config``)."""

    def __init__(self, out: Gatherer, config: Gatherer, defaults: YamlMapping | None) -> None:
        self.out = out
        self.config = config
        self.defaults = defaults

    def read(self, quotas: YamlSequence) -> None:
        of_clusters = [item for item in quotas.items if isinstance(item, YamlMapping) and "clusters" in item.items]
        base = self.values(self.defaults, self.config, entity=None)
        by_cluster = self.default_clusters()
        if base is None or by_cluster is None:
            return
        if by_cluster and not of_clusters:
            message = "the file has defaults for clusters, and no quota names a cluster. Remove the defaults, or name the cluster"
            self.config.refuse("import-ambiguous", message, _node(self.defaults, "clusters"))
            return
        for item in quotas.items:
            self.quota(item, base, by_cluster, several=bool(of_clusters))

    def default_clusters(self) -> dict[str, Values] | None:
        node = self.defaults.items.get("clusters") if self.defaults else None
        return self.clusters(node, self.config)

    def clusters(self, node: YamlNode | None, out: Gatherer) -> dict[str, Values] | None:
        if node is None:
            return {}
        if not isinstance(node, YamlMapping):
            out.refuse("import-syntax", "clusters is a mapping of names to values, {} for none of their own", node)
            return None
        clusters: dict[str, Values] = {}
        for name, overlay in node.items.items():
            if not isinstance(overlay, YamlMapping):
                out.refuse(
                    "import-syntax",
                    compose("the values for cluster {name} are a mapping, {{}} for none", name=shown_part(name)),
                    overlay,
                )
                return None
            values = self.values(overlay, out, entity=None)
            if values is None:
                return None
            clusters[name] = values
        return clusters

    def values(self, node: YamlMapping | None, out: Gatherer, *, entity: Entity | None) -> Values | None:
        """The keys of a mapping; ``None`` after a finding. Only a quota itself may have names in it."""
        quotas: Values = {}
        if node is None:
            return quotas
        before = len(out.findings)
        for name, value in node.items.items():
            if name in _KEYS:
                quotas.update(self.value(_KEYS[name], value, out))
            elif name in _NAMES and entity is None:
                out.refuse("import-unsupported", f"{name} cannot be set here. Give such an entity a quota of its own", value)
            elif name not in _FIELDS:
                out.refuse(
                    "import-unsupported",
                    compose(
                        "helmsman has no field {name}{hint}",
                        name=shown_part(name),
                        hint=did_you_mean(name, _KEYS),
                    ),
                    value,
                )
        return quotas if len(out.findings) == before else None

    def value(self, key: str, node: YamlNode, out: Gatherer) -> Values:
        text = node.text if isinstance(node, YamlScalar) else ""
        if isinstance(node, YamlScalar) and node.data is None:
            return {}
        return {key: (text, out.span(node))}

    def quota(self, item: YamlNode, base: Values, by_cluster: Mapping[str, Values], *, several: bool) -> None:
        if not isinstance(item, YamlMapping):
            self.out.refuse("import-syntax", "a quota is a mapping", item)
            return
        entity = self.entity(item)
        if entity is None:
            return
        own = self.values(item, self.out, entity=entity)
        overlays = self.clusters(item.items.get("clusters"), self.out)
        if own is None or overlays is None:
            return
        if several and not overlays:
            message = "this quota names no cluster while others do, so helmsman applies it to none with --cluster. Add clusters"
            self.out.refuse("import-ambiguous", message, item, entity=entity)
        elif not several:
            self.emit(entity, {**base, **own}, item, None)
        for name, overlay in overlays.items():
            self.emit(entity, {**base, **by_cluster.get(name, {}), **own, **overlay}, item, name)

    def entity(self, item: YamlMapping) -> Entity | None:
        names: dict[str, EntityName] = {}
        for field, entity_type in _NAMES.items():
            node = item.items.get(field)
            if node is None or (isinstance(node, YamlScalar) and node.data is None):
                continue
            if not isinstance(node, YamlScalar) or not node.text:
                self.out.refuse("import-ambiguous", f"the {field} has no name. For the default write {_DEFAULT}", node)
                return None
            names[entity_type] = DEFAULT if node.text == _DEFAULT else node.text
        if not names:
            self.out.refuse("import-syntax", "a quota has a principal, a client, or both", item)
            return None
        return Entity.of(names)

    def emit(self, entity: Entity, values: Values, place: YamlNode, cluster: str | None) -> None:
        quotas: dict[str, float] = {}
        for key, (text, span) in values.items():
            number = read_value(self.out, entity, key, text, span)
            if number is None:
                return
            quotas[key] = number
        self.out.add(entity, quotas, place, cluster=cluster)


def _node(mapping: YamlMapping | None, key: str) -> YamlNode:
    assert mapping is not None
    return mapping.items[key]
