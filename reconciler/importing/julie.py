"""Topology descriptors of Julie (JulieOps): the quotas of users below ``platform.kafka.quotas``.

Julie sends a principal as it is written: ``User:alice`` becomes a quota of a user with that literal name.
"""

from __future__ import annotations

from typing import Final

from reconciler.importing.import_result import Gatherer, ImportResult
from reconciler.importing.yaml_fields import field_mapping, field_text, is_null, read_fields, refuse_templates
from reconciler.model import DEFAULT, Entity
from reconciler.yaml import YamlMapping, YamlNode, YamlSequence, read_yaml

_KEYS: Final = {key: key for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage")}
_TEMPLATE: Final = "this is a template, and only the tool that fills it in knows the result. Import that result"


def read_julie(content: bytes, file: str) -> ImportResult:
    """The quotas of one descriptor; one without quotas declares nothing. Never raises."""
    out = Gatherer(file)
    if refuse_templates(content, out, _TEMPLATE):
        return out.found()
    stream = read_yaml(content)
    if out.problems(stream.problems):
        return out.found()
    for document in stream.documents:
        if not isinstance(document, YamlMapping):
            out.refuse("import-syntax", "a topology descriptor is a mapping", document)
            continue
        quotas = field_mapping(field_mapping(document.items.get("platform")).get("kafka")).get("quotas")
        if isinstance(quotas, YamlSequence):
            for item in quotas.items:
                _quota(item, out)
        elif quotas is not None and not is_null(quotas):
            out.refuse("import-syntax", "platform.kafka.quotas is a list", quotas)
    return out.found()


def _quota(item: YamlNode, out: Gatherer) -> None:
    fields = field_mapping(item)
    principal = fields.get("principal")
    if not isinstance(item, YamlMapping) or principal is None or field_text(principal) is None:
        out.refuse("import-syntax", "a quota is a mapping with a principal", principal or item)
        return
    # An empty principal is the default user.
    entity = Entity.of({"user": field_text(principal) or DEFAULT})
    limits = item._replace(items={name: node for name, node in fields.items() if name != "principal"})
    quotas = read_fields(limits, _KEYS, entity, out, tool="Julie")
    if quotas is not None:
        out.add(entity, quotas, item)
