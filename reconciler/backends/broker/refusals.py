"""What the broker's error codes mean for a request as a whole (Kafka's ``Errors``)."""

from __future__ import annotations

import shlex
from typing import Final

from reconciler.errors import AuthorizationError, BackendError, RequestRefusedError, UnsupportedClusterError
from reconciler.model import escaped

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

_TEXTS: Final = {
    UNKNOWN_SERVER_ERROR: "an unexpected error on the broker; its log says more (a full describe of very many entities can "
    "exceed the broker's memory)",
    REQUEST_TIMED_OUT: "the request timed out inside the cluster",
    UNSUPPORTED_VERSION: "this broker does not support what was asked",
    NOT_CONTROLLER: "the broker did not find the active controller",
    POLICY_VIOLATION: "the request does not satisfy the cluster's policy; Kafka also says this when a request changes more than "
    "10,000 keys",
}


def whole_refusal(code: int, message: str | None, *, operation: str, principal: str | None = None) -> BackendError:
    """The error for a request that the cluster refused as a whole.

    ``operation`` is the ACL operation that it needs, ``principal`` whom the brokers probably take us for.
    """
    if code == CLUSTER_AUTHORIZATION_FAILED:
        return AuthorizationError(_not_allowed(operation, principal), operation=operation)
    said = message or _TEXTS.get(code, "no reason given")
    extra = f" ({_TEXTS[code]})" if message and code in _TEXTS else ""
    text = f"the cluster refused the request with error {code}: {said.rstrip('.')}{extra}"
    if code == UNSUPPORTED_VERSION:
        return UnsupportedClusterError(text)
    return RequestRefusedError(text, error_code=code)


def _not_allowed(operation: str, principal: str | None) -> str:
    what = "reading client quotas" if operation == DESCRIBE else "changing client quotas, and validating changes,"
    who = "this principal" if principal is None else escaped(f"User:{principal}")
    grantee = "User:NAME" if principal is None else shlex.quote(escaped(f"User:{principal}"))
    return (
        f"the cluster does not allow {who} to do this: {what} needs the operation {operation} on the resource Cluster "
        f'"kafka-cluster"; an administrator can grant it with: kafka-acls --bootstrap-server HOST:PORT --add '
        f"--allow-principal {grantee} --operation {operation} --cluster"
    )
