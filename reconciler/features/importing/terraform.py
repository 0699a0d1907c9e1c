"""What Terraform and OpenTofu write as JSON: raw states, and what ``terraform show -json`` prints of a state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.features.importing.import_result import Gatherer, ImportResult
from reconciler.features.importing.resources import LeftOut
from reconciler.features.importing.terraform_resources import TerraformResource, cluster_names, is_quota_type, read_resource
from reconciler.features.importing.terraform_state import is_raw_state, read_raw_state
from reconciler.features.importing.yaml_fields import field_mapping, field_text, is_null, items_of, refuse_unknown
from reconciler.model import compose, escaped
from reconciler.text import shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

_CONFIGURATION_FILES: Final = (".tf", ".tf.json", ".tofu", ".tofu.json", ".tfvars", ".hcl")
_CONFIGURATION_FIELDS: Final = frozenset({"resource", "data", "module", "provider", "variable", "locals", "terraform", "output"})
_EVALUATE: Final = (
    "this is Terraform's configuration, which only Terraform can evaluate. Import the state: what 'terraform state pull' or "
    "'terraform show -json' prints"
)
_PLAN_FIELDS: Final = frozenset({"planned_values", "resource_changes", "prior_state"})
_PLAN: Final = (
    "this is a plan: Terraform may change it before it applies it, or never apply it. Import the state, which "
    "'terraform show -json' prints without the name of a plan"
)
_EMPTY: Final = "this state has no resources. Is it what 'terraform show -json' prints, of the right folder?"
_PRINTED_FIELDS: Final = ("format_version", "terraform_version", "values", "checks", "timestamp")
_MODULE_FIELDS: Final = ("address", "resources", "child_modules")
_RESOURCE_FIELDS: Final = (
    "address", "mode", "type", "name", "index", "provider_name", "schema_version", "values", "sensitive_values", "identity",
    "identity_schema_version", "depends_on", "tainted", "deposed_key",
)  # fmt: skip
_FORMATS: Final = re.compile(r"[01]\.[0-9]+")


def read_terraform(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; other resources are mentioned. Never raises."""
    out = Gatherer(file)
    if file.endswith(_CONFIGURATION_FILES):
        out.refuse("import-template", _EVALUATE, out.at(1))
        return out.found()
    left_out = LeftOut(out)
    resources = list(_file_resources(content, out))
    clusters = cluster_names(resources)
    for resource in resources:
        read_resource(resource, left_out, out, cluster=clusters[resource])
    left_out.mention()
    return out.found()


def _file_resources(content: bytes, out: Gatherer) -> Iterator[TerraformResource]:
    stream = read_yaml(content)  # every JSON that Terraform writes is YAML, and this reader has the places
    if out.problems(stream.problems) or not stream.documents:
        return
    root, *more = stream.documents
    if more:
        out.refuse("import-syntax", "a state is one JSON document, and here begins another one", more[0])
    elif not isinstance(root, YamlMapping):
        out.refuse(
            "import-syntax", "this is not JSON of Terraform: neither a raw state nor what 'terraform show -json' prints", root
        )
    elif is_raw_state(root):
        yield from read_raw_state(root, out)
    elif root.items.keys() & _PLAN_FIELDS:
        out.refuse("import-unsupported", _PLAN, root)
    elif "format_version" in root.items:
        yield from _printed_state(root, out)
    elif root.items.keys() & _CONFIGURATION_FIELDS:
        out.refuse("import-template", _EVALUATE, root)
    else:
        out.refuse(
            "import-syntax", "this is not JSON of Terraform: neither a raw state nor what 'terraform show -json' prints", root
        )


def _printed_state(root: YamlMapping, out: Gatherer) -> Iterator[TerraformResource]:
    version, values = root.items["format_version"], root.items.get("values")
    if not _FORMATS.fullmatch(field_text(version) or ""):
        message = compose(
            "the format_version is {version}, and 0.x and 1.x are read", version=shown_part(field_text(version) or "")
        )
        out.refuse("import-unsupported", message, version)
    elif refuse_unknown(root, _PRINTED_FIELDS, out, what="a printed state"):
        return
    elif values is None or is_null(values):
        out.refuse("import-nothing-found", _EMPTY, root)
    elif not isinstance(values, YamlMapping):
        out.refuse("import-syntax", "the values of a printed state are a mapping", values)
    elif not refuse_unknown(values, ("outputs", "root_module"), out, what="the values of a printed state"):
        yield from _module(values.items.get("root_module"), out)


def _module(node: YamlNode | None, out: Gatherer) -> Iterator[TerraformResource]:
    """The resources of a module and of the modules in it."""
    if node is None or is_null(node):
        return
    if not isinstance(node, YamlMapping):
        out.refuse("import-syntax", "a module is a mapping with resources and child_modules", node)
        return
    if refuse_unknown(node, _MODULE_FIELDS, out, what="a module"):
        return
    for item in items_of(node, "resources", out):
        yield from _resource(item, out)
    for child in items_of(node, "child_modules", out):
        yield from _module(child, out)


def _resource(node: YamlNode, out: Gatherer) -> Iterator[TerraformResource]:
    fields = field_mapping(node)
    kind, address, mode = (field_text(fields.get(name)) for name in ("type", "address", "mode"))
    values = fields.get("values")
    if not isinstance(node, YamlMapping) or not kind or not address or not mode or not isinstance(values, YamlMapping):
        out.refuse(
            "import-syntax", "a resource of a printed state has a type, an address, a mode, and a mapping as its values", node
        )
        return
    if is_quota_type(kind) and refuse_unknown(node, _RESOURCE_FIELDS, out, what="a resource of a printed state"):
        return
    yield TerraformResource(
        type=kind,
        address=escaped(address),
        mode=mode,
        body=values,
        deposed=not is_null(fields.get("deposed_key")),
        secret=_secret(fields.get("sensitive_values")),
    )


def _secret(node: YamlNode | None) -> YamlNode | None:
    """The first mark of a sensitive value; Terraform lists only the true ones, in mappings and lists of the values' shape."""
    if isinstance(node, YamlMapping | YamlSequence):
        children = node.items.values() if isinstance(node, YamlMapping) else node.items
        return next((mark for mark in map(_secret, children) if mark is not None), None)
    return node if isinstance(node, YamlScalar) and node.data is True else None
