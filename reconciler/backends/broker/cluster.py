"""A cluster behind Kafka brokers, read and written with DescribeClientQuotas and AlterClientQuotas (KIP-546).

Kafka has no paging: a broker builds the whole answer in one piece, and answers -1 when it has no memory for it. All quotas are
then read in one request for each shape of entity. Four strict filters see every entity that Kafka itself knows, but none of a
type that other servers add; and the parts are not of one moment.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

from reconciler.backends.broker.error_messages import (
    ALTER,
    DESCRIBE,
    OF_THE_WHOLE_REQUEST,
    UNKNOWN_OUTCOME,
    UNKNOWN_SERVER_ERROR,
    foreign_types_notes,
    request_refusal,
    service_of,
)
from reconciler.backends.broker.quota_messages import (
    BROKER,
    DescribeAnswer,
    MalformedAnswerError,
    alter_request,
    describe_request,
    read_alter_answer,
    read_describe_answer,
    settings_request,
)
from reconciler.backends.broker.settings import ConnectionSettings, Security, principal_name
from reconciler.backends.broker.transport import AnswerLostError, NoConnectionError, Transport
from reconciler.collector import pause_collector
from reconciler.errors import BackendError, OutcomeUnknownError, UnreachableError, UnsupportedClusterError
from reconciler.logs import log_event
from reconciler.model import (
    Alteration,
    AlterationResult,
    ClusterIdentity,
    CurrentState,
    Entity,
    LeaderSpread,
    Observed,
    ObservedFrom,
    Quotas,
    escaped,
)
from reconciler.ports import BrokerNode, EntityFilter, ReplicationThrottles

_CALLBACK_SETTING: Final = "client.quota.callback.class"
_DESCRIBE_QUORUM: Final = 55
_NEWEST_INFERRED: Final = (4, 3)
"""The newest release that the library infers from the requests that a broker has."""
_SINCE_4_4: Final = 93
"""A request that brokers have from Kafka 4.4 on."""

_log: Final = logging.getLogger(__name__)

_T = TypeVar("_T")


class BrokerCluster:
    """A ``QuotaCluster``. Use ``open`` to connect; the object is for one thread at a time."""

    def __init__(self, transport: Transport, *, name: str | None, security: Security, hosts: Iterable[str] = ()) -> None:
        self._transport = transport
        self._hosts = hosts
        self._name = name
        self._security = security

    @classmethod
    def open(cls, settings: ConnectionSettings, *, name: str | None = None) -> Self:
        """Connect. Raises ``UnreachableError``, ``AuthenticationError`` or ``UnsupportedClusterError``."""
        transport = Transport(settings)
        transport.open()
        return cls(transport, name=name, security=settings.security, hosts=dict(settings.servers).keys())

    def identity(self) -> ClusterIdentity:
        """Name as configured, the cluster's own id, and the Kafka release that its API versions fit best."""
        return self._identity_in(self._retry_elsewhere(self._transport.metadata))

    def _identity_in(self, metadata: Any) -> ClusterIdentity:
        release = self._transport.release
        if release and release[:2] == _NEWEST_INFERRED and self._transport.offers(_SINCE_4_4):
            release = (4, 4)
        version = ".".join(str(number) for number in release[:2]) if release else None
        return ClusterIdentity(name=self._name, id=metadata.cluster_id, kafka_version=version)

    def brokers(self) -> Sequence[BrokerNode]:
        """The brokers that are up now, sorted by id."""
        nodes = (
            BrokerNode(id=b.node_id, host=b.host, port=b.port) for b in self._retry_elsewhere(self._transport.metadata).brokers
        )
        return tuple(sorted(nodes, key=lambda node: node.id))

    def current_state(self) -> CurrentState:
        """Return all quotas, read in one request: Kafka has no paging. Raises ``BackendError``."""
        return self.current_matching(EntityFilter())

    def current_matching(self, entity_filter: EntityFilter) -> CurrentState:
        """The matching quotas, filtered by the broker.

        Raises ``RequestRefusedError`` for a filter that Kafka refuses, ``BackendError``.
        """
        observed = Observed(at=datetime.datetime.now(datetime.UTC), origin=ObservedFrom.BROKER)
        entities = self.describe(entity_filter)
        metadata = self._retry_elsewhere(self._transport.metadata)
        return CurrentState(
            cluster=self._identity_in(metadata),
            observed=observed,
            entities=entities,
            notes=foreign_types_notes(entities),
            brokers=tuple(sorted(broker.node_id for broker in metadata.brokers)),
        )

    def describe(self, entity_filter: EntityFilter, *, broker: int | None = None) -> Mapping[Entity, Quotas]:
        """Return what one broker has now, which may lag the last write.

        Raises ``AuthorizationError``, ``RequestRefusedError`` (a filter that Kafka does not take, or error -1 when the answer is
        too large for the broker's memory), ``UnsupportedClusterError`` or ``UnreachableError``.
        """
        # Decoding 100,000 entities makes millions of objects.
        with pause_collector():
            return self._require_entities(
                self._read(lambda: describe_request(entity_filter), read_describe_answer, broker=broker)
            )

    def describe_on(
        self, entity_filter: EntityFilter, brokers: Sequence[int]
    ) -> Mapping[int, Mapping[Entity, Quotas] | BackendError]:
        """Return what each of these brokers has, or why it does not answer. All are asked at once, each of them once."""
        answers = self._transport.request_each(brokers, lambda: describe_request(entity_filter))
        return {broker: self._read_each(answer) for broker, answer in answers.items()}

    def alter(self, alterations: Sequence[Alteration], *, validate_only: bool) -> Sequence[AlterationResult]:
        """One request; one result for each alteration, in their order.

        When validating, an entity that the answer does not mention has error -1. When writing, such an entity, an answer of
        error 7 or -1 for any entity, and a connection lost after sending raise ``OutcomeUnknownError``: look, and send again what
        is still as before. Raises ``ValueError`` for an entity twice or without ops, ``AuthorizationError`` or
        ``RequestRefusedError`` when the request was refused as a whole (nothing was done), and ``UnreachableError`` when it was
        never sent.
        """
        request = alter_request(alterations, validate_only=validate_only)
        if not alterations:
            return ()
        try:
            answer = self._read(lambda: request, read_alter_answer) if validate_only else read_alter_answer(self._write(request))
        except AnswerLostError as error:
            # The next request should not wait for the same broker again.
            with contextlib.suppress(BackendError):
                self._transport.move_home(error)
            msg = f"the answer to a write was lost: {error}. It may or may not have been done"
            raise OutcomeUnknownError(msg) from error
        except MalformedAnswerError as error:
            msg = f"the answer to a write is malformed: {error}. It may or may not have been done"
            raise OutcomeUnknownError(msg) from error
        if _log.isEnabledFor(logging.DEBUG):
            codes = Counter(str(code) for code, _ in answer.values())
            keys = sum(len(alteration.ops) for alteration in alterations)
            log_event(
                _log, "alterations answered", entities=len(alterations), keys=keys, validate_only=validate_only, error_codes=codes
            )
        outcomes = set(answer.values())
        is_complete = all(alteration.entity in answer for alteration in alterations)
        if not validate_only and (not is_complete or UNKNOWN_OUTCOME & {code for code, _ in outcomes}):
            _require_known_outcome(alterations, answer)
        if len(outcomes) == 1 and (refused := outcomes.pop())[0] in OF_THE_WHOLE_REQUEST:
            raise self._refusal(*refused, ALTER)
        silent = UNKNOWN_SERVER_ERROR, "the cluster's answer does not mention it"
        answers = ((alteration.entity, *answer.get(alteration.entity, silent)) for alteration in alterations)
        return tuple(AlterationResult(entity, code, message) for entity, code, message in answers)

    def quota_callback(self) -> str | None:
        """The setting ``client.quota.callback.class`` of a broker: the one with the lowest id, as all of a cluster should agree.

        Raises ``AuthorizationError`` without DescribeConfigs, and other ``BackendError``.
        """
        return self._setting(_CALLBACK_SETTING) or None

    def _setting(self, name: str) -> str | None:
        broker = self.brokers()[0].id
        answer = self._read(lambda: settings_request(BROKER, [str(broker)], [name]), lambda answer: answer, broker=broker)
        if not answer.results:
            raise UnsupportedClusterError("the broker answered a question about its settings with nothing")
        result = answer.results[0]
        if result.error_code:
            raise self._refusal(result.error_code, result.error_message, DESCRIBE)
        value: str | None = {setting.name: setting.value for setting in result.configs}.get(name)
        return value

    def leader_spread(self) -> LeaderSpread:
        """Count the partitions that each broker leads, of topics that the principal may describe. Raises ``BackendError``."""
        answer = self._retry_elsewhere(self._transport.topics_metadata)
        up = {broker.node_id for broker in answer.brokers}
        partitions = [partition for topic in answer.topics for partition in topic.partitions]
        leaders = Counter(partition.leader_id for partition in partitions)
        leaderless = sum(count for leader, count in leaders.items() if leader not in up)
        replicas = {node for partition in partitions for node in partition.replica_nodes}
        log_event(_log, "leaders read", topics=len(answer.topics), partitions=len(partitions), leaderless=leaderless)
        return LeaderSpread(
            partitions=tuple(sorted((leader, count) for leader, count in leaders.items() if leader in up)),
            leaderless=leaderless,
            by_topic={
                topic.name: (tuple(each.leader_id for each in topic.partitions if each.leader_id in up), len(topic.partitions))
                for topic in answer.topics
            },
            absent=tuple(sorted(replicas - up)),
        )

    def replication_throttles(self) -> ReplicationThrottles:
        """The throttles of replication on brokers and topics, and the reassignments that run now. Raises ``BackendError``."""
        from reconciler.backends.broker.leftovers import read_throttles

        metadata = self._retry_elsewhere(self._transport.topics_metadata)
        return read_throttles(
            self._ask,
            self._refuse_describe,
            brokers=sorted(broker.node_id for broker in metadata.brokers),
            topics=[topic.name for topic in metadata.topics],
            controller=metadata.controller_id,
        )

    def scram_users(self) -> frozenset[str]:
        """The users with SCRAM credentials. Raises ``BackendError``, for want of the right to see them, too."""
        from reconciler.backends.broker.leftovers import read_scram_users

        metadata = self._retry_elsewhere(self._transport.metadata)
        return read_scram_users(self._ask, self._refuse_describe, controller=metadata.controller_id)

    def nodes_without_quotas(self) -> Mapping[str, int | None]:
        """Return nothing: brokers show no entity without a quota."""
        return {}

    def keeps_quotas_in_zookeeper(self) -> bool:
        """Whether the broker lacks a request that all brokers of KRaft clusters have."""
        return not self._transport.offers(_DESCRIBE_QUORUM)

    def close(self) -> None:
        """Give back connections; safe to call twice."""
        self._transport.close()

    def _refusal(self, code: int, message: str | None, operation: str) -> BackendError:
        service = service_of(self._hosts, self._transport.cluster_id)
        return request_refusal(
            code,
            _escape_text(message),
            operation=operation,
            principal=principal_name(self._security),
            actions=self._security.sasl.actions if self._security.sasl is not None else {},
            advice=service.advice if service is not None else "",
        )

    def _refuse_describe(self, code: int, message: str | None) -> BackendError:
        return self._refusal(code, message, DESCRIBE)

    def _ask(self, message: Callable[[], Any], broker: int | None) -> Any:
        return self._read(message, lambda answer: answer, broker=broker)

    def _require_entities(self, answer: DescribeAnswer) -> Mapping[Entity, Quotas]:
        log_event(_log, "quotas read", entities=len(answer.entities), error_code=answer.error_code)
        if answer.error_code:
            raise self._refusal(answer.error_code, answer.error_message, DESCRIBE)
        return answer.entities

    def _read_each(self, answer: Any) -> Mapping[Entity, Quotas] | BackendError:
        if isinstance(answer, BackendError):
            return answer
        if isinstance(answer, AnswerLostError):
            return UnreachableError(f"the broker did not answer: {answer}")
        try:
            return self._require_entities(read_describe_answer(answer))
        except MalformedAnswerError as error:
            return UnsupportedClusterError(f"the broker's answer is malformed: {error}")
        except BackendError as error:
            return error

    def _write(self, request: Any) -> Any:
        """Send once; only what certainly was not sent, because its broker is gone, is sent to another one."""
        try:
            return self._transport.request(request)
        except NoConnectionError as error:
            self._transport.move_home(error)
        return self._transport.request(request)

    def _read(self, message: Callable[[], Any], decode: Callable[[Any], _T], *, broker: int | None = None) -> _T:
        """Send what changes nothing; once more when no usable answer comes, to another broker when it may be any."""
        return self._retry_elsewhere(lambda: decode(self._transport.request(message(), broker=broker)), move=broker is None)

    def _retry_elsewhere(self, ask: Callable[[], _T], *, move: bool = True) -> _T:
        try:
            return ask()
        except (AnswerLostError, MalformedAnswerError, NoConnectionError) as error:
            log_event(_log, "sending the request again", level=logging.INFO, reason=str(error), to_another_broker=move)
            if move:
                self._transport.move_home(error)
        try:
            return ask()
        except AnswerLostError as error:
            raise UnreachableError(f"the cluster did not answer a request: {error}") from error
        except MalformedAnswerError as error:
            raise UnsupportedClusterError(f"the cluster's answer to a request is malformed: {error}") from error


def _require_known_outcome(alterations: Sequence[Alteration], answer: Mapping[Entity, tuple[int, str | None]]) -> None:
    silent = [a.entity for a in alterations if a.entity not in answer]
    if silent:
        raise OutcomeUnknownError(
            f"the cluster's answer to a write does not mention {silent[0]}. It may or may not have been done"
        )
    unclear = [a.entity for a in alterations if answer[a.entity][0] in UNKNOWN_OUTCOME]
    if unclear:
        code, message = answer[unclear[0]]
        text = f": {_escape_text(message)}" if message else ""
        msg = f"the cluster answered a write to {unclear[0]} with error {code}{text}. It may or may not have been done"
        raise OutcomeUnknownError(msg)


def _escape_text(message: str | None) -> str | None:
    return None if message is None else escaped(message)
