"""Terraform's raw state (``terraform.tfstate``) of version 4, which Terraform since 0.12 and OpenTofu write.

Unlike what ``terraform show -json`` prints, a raw state has the provider of each resource, and so distinguishes clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.importing.import_result import Gatherer
from reconciler.importing.terraform_json import constant_value, items_of, text_of
from reconciler.importing.terraform_resources import Constant, Resource, Value, is_quota
from reconciler.model import compose
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlSequence

_VERSION: Final = "4"
_PRINT: Final = "'terraform show -json FILE > state.json', and import state.json"
_ALIAS: Final = re.compile(r'provider\["(?:[^"\\]|\\.)*"\]\.(?P<alias>[A-Za-z0-9_-]+)\Z')


def is_raw_state(root: YamlMapping) -> bool:
    """True for a state as Terraform stores it, of any version, also for one that OpenTofu encrypted."""
    stored = {"serial", "lineage"} <= root.items.keys() or "encrypted_data" in root.items
    return stored or isinstance(root.items.get("resources"), YamlSequence)


def read_raw_state(root: YamlMapping, out: Gatherer) -> Iterator[Resource]:
    """The managed resources, one for each instance. An instance that waits for its deletion is left out, and mentioned."""
    version = text_of(root, "version")
    if "encrypted_data" in root.items:
        message = "this state is encrypted. Print it with 'tofu show -json > state.json', and import state.json"
        out.refuse("import-unsupported", message, root)
    elif version != _VERSION:
        message = compose(
            "this is a raw state of version {version}, and only version {known} is read. Print it with {how}",
            version=shown_part(version or ""),
            known=_VERSION,
            how=_PRINT,
        )
        out.refuse("import-unsupported", message, root.items.get("version", root))
    else:
        for node in items_of(root.items.get("resources")):
            yield from _instances(node, out)


def _instances(node: YamlNode, out: Gatherer) -> Iterator[Resource]:
    kind, name = text_of(node, "type"), text_of(node, "name")
    if not isinstance(node, YamlMapping) or not kind or not name or text_of(node, "mode") != "managed":
        return
    module = text_of(node, "module")
    address = f"{module}.{kind}.{name}" if module else f"{kind}.{name}"
    for instance in items_of(node.items.get("instances")):
        if isinstance(instance, YamlMapping):
            resource = _instance(node, instance, kind=kind, address=address, out=out)
            if "deposed" not in instance.items:
                yield resource
            elif is_quota(resource):
                message = compose("{address} is left out: Terraform will delete this instance", address=resource.address)
                out.refuse("import-left-out", message, resource.span)


def _instance(node: YamlMapping, instance: YamlMapping, *, kind: str, address: str, out: Gatherer) -> Resource:
    attributes = instance.items.get("attributes")
    body: dict[str, Value] = {}
    if isinstance(attributes, YamlMapping):
        body = {name: constant_value(value, out) for name, value in attributes.items.items()}
    alias = _ALIAS.search(text_of(node, "provider") or "")
    if alias:
        body["provider"] = Constant(value=alias["alias"], span=out.span(node))
    index = instance.items.get("index_key")
    key = getattr(index, "data", None)
    suffix = "" if index is None else f'["{key}"]' if isinstance(key, str) else f"[{key}]"
    place = attributes if isinstance(attributes, YamlMapping) else instance
    return Resource(type=kind, address=address + suffix, span=out.span(place), body=body)
