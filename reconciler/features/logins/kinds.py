"""OAUTHBEARER and AWS_MSK_IAM as kinds of logins; and the latter: logins at Amazon MSK with the credentials of an IAM identity.

botocore finds the credentials (environment, profile, web identity, instance metadata) and signs; this module makes the message
of the public specification (github.com/aws/aws-msk-iam-auth), and the token of MSK's logins with OAUTHBEARER. Amazon's clients
also take OAUTHBEARER for IAM, by a handler of theirs.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from reconciler.backends import BearerTokens, BrokerLogin, JaasLine, JavaProperties, LoginKind, SaslExchange, java_classes
from reconciler.errors import AuthenticationError, MissingPackageError
from reconciler.features.logins.tokens import read_tokens
from reconciler.model import escaped

IAM_MODULE: Final = "IAMLoginModule"
IAM_HANDLERS: Final = ("IAMClientCallbackHandler", "IAMOAuthBearerLoginCallbackHandler")
"""How the names of Amazon's classes for Java's clients end."""

_ACTION: Final = "kafka-cluster:Connect"
_ACTIONS: Final = {
    "DescribeConfigs": "kafka-cluster:DescribeClusterDynamicConfiguration",
    "AlterConfigs": "kafka-cluster:AlterClusterDynamicConfiguration",
}
_SERVICE: Final = "kafka-cluster"
_VALID_SECONDS: Final = 900
_VERSION: Final = "2020_10_22"
_AGENT: Final = "kafka-quotas"
_SESSION: Final = "kafka-quotas"
_REGION: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class IamLogin(BrokerLogin):
    """Which identity: that of a profile, a role to assume, or without both the one that botocore finds first.

    With ``as_token``, the login is MSK's with OAUTHBEARER.
    """

    profile: str | None = None
    role_arn: str | None = None
    role_session: str = _SESSION
    external_id: str | None = field(default=None, repr=False)
    sts_region: str | None = None
    as_token: bool = False
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        return "OAUTHBEARER" if self.as_token else "AWS_MSK_IAM"

    @property
    def actions(self) -> Mapping[str, str]:
        """The actions that Amazon MSK asks for in place of ACL operations."""
        return _ACTIONS

    def opened(self, host: str, /) -> BearerTokens | IamIdentity:
        """The identity's one message, or signed tokens."""
        identity = IamIdentity(self)
        if not self.as_token:
            return identity
        return BearerTokens(token=lambda: iam_token(identity, host), extensions=self.extensions)


def iam_login(options: Mapping[str, str], *, as_token: bool) -> IamLogin:
    """The options of Amazon's login module."""
    return IamLogin(
        profile=options.get("awsProfileName") or None,
        role_arn=options.get("awsRoleArn") or None,
        role_session=options.get("awsRoleSessionName") or _SESSION,
        external_id=options.get("awsRoleExternalId") or None,
        sts_region=options.get("awsStsRegion") or None,
        as_token=as_token,
    )


class IamIdentity:
    """The credentials of a login, fetched again by botocore before they expire. Any thread may ask."""

    def __init__(self, login: IamLogin) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._session: Any = None
        self._credentials: Any = None

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        return self._login.mechanism

    def begin(self, host: str) -> SaslExchange:
        """Begin a login at a server. Raises ``AuthenticationError``, or ``MissingDependencyError`` without the package."""
        return _IamExchange(iam_message(self, host))

    def credentials(self) -> Any:
        """The frozen credentials now. Raises ``AuthenticationError``, or ``MissingDependencyError``."""
        _require_botocore()
        from botocore.exceptions import BotoCoreError, ClientError

        with self._lock:
            try:
                if self._credentials is None:
                    self._credentials = self._find()
                return self._credentials.get_frozen_credentials()
            except (BotoCoreError, ClientError) as error:
                # Of botocore's sentences those about credentials have names and addresses only.
                raise AuthenticationError(f"No AWS credentials: {escaped(str(error))}") from None

    def region(self, host: str) -> str:
        """The region in the broker's name, else botocore's. Raises ``AuthenticationError``."""
        if match := _REGION.search(host):
            return match[1]
        region = self._open().get_config_variable("region")
        if not region:
            raise AuthenticationError(
                f"The AWS region of {escaped(host)} is unknown: its name does not show one. Set AWS_DEFAULT_REGION"
            )
        return str(region)

    def _open(self) -> Any:
        _require_botocore()
        from botocore.session import Session

        if self._session is None:
            self._session = Session(profile=self._login.profile)
        return self._session

    def _find(self) -> Any:
        session, login = self._open(), self._login
        credentials = session.get_credentials()
        if credentials is None:
            raise AuthenticationError(
                "No AWS credentials: neither the environment, a profile, a web identity nor instance metadata has any. "
                "Name a profile with awsProfileName in sasl.jaas.config, or set AWS_PROFILE"
            )
        if login.role_arn is None:
            return credentials
        from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

        extra = {"RoleSessionName": login.role_session}
        if login.external_id is not None:
            extra["ExternalId"] = login.external_id

        def client(name: str, **options: Any) -> Any:
            return session.create_client(name, **{"region_name": login.sts_region, **options})

        fetcher = AssumeRoleCredentialFetcher(client, credentials, login.role_arn, extra_args=extra)
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, method="assume-role")


def iam_message(identity: IamIdentity, host: str) -> bytes:
    """The client's one message of AWS_MSK_IAM: what a signed request would have, in JSON. Raises ``AuthenticationError``."""
    signed = dict(parse_qsl(urlsplit(_signed_url(identity, host, identity.region(host))).query))
    message = {
        "version": _VERSION,
        "host": host,
        "user-agent": _AGENT,
        **{name.lower(): value for name, value in signed.items()},
    }
    return json.dumps(message, separators=(",", ":")).encode()


def iam_token(identity: IamIdentity, host: str) -> str:
    """A token for MSK's OAUTHBEARER: a signed address. Raises ``AuthenticationError``."""
    region = identity.region(host)
    url = f"{_signed_url(identity, f'kafka.{region}.amazonaws.com', region)}&User-Agent={_AGENT}"
    return base64.urlsafe_b64encode(url.encode()).decode("ascii").rstrip("=")


def _signed_url(identity: IamIdentity, host: str, region: str) -> str:
    credentials = identity.credentials()
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest

    request = AWSRequest(method="GET", url=f"https://{host}/", params={"Action": _ACTION})
    SigV4QueryAuth(credentials, _SERVICE, region, expires=_VALID_SECONDS).add_auth(request)
    return str(request.url)


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


def _require_botocore() -> None:
    if importlib.util.find_spec("botocore") is None:
        raise MissingPackageError("Logging in with AWS_MSK_IAM needs", "botocore")


def _read_bearer(settings: JavaProperties, line: JaasLine) -> BrokerLogin:
    if any(text.endswith(IAM_HANDLERS) for text in java_classes(settings).values()):
        return _read_iam(settings, line, as_token=True)
    return read_tokens(settings, line)


def _read_iam(settings: JavaProperties, line: JaasLine, *, as_token: bool = False) -> IamLogin:
    if settings.get("security.protocol").upper() != "SASL_SSL":
        raise settings.refused("security.protocol", "logins with IAM need SASL_SSL")
    return iam_login(line.options, as_token=as_token)


KINDS: Final = (
    LoginKind(
        mechanism="OAUTHBEARER",
        module="OAuthBearerLoginModule",
        needs="OAuthBearerLoginModule required;",
        read=_read_bearer,
        handlers=("OAuthBearerLoginCallbackHandler", *IAM_HANDLERS),
    ),
    LoginKind(
        mechanism="AWS_MSK_IAM",
        module=IAM_MODULE,
        needs="software.amazon.msk.auth.iam.IAMLoginModule required;",
        read=_read_iam,
        handlers=IAM_HANDLERS,
    ),
)
