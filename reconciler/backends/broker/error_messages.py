"""Sentences for kafka-python's connection errors, for brokers' error codes, and for services that keep quotas in their own way.

Nothing of the library's own text is repeated but the broker's. The codes are those of Kafka's ``Errors``.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import kafka.errors as kafka_errors

from reconciler.errors import AuthorizationError, BackendError, RequestRefusedError, UnsupportedClusterError
from reconciler.model import Entity, EntityType, escaped
from reconciler.text import list_some

_ERRNO: Final = re.compile(r"(\d+) E[A-Z]+")
_PREFIX: Final = re.compile(r"^((\[(Error|Errno) -?\d+\] )|[A-Za-z]+Error: |Handshake failed: )")
_TLS: Final = re.compile(r"(?:\[SSL: \w+\] )?(.*?)\.? \(_ssl\.c:\d+\)")

_BY_TYPE: Final = (
    (kafka_errors.KafkaTimeoutError, "no answer in time"),
    (kafka_errors.RequestTimedOutError, "no answer in time"),
    (kafka_errors.KafkaProtocolError, "what it answers is not the Kafka protocol"),
    (kafka_errors.NodeNotReadyError, "not ready"),
    (kafka_errors.Cancelled, "closed"),
)
_CLOSED: Final = "the server closed the connection"
REFUSED_CERTIFICATE: Final = "the server refused the client certificate"
"""The client may have no certificate: a server answers the same for a certificate that it rejects and for a missing one."""

_NO_TLS: Final = "what answers does not speak TLS"
_OF_LISTENER: Final = {
    "PLAINTEXT": "Either this is not a Kafka broker, or its listener wants TLS or a login: then give --command-config "
    "client.properties",
    "SASL_PLAINTEXT": "Either this is not a Kafka broker, or its listener wants TLS: then security.protocol is SASL_SSL",
    "SSL": "If this is a Kafka broker, its listener may have no TLS: then security.protocol is PLAINTEXT or SASL_PLAINTEXT",
    "SASL_SSL": "If this is a Kafka broker, its listener may have no TLS: then security.protocol is SASL_PLAINTEXT",
}
_OF_ADDRESS: Final = {
    "unknown host": "Check the name of the host, and how this machine resolves names",
    "connection refused": "Check the port, and that a broker listens there",
    "no answer in time": "Check that the broker runs, and that no firewall between this machine and it drops packets",
}
"""By the reason of a failed connection."""
_BY_TEXT: Final = {
    "DNS Resolution failure": "unknown host",
    "Connection timed out": "no answer in time",
    "socket disconnected": _CLOSED,
    "Connection reset by peer": _CLOSED,
    "Broken pipe": _CLOSED,
    "EOF occurred in violation of protocol": _CLOSED,
    "wrong version number": _NO_TLS,
    '{"status":"invalid_token"}': "the server does not accept the token, which may have expired",
    "": _CLOSED,
}

_NAME: Final = r".*certificate verify failed: (?:IP address|Hostname) mismatch(?:, certificate is not valid for ('.*'))?.*"
_TLS_WORDS: Final = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (
            _NAME,
            r"the server's certificate is for another host than \1. Connect by a name in it, or get one that names this host",
        ),
        (r".*certificate verify failed: certificate has expired.*", "the server's certificate has expired"),
        (r".*certificate verify failed: certificate is not yet valid.*", "the server's certificate is not valid yet"),
        (
            r".*certificate verify failed: (?:self[- ]signed certificate|unable to get (?:local )?issuer certificate).*",
            "the server's certificate comes from an authority that is not trusted here (ssl.truststore.location)",
        ),
        (
            r".*alert (?:(?:bad )?certificate(?: required| expired| unknown| revoked)?|unknown ca|access denied)\b.*",
            REFUSED_CERTIFICATE,
        ),
    )
)

UNKNOWN_SERVER_ERROR: Final = -1
REQUEST_TIMED_OUT: Final = 7
CLUSTER_AUTHORIZATION_FAILED: Final = 31
UNSUPPORTED_VERSION: Final = 35
NOT_CONTROLLER: Final = 41
POLICY_VIOLATION: Final = 44
OF_THE_WHOLE_REQUEST: Final = frozenset(
    {UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, NOT_CONTROLLER, POLICY_VIOLATION}
)
"""When every entry of an answer has one of these, it is about the request, not about the entity: Kafka copies it to all."""
UNKNOWN_OUTCOME: Final = frozenset({UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT})
"""After these a write may or may not have been done."""
DESCRIBE: Final = "DescribeConfigs"
ALTER: Final = "AlterConfigs"
_WHAT: Final = {DESCRIBE: "reading client quotas", ALTER: "changing client quotas, and validating changes,"}
_ERROR_TEXTS: Final = {
    UNKNOWN_SERVER_ERROR: "an unexpected error on the broker. Look into its log. If it has an OutOfMemoryError, give the brokers "
    "more heap (KAFKA_HEAP_OPTS=-Xmx...): 1 GB or more to read 100,000 entities",
    REQUEST_TIMED_OUT: "the request timed out inside the cluster",
    UNSUPPORTED_VERSION: "this broker does not support what was asked",
    NOT_CONTROLLER: "the broker did not find the active controller",
    POLICY_VIOLATION: "the request does not satisfy the cluster's policy. Kafka also answers so when a request changes more than "
    "10,000 keys",
}


_REDPANDA_ID: Final = "redpanda."
_METADATA: Final = 3
_DESCRIBE_CLIENT_QUOTAS: Final = 48
_ALTER_CLIENT_QUOTAS: Final = 49
_BROKER_HEARTBEAT: Final = 63
_FIRST_RELEASE: Final = (2, 8)
"""Of Kafka with these requests (KIP-546) in version 1."""
_OF_A_BROKER: Final = "Pass the address of a broker: one of its advertised.listeners"
_IN_ZOOKEEPER: Final = "Kafka before 2.8 keeps quotas in ZooKeeper. Pass --zookeeper HOST:PORT in place of --bootstrap-server"


def describe_error(error: BaseException) -> str:
    """A short reason, without a full stop: ``connection refused``."""
    for kind, text in _BY_TYPE:
        if isinstance(error, kind):
            return text
    if isinstance(error, kafka_errors.BrokerResponseError) and not error.args:
        return str(error.description or error.message or "error").rstrip(".").lower()
    raw = str(error.args[0]) if error.args else ""
    if match := _ERRNO.fullmatch(raw):
        return os.strerror(int(match[1])).lower()
    while (stripped := _PREFIX.sub("", raw)) != raw:
        raw = stripped
    raw = _TLS.sub(r"\1", raw)
    for pattern, text in _TLS_WORDS:
        if pattern.search(raw):
            return escaped(pattern.sub(text, raw))
    return escaped(_BY_TEXT.get(raw, raw))


def is_tls_failure(error: BaseException) -> bool:
    """True when the TLS handshake failed, be it that the other side refused our certificate."""
    return isinstance(error, kafka_errors.KafkaConnectionError) and ("Handshake failed" in str(error) or "[SSL: " in str(error))


def connection_advice(error: BaseException | None, protocol: str) -> str | None:
    """Return what to check after a connection that failed, by the reason; ``None`` for a reason that decides nothing.

    A server that accepts a connection and does not understand a request may want another ``protocol``.
    """
    if error is None:
        return None
    reason = describe_error(error)
    if isinstance(error, kafka_errors.KafkaProtocolError) or reason in (_CLOSED, _NO_TLS):
        return _OF_LISTENER.get(protocol)
    return _OF_ADDRESS.get(reason)


def request_refusal(
    code: int,
    message: str | None,
    *,
    operation: str,
    principal: str | None = None,
    actions: Mapping[str, str] | None = None,
    advice: str = "",
) -> BackendError:
    """The error for a request that the cluster refused as a whole.

    ``operation`` is the ACL operation that it needs, ``principal`` the one that the brokers probably see. ``actions``: by
    operation, what an IAM policy has to allow in its place. ``advice``: a sentence about the service of the cluster.
    """
    advice = f". {advice}" if advice else ""
    if code == CLUSTER_AUTHORIZATION_FAILED:
        text = _not_in_policy(operation, actions[operation]) if actions else _not_allowed(operation, principal)
        return AuthorizationError(text + advice)
    text = message or _ERROR_TEXTS.get(code, "no reason given")
    extra = f" ({_ERROR_TEXTS[code]})" if message and code in _ERROR_TEXTS else ""
    text = f"the cluster refused the request with error {code}: {text.rstrip('.')}{extra}{advice}"
    if code == UNSUPPORTED_VERSION:
        return UnsupportedClusterError(text)
    return RequestRefusedError(text, error_code=code)


def _not_in_policy(operation: str, action: str) -> str:
    return (
        f"the cluster does not allow the IAM identity to do this: {_WHAT[operation]} needs {action} on the "
        "cluster's ARN, beside kafka-cluster:Connect. Add it to a policy of the identity"
    )


def _not_allowed(operation: str, principal: str | None) -> str:
    who = "this principal" if principal is None else escaped(f"User:{principal}")
    grantee = "User:NAME" if principal is None else shlex.quote(escaped(f"User:{principal}"))
    return (
        f"the cluster does not allow {who} to do this: {_WHAT[operation]} needs the operation {operation} on the resource "
        f'Cluster "kafka-cluster". An administrator can grant it with: kafka-acls --bootstrap-server HOST:PORT --add '
        f"--allow-principal {grantee} --operation {operation} --cluster"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaService:
    """A service. ``hosts`` is a regular expression for the names of its servers, ``advice`` a sentence about quotas there."""

    name: str
    hosts: re.Pattern[str]
    advice: str


_REDPANDA: Final = KafkaService(
    name="Redpanda",
    hosts=re.compile(r"\.redpanda\.(?:com|cloud)$"),
    advice="Redpanda has byte rates and mutation rates of client-ids, since 26.1 also of users. It has no quotas of IP addresses "
    "and no request_percentage, and its prefixes of client-ids are left as they are",
)
_SERVICES: Final = (
    KafkaService(
        name="Confluent Cloud",
        hosts=re.compile(r"\.confluent\.cloud$"),
        advice="Confluent Cloud keeps quotas of service accounts in its own API (confluent kafka quota). "
        "Hence plan and apply do not work there. validate and backtest do",
    ),
    KafkaService(
        name="Amazon MSK Serverless",
        hosts=re.compile(r"\.kafka-serverless\.[a-z0-9-]+\.amazonaws\.com"),
        advice="Amazon MSK Serverless has limits of its own in place of client quotas. Hence plan and apply do not work "
        "there. validate and backtest do",
    ),
    KafkaService(
        name="Aiven",
        hosts=re.compile(r"\.aivencloud\.com$"),
        advice="Aiven sets client quotas through its own API (Terraform: aiven_kafka_quota). Its users may have no right to "
        "the cluster resource, and plan and apply need one. validate and backtest need none",
    ),
    _REDPANDA,
)


def service_of(hosts: Iterable[str], cluster_id: str | None = None) -> KafkaService | None:
    """The service by the names of servers or the cluster's id, ``None`` for what looks like Kafka itself."""
    if cluster_id is not None and cluster_id.startswith(_REDPANDA_ID):
        return _REDPANDA
    names = [host.lower().rstrip(".") for host in hosts]
    return next((service for service in _SERVICES if any(service.hosts.search(name) for name in names)), None)


def foreign_types_notes(entities: Iterable[Entity]) -> tuple[str, ...]:
    """A note about quotas of entity types that Kafka does not have, if there are any."""
    foreign = sorted({name for entity in entities if not entity.is_known for name in entity.types} - set(EntityType))
    if not foreign:
        return ()
    names = list_some([escaped(name) for name in foreign], 5)
    return (f"The cluster has quotas of types that Kafka does not have: {names}. They are left as they are.",)


def lacks_request(
    where: str, offered: Collection[int], *, release: Sequence[int], service: KafkaService | None = None
) -> UnsupportedClusterError:
    """The error for a server that does not offer what was to be sent.

    ``offered``: the numbers of the requests that it offers. ``release``: the Kafka release that has these, ``service`` the one
    that the server seems to belong to.
    """
    if _BROKER_HEARTBEAT in offered and _METADATA not in offered:
        return _error(f"{where} is the listener of a KRaft controller, which shows neither brokers nor quotas", _OF_A_BROKER)
    if _METADATA not in offered:
        return _error(f"{where} shows no brokers (Metadata), so it is not a Kafka broker", _OF_A_BROKER)
    like = f", and offers the requests of Kafka {'.'.join(map(str, release))}" if release else ""
    if _DESCRIBE_CLIENT_QUOTAS not in offered:
        text = f"{where} has no API for client quotas (DescribeClientQuotas), which Kafka has since 2.6{like}"
    elif _ALTER_CLIENT_QUOTAS not in offered:
        text = f"{where} shows client quotas without an API to change them (AlterClientQuotas){like}"
    else:
        text = f"{where} does not offer a request of a version that kafka-quotas sends{like}"
    if service is not None:
        return _error(text, service.advice)
    if release and tuple(release) < _FIRST_RELEASE:
        return _error(text, _IN_ZOOKEEPER)
    return _error(text, "A proxy or a service may answer in place of a broker. Pass the address of a broker, or ask who runs it")


def _error(seen: str, serves: str) -> UnsupportedClusterError:
    return UnsupportedClusterError(f"{seen}. {serves}", remedy=serves)
