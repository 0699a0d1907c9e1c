"""Terraform's raw state (``terraform.tfstate``) of version 4, which Terraform since 0.12 and OpenTofu write.

Unlike what ``terraform show -json`` prints, a raw state has the provider of each resource, and so distinguishes clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.features.importing.import_result import Gatherer
from reconciler.features.importing.terraform_resources import TerraformResource, is_quota_type
from reconciler.features.importing.yaml_fields import field_mapping, field_text, is_null, items_of, refuse_unknown
from reconciler.model import compose, escaped
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlSequence

_VERSION: Final = "4"
_PRINT: Final = "'terraform show -json FILE > state.json', and import state.json"
_ALIAS: Final = re.compile(r'provider\["(?:[^"\\]|\\.)*"\]\.(?P<alias>[A-Za-z0-9_-]+)\Z')
_FIELDS: Final = ("version", "terraform_version", "serial", "lineage", "outputs", "resources", "check_results")
_RESOURCE_FIELDS: Final = ("module", "mode", "type", "name", "each", "provider", "instances")
_INSTANCE_FIELDS: Final = (
    "attributes", "create_before_destroy", "dependencies", "deposed", "identity", "identity_schema_version", "index_key",
    "private", "schema_version", "sensitive_attributes", "status",
)  # fmt: skip


def is_raw_state(root: YamlMapping) -> bool:
    """True for a state as Terraform stores it, of any version, also for one that OpenTofu encrypted."""
    stored = {"serial", "lineage"} <= root.items.keys() or "encrypted_data" in root.items
    return stored or isinstance(root.items.get("resources"), YamlSequence)


def read_raw_state(root: YamlMapping, out: Gatherer) -> Iterator[TerraformResource]:
    """The resources, one for each instance."""
    version = field_text(root.items.get("version"))
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
    elif not refuse_unknown(root, _FIELDS, out, what="a raw state"):
        for node in items_of(root, "resources", out):
            yield from _instances(node, out)


def _instances(node: YamlNode, out: Gatherer) -> Iterator[TerraformResource]:
    fields = field_mapping(node)
    kind, name, mode, module = (field_text(fields.get(field)) for field in ("type", "name", "mode", "module"))
    if not isinstance(node, YamlMapping) or not kind or not name or not mode:
        out.refuse("import-syntax", "a resource of a raw state has a type, a name and a mode", node)
        return
    if is_quota_type(kind) and refuse_unknown(node, _RESOURCE_FIELDS, out, what="a resource of a raw state"):
        return
    alias = _ALIAS.search(field_text(fields.get("provider")) or "")
    address = f"{module}.{kind}.{name}" if module else f"{kind}.{name}"
    for instance in items_of(node, "instances", out):
        attributes = field_mapping(instance).get("attributes")
        if not isinstance(instance, YamlMapping) or not isinstance(attributes, YamlMapping):
            message = compose("an instance of {address} has no mapping as its attributes", address=escaped(address))
            out.refuse("import-syntax", message, instance)
        elif not (is_quota_type(kind) and refuse_unknown(instance, _INSTANCE_FIELDS, out, what="an instance of a raw state")):
            yield TerraformResource(
                type=kind,
                address=escaped(address + _index(instance.items.get("index_key"))),
                mode=mode,
                body=attributes,
                alias=alias["alias"] if alias else None,
                deposed=not is_null(instance.items.get("deposed")),
                secret=_secret(instance.items.get("sensitive_attributes")),
            )


def _index(node: YamlNode | None) -> str:
    key = getattr(node, "data", None)
    return "" if key is None else f'["{key}"]' if isinstance(key, str) else f"[{key}]"


def _secret(node: YamlNode | None) -> YamlNode | None:
    """The list of sensitive attributes, unless it is empty."""
    return None if node is None or is_null(node) or (isinstance(node, YamlSequence) and not node.items) else node
