"""OAUTHBEARER and AWS_MSK_IAM as kinds of logins. Amazon's clients also take the first for IAM, by a handler of theirs."""

from __future__ import annotations

from typing import Final

from reconciler.backends import BrokerLogin, JaasLine, JavaProperties, LoginKind, java_classes
from reconciler.features.logins.msk_iam import IAM_HANDLERS, IAM_MODULE, IamLogin, iam_login
from reconciler.features.logins.tokens import read_tokens


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
