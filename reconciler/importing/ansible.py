"""Tasks of Ansible's module ``kafka_quotas`` (StephenSorriaux/ansible-kafka-admin), in playbooks, roles and lists of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reconciler.importing.import_result import Gatherer, ImportResult
from reconciler.importing.yaml_fields import TEMPLATE, field_mapping, field_text, is_null, read_fields
from reconciler.model import DEFAULT, Entity, EntityName, compose
from reconciler.text import did_you_mean, shown_part
from reconciler.yaml import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

_MODULE: Final = "kafka_quotas"
_KEYS: Final = {key: key for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage")}
_TYPES: Final = {"user": "user", "client": "client-id"}
_DEFAULT: Final = "<default>"
_NESTED: Final = ("tasks", "pre_tasks", "post_tasks", "handlers", "block")
_FALLIBLE: Final = ("rescue", "always")
_EVALUATE: Final = "only Ansible knows the result. Write it out, or import the output of kafka-configs --describe"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaTask:
    """One task. ``doubt``: the node because of which it may run never, or often."""

    arguments: YamlNode
    doubt: YamlNode | None


def read_ansible(content: bytes, file: str) -> ImportResult:
    """The quotas of one file; other tasks are passed over. Never raises."""
    out = Gatherer(file)
    stream = read_yaml(content)
    if out.problems(stream.problems):
        return out.found()
    for document in stream.documents:
        for task in _tasks(document, None):
            _task(task, out)
    return out.found()


def _tasks(node: YamlNode, doubt: YamlNode | None) -> Iterator[QuotaTask]:
    """Plays and blocks are lists of mappings, tasks in them are mappings."""
    for item in node.items if isinstance(node, YamlSequence) else ():
        fields = field_mapping(item)
        why = doubt or _doubt(fields)
        for name, value in fields.items():
            if name.rpartition(".")[2] == _MODULE:
                yield QuotaTask(arguments=value, doubt=why)
            elif name in _NESTED:
                yield from _tasks(value, why)
            elif name in _FALLIBLE:
                yield from _tasks(value, why or value)


def _doubt(fields: dict[str, YamlNode]) -> YamlNode | None:
    names = (name for name in fields if name in ("when", "loop", "until") or name.startswith("with_"))
    return next((fields[name] for name in names), None)


def _task(task: QuotaTask, out: Gatherer) -> None:
    entries = field_mapping(task.arguments).get("entries")
    if task.doubt is not None:
        message = f"this task of kafka_quotas depends on a condition or a loop here, and {_EVALUATE}"
        out.refuse("import-template", message, task.doubt)
    elif isinstance(entries, YamlScalar) and TEMPLATE.search(entries.text):
        out.refuse(
            "import-template", compose("the entries are {text}: {how}", text=shown_part(entries.text), how=_EVALUATE), entries
        )
    elif not isinstance(entries, YamlSequence):
        out.refuse("import-syntax", "a task of kafka_quotas has a list of entries", entries or task.arguments)
    else:
        for entry in entries.items:
            _entry(entry, out)


def _entry(entry: YamlNode, out: Gatherer) -> None:
    entity_node, quotas_node = field_mapping(entry).get("entity"), field_mapping(entry).get("quotas")
    if not isinstance(entity_node, YamlMapping) or not isinstance(quotas_node, YamlMapping):
        out.refuse("import-syntax", "an entry has an entity and quotas, and both are mappings", entry)
        return
    if _refuse_values(entity_node, out) or _refuse_values(quotas_node, out):
        return
    entity = _entity(entity_node, out)
    if entity is None:
        return
    quotas = read_fields(quotas_node, _KEYS, entity, out, tool="the module kafka_quotas")
    if quotas is not None:
        out.add(entity, quotas, entry)


def _refuse_values(fields: YamlMapping, out: Gatherer) -> bool:
    """Report values that are templates of Jinja."""
    before = len(out.findings)
    for node in fields.items.values():
        text = field_text(node)
        if text is not None and TEMPLATE.search(text):
            out.refuse("import-template", compose("this is {text}: {how}", text=shown_part(text), how=_EVALUATE), node)
    return len(out.findings) > before


def _entity(fields: YamlMapping, out: Gatherer) -> Entity | None:
    names: dict[str, EntityName] = {}
    for name, node in fields.items.items():
        if name not in _TYPES:
            message = compose("an entity has no {name}{hint}", name=shown_part(name), hint=did_you_mean(name, _TYPES))
            out.refuse("import-unsupported", message, node)
            return None
        text = field_text(node)
        if not is_null(node) and text is None:
            out.refuse("import-syntax", f"the {name} is a name", node)
            return None
        # The module takes an empty name as an absent one.
        if text:
            names[_TYPES[name]] = DEFAULT if text == _DEFAULT else text
    if not names:
        out.refuse("import-syntax", f"an entity has a user, a client, or both. For the default, write {_DEFAULT}", fields)
        return None
    return Entity.of(names)
