"""SASL logins of a ``client.properties`` file: which mechanisms there are, and what each needs.

Free of any client library. Values are secrets until proven otherwise: no message repeats one that may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from reconciler.backends.security.exchange import ExchangeLogin
from reconciler.backends.security.kerberos import KERBEROS_MODULE, KerberosLogin, kerberos_login
from reconciler.backends.security.properties_file import JaasLine, JavaProperties, parse_jaas
from reconciler.hooks import added, load

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

    @property
    def actions(self) -> Mapping[str, str]:
        """None: rights are ACLs."""
        return {}

    def known_name(self) -> str | None:
        """The username."""
        return self.username

    def opened(self, _host: str) -> SaslLogin:
        """Itself."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerTokens:
    """Gives the token of now, and Kafka's extensions of a login. ``token`` raises ``AuthenticationError``."""

    token: Callable[[], str]
    extensions: Mapping[str, str]


OpenedLogin: TypeAlias = SaslLogin | BearerTokens | ExchangeLogin
"""A password, tokens, or messages to and fro."""


class BrokerLogin(Protocol):
    """What a file of properties states about a login."""

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        ...

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who one is."""
        ...

    @property
    def actions(self) -> Mapping[str, str]:
        """By ACL operation, what a policy of the identity has to allow in its place; empty where rights are ACLs."""
        ...

    def known_name(self) -> str | None:
        """The name of the principal without ``User:``, ``None`` when the settings do not show it."""
        ...

    def opened(self, host: str) -> OpenedLogin:
        """What a connection needs of it; ``host`` is that of a bootstrap server."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginKind:
    """A mechanism. ``read`` makes a login of the settings and raises ``UsageError`` naming the one that cannot be used."""

    mechanism: str
    module: str
    """How the class name of its login module ends."""
    needs: str
    """What ``sasl.jaas.config`` states, in words or as an example."""
    read: Callable[[JavaProperties, JaasLine], BrokerLogin]
    handlers: tuple[str, ...] = ()
    """How the names of Java's classes end whose work is done here."""


def read_login(settings: JavaProperties) -> BrokerLogin:
    """What the ``sasl.*`` settings state. Raises ``UsageError`` naming the one that cannot be used."""
    mechanism = settings.get("sasl.mechanism", "GSSAPI").upper()
    kind = next((kind for kind in _kinds() if kind.mechanism == mechanism), None)
    if kind is None:
        known = ", ".join(kind.mechanism for kind in _kinds())
        raise settings.refused("sasl.mechanism", f"{mechanism} is not supported here. Supported are {known}")
    for name, text in java_classes(settings).items():
        if not text.endswith(kind.handlers or ("\0",)):
            raise settings.refused(name, "Java classes cannot be used here")
    return kind.read(settings, _jaas(settings, kind))


def java_classes(settings: JavaProperties) -> dict[str, str]:
    """The classes of a Java client that the settings name, by setting."""
    return {name: text for name in _JAVA_CLASSES if (text := settings.get(name))}


def _kinds() -> Iterator[LoginKind]:
    yield from _KINDS
    for place in added("LOGINS"):
        yield from load(place)


def _password(settings: JavaProperties, line: JaasLine) -> SaslLogin:
    if line.options.get("tokenauth", "").lower() == "true":
        raise settings.refused(_JAAS, "delegation tokens (tokenauth) are not supported here")
    if not line.options.get("username") or "password" not in line.options:
        raise settings.refused(_JAAS, "the username or the password is missing")
    mechanism = settings.get("sasl.mechanism").upper()
    return SaslLogin(mechanism=mechanism, username=line.options["username"], password=line.options["password"])


def _jaas(settings: JavaProperties, kind: LoginKind) -> JaasLine:
    text = settings.get(_JAAS)
    if not text:
        raise settings.refused(_JAAS, f"the value is missing, and {kind.mechanism} needs {kind.needs}")
    try:
        line = parse_jaas(text)
    except ValueError as error:
        raise settings.refused(_JAAS, f"the value cannot be read: {error}") from None
    if not line.module.endswith(kind.module):
        raise settings.refused(_JAAS, f"the login module is not the {kind.module} that {kind.mechanism} takes")
    return line


def _kerberos(settings: JavaProperties, line: JaasLine) -> KerberosLogin:
    service = settings.get(_SERVICE_NAME) or line.options.get("serviceName", "")
    if not service:
        raise settings.refused(_SERVICE_NAME, "the value is missing: write the first part of the brokers' principals, as kafka")
    try:
        return kerberos_login(line.options, service_name=service, setting=_JAAS)
    except ValueError as error:
        raise settings.refused(_JAAS, str(error)) from None


def _with_password(mechanism: str, module: str) -> LoginKind:
    return LoginKind(mechanism=mechanism, module=module, needs="a user name and a password", read=_password)


_KINDS: Final = (
    _with_password("PLAIN", "PlainLoginModule"),
    _with_password("SCRAM-SHA-256", "ScramLoginModule"),
    _with_password("SCRAM-SHA-512", "ScramLoginModule"),
    LoginKind(
        mechanism="GSSAPI",
        module=KERBEROS_MODULE,
        needs="com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;",
        read=_kerberos,
    ),
)
