"""SASL logins of a ``client.properties`` file: which mechanisms there are, and what each needs.

Free of any client library. Values are secrets until proven otherwise: no message repeats one that may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from reconciler.backends.broker.msk_iam import IAM_HANDLERS, IAM_MODULE, IamLogin, iam_login
from reconciler.backends.broker.tokens import TokenEndpoint, TokenFile, read_tokens
from reconciler.backends.security.kerberos import KERBEROS_MODULE, KerberosLogin, kerberos_login
from reconciler.backends.security.properties_file import JaasLine, JavaProperties, parse_jaas

_PASSWORDS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OAUTH: Final = "OAUTHBEARER"
_KERBEROS: Final = "GSSAPI"
_IAM: Final = "AWS_MSK_IAM"
_MODULES: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    _OAUTH: "OAuthBearerLoginModule",
    _KERBEROS: KERBEROS_MODULE,
    _IAM: IAM_MODULE,
}
"""By mechanism, how the class name of its login module ends."""
_EXAMPLES: Final = {
    _OAUTH: "OAuthBearerLoginModule required;",
    _KERBEROS: "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;",
    _IAM: "software.amazon.msk.auth.iam.IAMLoginModule required;",
}
_HANDLERS: Final = {_OAUTH: ("OAuthBearerLoginCallbackHandler", *IAM_HANDLERS), _IAM: IAM_HANDLERS}
"""By mechanism, how the names of Java's classes end whose work is done here."""
_JAVA_CLASSES: Final = ("sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class")
_JAAS: Final = "sasl.jaas.config"
_SERVICE_NAME: Final = "sasl.kerberos.service.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslLogin:
    """A name and password for SASL; ``mechanism`` is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. The password is in no ``repr``."""

    mechanism: str
    username: str
    password: str = field(repr=False)

    @property
    def files(self) -> tuple[str, ...]:
        """None: both stand in the properties."""
        return ()


BrokerLogin: TypeAlias = SaslLogin | TokenFile | TokenEndpoint | KerberosLogin | IamLogin


def read_login(settings: JavaProperties) -> BrokerLogin:
    """What the ``sasl.*`` settings state. Raises ``UsageError`` naming the one that cannot be used."""
    mechanism = settings.get("sasl.mechanism", _KERBEROS).upper()
    if mechanism not in _MODULES:
        raise settings.refused("sasl.mechanism", f"{mechanism} is not supported here. Supported are {', '.join(_MODULES)}")
    handlers = {name: text for name in _JAVA_CLASSES if (text := settings.get(name))}
    for name, text in handlers.items():
        if not text.endswith(_HANDLERS.get(mechanism, ("\0",))):
            raise settings.refused(name, "Java classes cannot be used here")
    line = _jaas(settings, mechanism)
    if mechanism == _IAM:
        _require_tls(settings)
        return iam_login(line.options, as_token=False)
    if mechanism == _OAUTH and any(text.endswith(IAM_HANDLERS) for text in handlers.values()):
        _require_tls(settings)
        return iam_login(line.options, as_token=True)
    if mechanism == _OAUTH:
        return read_tokens(settings, line)
    if mechanism == _KERBEROS:
        return _kerberos(settings, line)
    if line.options.get("tokenauth", "").lower() == "true":
        raise settings.refused(_JAAS, "delegation tokens (tokenauth) are not supported here")
    if not line.options.get("username") or "password" not in line.options:
        raise settings.refused(_JAAS, "the username or the password is missing")
    return SaslLogin(mechanism=mechanism, username=line.options["username"], password=line.options["password"])


def _require_tls(settings: JavaProperties) -> None:
    if settings.get("security.protocol").upper() != "SASL_SSL":
        raise settings.refused("security.protocol", "logins with IAM need SASL_SSL")


def _jaas(settings: JavaProperties, mechanism: str) -> JaasLine:
    module = _MODULES[mechanism]
    text = settings.get(_JAAS)
    if not text:
        needs = "a user name and a password" if mechanism in _PASSWORDS else _EXAMPLES[mechanism]
        raise settings.refused(_JAAS, f"the value is missing, and {mechanism} needs {needs}")
    try:
        line = parse_jaas(text)
    except ValueError as error:
        raise settings.refused(_JAAS, f"the value cannot be read: {error}") from None
    if not line.module.endswith(module):
        raise settings.refused(_JAAS, f"the login module is not the {module} that {mechanism} takes")
    return line


def _kerberos(settings: JavaProperties, line: JaasLine) -> KerberosLogin:
    service = settings.get(_SERVICE_NAME) or line.options.get("serviceName", "")
    if not service:
        raise settings.refused(_SERVICE_NAME, "the value is missing: write the first part of the brokers' principals, as kafka")
    try:
        return kerberos_login(line.options, service_name=service, setting=_JAAS)
    except ValueError as error:
        raise settings.refused(_JAAS, str(error)) from None
