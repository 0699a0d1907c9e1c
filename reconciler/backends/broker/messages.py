"""Entities, filters and alterations as the messages of KIP-546, and back. A default is a null name on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest, DescribeConfigsRequest

from reconciler.errors import RequestRefusedError
from reconciler.model.broker_rules import INVALID_REQUEST, unsendable
from reconciler.model.change import Alteration
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.model.state import Quotas
from reconciler.ports import EntityFilter

_Row = AlterClientQuotasRequest.EntryData
_BROKER_RESOURCE: Final = 4
_Component = DescribeClientQuotasRequest.ComponentData


def describe_request(entity_filter: EntityFilter) -> Any:
    """A DescribeClientQuotas request."""
    components = [_Component(entity_type=c.entity_type, match_type=int(c.kind), match=c.name) for c in entity_filter.components]
    return DescribeClientQuotasRequest(components=components, strict=entity_filter.strict)


def broker_setting_request(broker: int, setting: str) -> Any:
    """A DescribeConfigs request for one setting; only the broker itself answers it."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name=str(broker), configuration_keys=[setting]
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)


def quotas_of(entries: Iterable[Any]) -> dict[Entity, Quotas]:
    """The entries of a DescribeClientQuotas response; unknown types and keys are carried as they are."""
    return {_entity(entry.entity): {v.key: v.value for v in entry.values} for entry in entries}


def alter_request(alterations: Sequence[Alteration], *, validate_only: bool) -> Any:
    """An AlterClientQuotas request.

    Raises ``ValueError`` for an entity twice or without ops, where Kafka would do half of it, and ``RequestRefusedError`` for
    text that no request can hold.
    """
    seen: set[Entity] = set()
    for alteration in alterations:
        if not alteration.ops:
            raise ValueError(f"the alteration of {alteration.entity} has no ops")
        if alteration.entity in seen:
            raise ValueError(f"{alteration.entity} is altered twice in one request")
        seen.add(alteration.entity)
        if reason := unsendable(alteration):
            raise RequestRefusedError(f"{alteration.entity} cannot be sent: {reason}", error_code=INVALID_REQUEST)
    return AlterClientQuotasRequest(entries=[_row(a) for a in alterations], validate_only=validate_only)


def codes_of(entries: Iterable[Any]) -> Mapping[Entity, tuple[int, str | None]]:
    """The entries of an AlterClientQuotas response by entity: error code (0 is success) and the broker's words."""
    return {_entity(entry.entity): (entry.error_code, entry.error_message) for entry in entries}


def _row(alteration: Alteration) -> Any:
    entity = [
        _Row.EntityData(entity_type=t, entity_name=None if name is DEFAULT else name) for t, name in alteration.entity.parts
    ]
    ops = [_Row.OpData(key=k, value=0.0 if v is None else v, remove=v is None) for k, v in alteration.ops.items()]
    return _Row(entity=entity, ops=ops)


def _entity(parts: Sequence[Any]) -> Entity:
    if len(parts) == 1:
        part = parts[0]
        return Entity(parts=((part.entity_type, _name(part.entity_name)),))
    return Entity.of({part.entity_type: _name(part.entity_name) for part in parts})


def _name(wire: str | None) -> EntityName:
    return DEFAULT if wire is None else wire
