"""Terraform: ``.tf`` files, ``.tf.json`` files, raw states, and what ``terraform show -json`` prints of a state or a plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.importing.hcl import read_hcl
from reconciler.importing.import_result import Gatherer, ImportResult
from reconciler.importing.terraform_json import constant_value, items_of, text_of
from reconciler.importing.terraform_resources import (
    Constant,
    Expression,
    ListValue,
    MapValue,
    Resource,
    Value,
    is_quota,
    read_resource,
)
from reconciler.importing.terraform_state import is_raw_state, read_raw_state
from reconciler.text import list_some, shown
from reconciler.yaml import YamlMapping, YamlNode, YamlSequence, read_yaml

_JSON: Final = (".json", ".tfstate", ".tfstate.backup")
_TEMPLATE: Final = re.compile(r"[$%]\{")
_ESCAPED: Final = re.compile(r"([$%])\1\{")
_MOST_SHOWN: Final = 5


def read_terraform(content: bytes, file: str) -> ImportResult:
    """The quotas of one file. Raises ``MissingDependencyError`` when a ``.tf`` file needs python-hcl2 and it is not there."""
    out = Gatherer(file)
    resources, named = _json(content, out) if file.endswith(_JSON) else (_hcl(content, out), True)
    quotas = [resource for resource in resources if is_quota(resource)]
    several = len({_provider(quota) for quota in quotas}) > 1
    for resource in resources:
        cluster = _cluster(resource, several=several and named) if is_quota(resource) else None
        read_resource(resource, out, cluster=cluster)
    return out.found()


def _hcl(content: bytes, out: Gatherer) -> list[Resource]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        out.refuse("invalid-utf8", "this line is not UTF-8. Save the file as UTF-8", out.at(line))
        return []
    return read_hcl(text, out)


def _provider(resource: Resource) -> str:
    """What distinguishes the clusters of one configuration, as it is written: the provider, or the service."""
    parts = [resource.body.get(name) for name in ("provider", "project", "service_name", "region", "instance_id")]
    return " ".join(_source(part) for part in parts if part is not None)


def _source(value: Value) -> str:
    return value.text if isinstance(value, Expression) else str(value.value) if isinstance(value, Constant) else ""


def _cluster(resource: Resource, *, several: bool) -> str | None:
    """The name of the cluster: the provider's alias, or a service's literal name; ``None`` when there is only one, unnamed."""
    provider = resource.body.get("provider")
    if isinstance(provider, Expression | Constant):
        return _source(provider).rpartition(".")[2]
    for name in ("service_name", "instance_id"):
        service = resource.body.get(name)
        if isinstance(service, Constant) and isinstance(service.value, str):
            return service.value
        if service is not None and several:
            return _source(service)
    return resource.type.partition("_")[0] if several else None


def _json(content: bytes, out: Gatherer) -> tuple[list[Resource], bool]:
    """The resources, and whether they state which provider they belong to."""
    stream = read_yaml(content)  # every JSON that Terraform writes is YAML, and this reader has the places
    if out.problems(stream.problems) or not stream.documents:
        return [], False
    root = stream.documents[0]
    if not isinstance(root, YamlMapping):
        out.refuse("import-syntax", "this JSON is neither Terraform's configuration nor what terraform show -json prints", root)
        return [], False
    if is_raw_state(root):
        return list(read_raw_state(root, out)), True
    return _shown_or_written(root, out)


def _shown_or_written(root: YamlMapping, out: Gatherer) -> tuple[list[Resource], bool]:
    values = root.items.get("planned_values") or root.items.get("values")
    refusal = _refusal(root, has_values=values is not None)
    if refusal is not None:
        out.refuse(*refusal, root)
        return [], False
    if isinstance(values, YamlMapping):
        if _one_kafka_provider(root, out):
            return list(_module_resources(values.items.get("root_module"), out)), False
        return [], False
    return list(_file_resources(root.items.get("resource"), out)), True


def _refusal(root: YamlMapping, *, has_values: bool) -> tuple[str, str] | None:
    """Rule id and message for what looks like Terraform's and has no resources that can be read."""
    if not has_values and "resource" not in root.items and "format_version" in root.items:
        message = "this state or plan has no resources. Is it what terraform show -json prints, of the right folder?"
        return "import-nothing-found", message
    return None


def _one_kafka_provider(root: YamlMapping, out: Gatherer) -> bool:
    """A plan lists the providers, though not which one a resource has; two of one kind are two clusters."""
    configuration = root.items.get("configuration")
    providers = configuration.items.get("provider_config") if isinstance(configuration, YamlMapping) else None
    names = list(providers.items) if isinstance(providers, YamlMapping) else []
    kafka = [name for name in names if name.rpartition(":")[2].partition(".")[0] == "kafka"]
    if len(kafka) < 2:
        return True
    message = (
        f"this plan has the Kafka providers {list_some([shown(name) for name in kafka], _MOST_SHOWN)}, "
        "and does not name the one of each resource. Import the .tf files, or plan one cluster at a time (-target)"
    )
    out.refuse("import-ambiguous", message, root)
    return False


def _module_resources(module: YamlNode | None, out: Gatherer) -> Iterator[Resource]:
    """The managed resources of a module and of the modules in it."""
    if not isinstance(module, YamlMapping):
        return
    for node in items_of(module.items.get("resources")):
        kind, address = (text_of(node, name) for name in ("type", "address"))
        values = node.items.get("values") if isinstance(node, YamlMapping) else None
        if kind and address and isinstance(values, YamlMapping) and text_of(node, "mode") == "managed":
            body = {name: constant_value(value, out) for name, value in values.items.items()}
            yield Resource(type=kind, address=address, span=out.span(values), body=body)
    for child in items_of(module.items.get("child_modules")):
        yield from _module_resources(child, out)


def _file_resources(node: YamlNode | None, out: Gatherer) -> Iterator[Resource]:
    """The resources of a ``.tf.json`` file: types, then names, then bodies; a list stands for several."""
    for kind, by_name in _pairs(node):
        for name, bodies in _pairs(by_name):
            for body in bodies.items if isinstance(bodies, YamlSequence) else [bodies]:
                if isinstance(body, YamlMapping):
                    values = {name: _template_value(value, out) for name, value in body.items.items() if name != "//"}
                    yield Resource(type=kind, address=f"{kind}.{name}", span=out.span(body), body=values)


def _pairs(node: YamlNode | None) -> Iterator[tuple[str, YamlNode]]:
    for mapping in items_of(node) if isinstance(node, YamlSequence) else [node]:
        if isinstance(mapping, YamlMapping):
            yield from mapping.items.items()


def _template_value(node: YamlNode, out: Gatherer) -> Value:
    """In ``.tf.json`` every text is a template."""
    value = constant_value(node, out)
    if isinstance(node, YamlMapping):
        return MapValue(items={name: _template_value(item, out) for name, item in node.items.items()}, span=value.span)
    if isinstance(node, YamlSequence):
        return ListValue(items=tuple(_template_value(item, out) for item in node.items), span=value.span)
    if isinstance(value, Constant) and isinstance(value.value, str):
        if _TEMPLATE.search(_ESCAPED.sub("", value.value)):
            return Expression(text=value.value, span=value.span)
        return Constant(value=_ESCAPED.sub(r"\1{", value.value), span=value.span)
    return value
