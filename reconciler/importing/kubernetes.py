"""Resources of Kubernetes, as files in git have them and as kubectl prints them: streams, and lists of one kind or of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reconciler.importing.import_result import Gatherer
from reconciler.importing.yaml_fields import field_mapping, field_text, refuse_templates
from reconciler.model import compose
from reconciler.yaml import YamlMapping, YamlNode, YamlSequence, read_yaml

_HELM: Final = "this is a template. Let Helm render it (helm template), or print the resources with kubectl get -o yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesResource:
    """One resource; ``spec`` as it is written, to be checked by the reader of the kind."""

    api: str
    kind: str
    name: str | None
    namespace: str | None
    labels: Mapping[str, YamlNode]
    spec: YamlNode | None
    node: YamlMapping


def read_resources(content: bytes, out: Gatherer) -> Iterator[KubernetesResource]:
    """The resources of a file in their order, also those inside lists. A template or broken YAML leaves findings only."""
    if refuse_templates(content, out, _HELM):
        return
    stream = read_yaml(content)
    if out.problems(stream.problems):
        return
    for document in stream.documents:
        # An empty document between two separators is common and declares nothing.
        if isinstance(document, YamlMapping) or field_text(document) is not None or isinstance(document, YamlSequence):
            yield from _resources(document, out)


def _resources(node: YamlNode, out: Gatherer) -> Iterator[KubernetesResource]:
    fields = field_mapping(node)
    api, kind = field_text(fields.get("apiVersion")), field_text(fields.get("kind"))
    if not isinstance(node, YamlMapping) or api is None or kind is None:
        out.refuse("import-syntax", "this document is not a resource of Kubernetes: apiVersion or kind is missing", node)
        return
    items = fields.get("items")
    if kind.endswith("List") and "spec" not in fields:
        if not isinstance(items, YamlSequence):
            out.refuse("import-syntax", compose("a {kind} has a list of items", kind=kind), items or node)
            return
        for item in items.items:
            # kubectl leaves apiVersion and kind out of the items of a typed list.
            yield from _listed(item, api, kind.removesuffix("List"), out)
        return
    yield _resource(node, api, kind)


def _listed(item: YamlNode, api: str, kind: str, out: Gatherer) -> Iterator[KubernetesResource]:
    if isinstance(item, YamlMapping) and kind and not item.items.keys() & {"apiVersion", "kind"}:
        yield _resource(item, api, kind)
    else:
        yield from _resources(item, out)


def _resource(node: YamlMapping, api: str, kind: str) -> KubernetesResource:
    metadata = field_mapping(node.items.get("metadata"))
    return KubernetesResource(
        api=api,
        kind=kind,
        name=field_text(metadata.get("name")),
        namespace=field_text(metadata.get("namespace")),
        labels=field_mapping(metadata.get("labels")),
        spec=node.items.get("spec"),
        node=node,
    )
