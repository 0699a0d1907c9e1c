"""The requests of KIP-546 as kafka-python's connections take them, and reading all quotas of a cluster with them.

The body of a request is written, and its answer is read, by us; kafka-python does the rest: versions, headers, sending. Its
connections take anything that behaves as its own requests do. Reading and writing quotas through its message objects costs more
than everything else that happens to them here.

Kafka has no paging: a broker builds the whole answer in one piece, and answers -1 when it has no memory for it. All quotas are
then read in one request for each shape of entity. Four strict filters see every entity that Kafka itself knows, but none of a
type that other servers add; and the parts are not of one moment.
"""

from __future__ import annotations

import functools
import logging
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeConfigsRequest,
)

from reconciler.backends.broker.error_messages import UNKNOWN_SERVER_ERROR
from reconciler.backends.broker.quota_messages import RawAnswer, write_alter_body
from reconciler.errors import RequestRefusedError
from reconciler.logs import log_event
from reconciler.model import Alteration, Entity, EntityType, Quotas
from reconciler.ports import EntityFilter, FilterComponent, FilterKind
from reconciler.resolution import INVALID_REQUEST, unsendable

_FRAME: Final = struct.Struct(">i")

_BROKER_RESOURCE: Final = 4
_NEWEST: Final = AlterClientQuotasRequest.max_version
_Component = DescribeClientQuotasRequest.ComponentData
_log: Final = logging.getLogger(__name__)

Describe: TypeAlias = Callable[[EntityFilter], Mapping[Entity, Quotas]]

SHAPES: Final = (
    (EntityType.USER,),
    (EntityType.CLIENT_ID,),
    (EntityType.USER, EntityType.CLIENT_ID),
    (EntityType.IP,),
)
"""Every combination of types that Kafka accepts."""

NOTE: Final = (
    "the broker could not answer for all entities at once and was asked in four parts, by entity type: they are not of one "
    "moment, and entities of types that Kafka itself does not have cannot be seen this way"
)


class RawRequest:
    """A request of a kind that kafka-python knows, with the body that ``body`` gives for the version that is agreed on.

    ``kind`` is the library's request class, ``answer`` its response class. What is public here is what its connections use.
    """

    def __init__(self, kind: Any, answer: Any, body: Callable[[int], bytes]) -> None:
        self._message = kind()
        self._answer = answer
        self._body = body
        self.name: str = kind.name
        self.API_KEY: int = kind.API_KEY
        self.API_VERSION: int | None = None
        self.min_version: int = kind.min_version
        self.max_version: int = kind.max_version
        self._min_version = self._max_version = None
        self.header: _Header | None = None

    def with_header(self, *, correlation_id: int, client_id: str) -> None:
        """What the library states of a request before it encodes it."""
        self._message.API_VERSION = self.API_VERSION
        self._message.with_header(correlation_id=correlation_id, client_id=client_id)
        self.header = _Header(correlation_id, self._answer, self.API_VERSION or 0)

    def encode(self, **_: Any) -> bytes:
        """Length, header and body."""
        version = self.API_VERSION or 0
        header = self._message.encode_header(flexible=self._message.flexible_version_q(version))
        body = self._body(version)
        return b"".join((_FRAME.pack(len(header) + len(body)), header, body))

    def expect_response(self) -> bool:
        """Every quota request has an answer."""
        return True


class _Header:
    """What the library keeps of a request that was sent, and asks how to read the answer."""

    def __init__(self, correlation_id: int, answer: Any, version: int) -> None:
        self.correlation_id = correlation_id
        self._answer = answer
        self._version = version

    def get_response_class(self) -> _Header:
        return self

    def parse_header(self, data: Any) -> Any:
        return self._answer[self._version].parse_header(data)

    def decode(self, data: Any) -> RawAnswer:
        return RawAnswer(version=self._version, body=bytes(data.read()))


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
    text that does not fit into a request.
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


class FullDescribe:
    """Reads all quotas with ``describe``, and remembers when only parts can be had, so that no broker is asked for all again."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._in_parts = False

    def read(self) -> Mapping[Entity, Quotas]:
        """All quotas.

        Raises ``BackendError``; a ``RequestRefusedError`` names the setting to raise when even a part is too large.
        """
        if not self._in_parts:
            try:
                return self._describe(EntityFilter())
            except RequestRefusedError as error:
                if error.error_code != UNKNOWN_SERVER_ERROR:
                    raise
                self._in_parts = True
                log_event(_log, "reading by entity type", level=logging.INFO, reason=str(error))
        entities: dict[Entity, Quotas] = {}
        for shape in SHAPES:
            entities.update(self._part(shape))
        return entities

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about what was read."""
        return (NOTE,) if self._in_parts else ()

    def _part(self, shape: tuple[EntityType, ...]) -> Mapping[Entity, Quotas]:
        components = tuple(FilterComponent(entity_type=t.value, kind=FilterKind.SPECIFIED) for t in shape)
        try:
            return self._describe(EntityFilter(components=components, strict=True))
        except RequestRefusedError as error:
            if error.error_code != UNKNOWN_SERVER_ERROR:
                raise
            of = " and ".join(t.value for t in shape)
            msg = (
                f"the broker answers with error -1 when it is asked for all quotas, and also when asked for those of {of} alone. "
                "If its log has an OutOfMemoryError, give the brokers more heap (KAFKA_HEAP_OPTS=-Xmx...): 1 GB or more for "
                "100,000 entities. Or ask a broker that has it (--bootstrap-server). Else look into its log. "
                "No further request was sent"
            )
            raise RequestRefusedError(msg, error_code=error.error_code) from error
