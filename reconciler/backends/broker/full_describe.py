"""Reading all quotas of a cluster: in one request, or, where the broker has no memory for that answer, in one for each shape.

Kafka has no paging: a broker builds the whole answer in one piece, and says only -1 when it cannot. Four strict filters see every
entity that Kafka itself knows, but none of a type that other servers add; and the parts are not of one moment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from reconciler.backends.broker.error_messages import UNKNOWN_SERVER_ERROR
from reconciler.errors import RequestRefusedError
from reconciler.logs import log_event
from reconciler.model import Entity, EntityType, Quotas
from reconciler.ports import EntityFilter, FilterComponent, FilterKind

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


class FullDescribe:
    """Reads all quotas with ``describe``, and remembers when only parts can be had, so that no broker is asked for all again."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._in_parts = False

    def read(self) -> Mapping[Entity, Quotas]:
        """All of them. Raises as ``describe``; ``RequestRefusedError`` says what to raise when even a part is too much."""
        if not self._in_parts:
            try:
                return self._describe(EntityFilter())
            except RequestRefusedError as error:
                if error.error_code != UNKNOWN_SERVER_ERROR:
                    raise
                self._in_parts = True
                log_event(_log, "reading by entity type", level=logging.INFO, reason=str(error))
        found: dict[Entity, Quotas] = {}
        for shape in SHAPES:
            found.update(self._part(shape))
        return found

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
                f"the broker answers with error -1 when it is asked for all quotas, and also when asked for those of {of} alone; "
                "if its log has an OutOfMemoryError, give the brokers more heap (KAFKA_HEAP_OPTS=-Xmx..., 1 GB or more for "
                "100,000 entities), or ask one that has it (--bootstrap-server); else look into its log; "
                "nothing more was asked"
            )
            raise RequestRefusedError(msg, error_code=error.error_code) from error
