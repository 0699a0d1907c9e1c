"""OAUTHBEARER and AWS_MSK_IAM as kinds of logins; and the latter: logins at Amazon MSK with the credentials of an IAM identity.

botocore finds the credentials (environment, profile, web identity, instance metadata) and signs; this module makes the message
of the public specification (github.com/aws/aws-msk-iam-auth).
"""

from __future__ import annotations

import importlib.util
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from reconciler.backends import BrokerLogin, JaasLine, JavaProperties, LoginKind, SaslExchange
from reconciler.errors import AuthenticationError, MissingPackageError
from reconciler.features.logins.tokens import read_tokens
from reconciler.model import escaped

_ACTION: Final = "kafka-cluster:Connect"
_ACTIONS: Final = {
    "DescribeConfigs": "kafka-cluster:DescribeClusterDynamicConfiguration",
    "AlterConfigs": "kafka-cluster:AlterClusterDynamicConfiguration",
}
_SERVICE: Final = "kafka-cluster"
_VALID_SECONDS: Final = 900
_VERSION: Final = "2020_10_22"
_AGENT: Final = "kafka-quotas"
_REGION: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class IamLogin(BrokerLogin):
    """Which identity: that of a profile, which may assume a role, or without one that which botocore finds first."""

    mechanism: str = "AWS_MSK_IAM"
    profile: str | None = None

    @property
    def actions(self) -> Mapping[str, str]:
        """The actions that Amazon MSK asks for in place of ACL operations."""
        return _ACTIONS

    def opened(self, _host: str, /) -> IamIdentity:
        """The identity's one message."""
        return IamIdentity(self)


class IamIdentity:
    """The credentials of a login, fetched again by botocore before they expire. Any thread may ask."""

    def __init__(self, login: IamLogin) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._session: Any = None

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        return self._login.mechanism

    def begin(self, host: str) -> SaslExchange:
        """Begin a login at a server. Raises ``AuthenticationError``, or ``MissingDependencyError`` without the package."""
        return _IamExchange(self.message(host))

    def message(self, host: str) -> bytes:
        """The one message to a server: what a signed request would have, in JSON. Raises as ``begin``."""
        if importlib.util.find_spec("botocore") is None:
            raise MissingPackageError("Logging in with AWS_MSK_IAM needs", "botocore")
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.session import Session

        with self._lock:
            try:
                self._session = self._session or Session(profile=self._login.profile)
                credentials = self._session.get_credentials()
                frozen = credentials and credentials.get_frozen_credentials()
                region = match[1] if (match := _REGION.search(host)) else self._session.get_config_variable("region")
            except (BotoCoreError, ClientError) as error:
                # Of botocore's sentences those about credentials have names and addresses only.
                raise AuthenticationError(f"No AWS credentials: {escaped(str(error))}") from None
        if not frozen:
            raise AuthenticationError(
                "No AWS credentials: neither the environment, a profile, a web identity nor instance metadata has any. "
                "Name a profile with awsProfileName in sasl.jaas.config, or set AWS_PROFILE"
            )
        if not region:
            raise AuthenticationError(
                f"The AWS region of {escaped(host)} is unknown: its name does not show one. Set AWS_DEFAULT_REGION"
            )
        request = AWSRequest(method="GET", url=f"https://{host}/", params={"Action": _ACTION})
        SigV4QueryAuth(frozen, _SERVICE, region, expires=_VALID_SECONDS).add_auth(request)
        signed = {name.lower(): value for name, value in parse_qsl(urlsplit(str(request.url)).query)}
        return json.dumps({"version": _VERSION, "host": host, "user-agent": _AGENT, **signed}, separators=(",", ":")).encode()


class _IamExchange:
    """One message; a broker that accepts it answers with data for its logs."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether the message was given out."""
        return self._is_complete

    def respond(self, _challenge: bytes | None, /) -> bytes:
        """Return the message."""
        self._is_complete = True
        return self._message


def _read_iam(settings: JavaProperties, line: JaasLine) -> IamLogin:
    """The options of Amazon's login module."""
    if settings.get("security.protocol").upper() != "SASL_SSL":
        raise settings.refused("security.protocol", "logins with IAM need SASL_SSL")
    for name in line.options:
        if name.startswith("awsRole"):
            raise settings.refused(line.setting, f"{name} is not supported: name a profile with role_arn in awsProfileName")
    return IamLogin(profile=line.options.get("awsProfileName") or None)


KINDS: Final = (
    LoginKind(
        mechanism="OAUTHBEARER",
        module="OAuthBearerLoginModule",
        needs="OAuthBearerLoginModule required;",
        read=read_tokens,
        handlers=("OAuthBearerLoginCallbackHandler",),
    ),
    LoginKind(
        mechanism="AWS_MSK_IAM",
        module="IAMLoginModule",
        needs="software.amazon.msk.auth.iam.IAMLoginModule required;",
        read=_read_iam,
        handlers=("IAMClientCallbackHandler",),
    ),
)
