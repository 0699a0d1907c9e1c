"""Filters and alterations as the requests of KIP-546. A default is a null name on the wire."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeConfigsRequest,
)

from reconciler.backends.broker.alter_body import write_alter_body
from reconciler.backends.broker.raw_exchange import RawRequest
from reconciler.errors import RequestRefusedError
from reconciler.model import INVALID_REQUEST, Alteration, unsendable
from reconciler.ports import EntityFilter

_BROKER_RESOURCE: Final = 4
_NEWEST: Final = AlterClientQuotasRequest.max_version
_Component = DescribeClientQuotasRequest.ComponentData


def describe_request(entity_filter: EntityFilter) -> RawRequest:
    """A DescribeClientQuotas request; ``read_describe_answer`` reads its answer."""
    components = [_Component(entity_type=c.entity_type, match_type=int(c.kind), match=c.name) for c in entity_filter.components]
    message = DescribeClientQuotasRequest(components=components, strict=entity_filter.strict)
    return RawRequest(
        DescribeClientQuotasRequest, DescribeClientQuotasResponse, lambda version: bytes(message.encode(version=version))
    )


def broker_setting_request(broker: int, setting: str) -> Any:
    """A DescribeConfigs request for one setting; only the broker itself answers it."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name=str(broker), configuration_keys=[setting]
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=False, include_documentation=False)


def alter_request(alterations: Sequence[Alteration], *, validate_only: bool) -> RawRequest:
    """An AlterClientQuotas request; ``read_alter_answer`` reads its answer.

    Raises ``ValueError`` for an entity twice or without ops, where Kafka would do half of it, and ``RequestRefusedError`` for
    text that no request can hold.
    """
    if len({alteration.entity for alteration in alterations}) < len(alterations):
        twice = next(entity for entity, times in Counter(a.entity for a in alterations).items() if times > 1)
        raise ValueError(f"{twice} is altered twice in one request")
    if without := next((alteration for alteration in alterations if not alteration.ops), None):
        raise ValueError(f"the alteration of {without.entity} has no ops")

    @functools.cache
    def body(version: int) -> bytes:
        return write_alter_body(alterations, validate_only=validate_only, version=version)

    try:
        body(_NEWEST)
    except ValueError:
        _require_sendable(alterations)
        raise
    return RawRequest(AlterClientQuotasRequest, AlterClientQuotasResponse, body)


def _require_sendable(alterations: Sequence[Alteration]) -> None:
    for alteration in alterations:
        if reason := unsendable(alteration):
            raise RequestRefusedError(f"{alteration.entity} cannot be sent: {reason}", error_code=INVALID_REQUEST)
