"""Kerberos: the settings of a login, and the client's side of it.

SASL GSSAPI (RFC 4752) runs with the package gssapi. Brokers and ZooKeeper take the same. kafka-python's own class knows only the
ticket cache of the process and lets errors of the package through to the caller. Connections are not encrypted by Kerberos:
neither Kafka nor ZooKeeper offers that.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from reconciler.backends import BrokerLogin, JaasLine, JavaProperties, LoginKind, SaslExchange
from reconciler.errors import AuthenticationError, MissingPackageError
from reconciler.http import LateAnswerError, result_until
from reconciler.model import escaped

_SERVICE_NAME: Final = "sasl.kerberos.service.name"
_OF_ZOOKEEPER: Final = "zookeeper.sasl.jaas.config"
_REMARK: Final = ", which needs MIT Kerberos: on Debian libkrb5-dev and gcc"
_NO_LAYER: Final = b"\x01\x00\x00\x00"
"""The answer to the server's offer of layers: authentication only, so no longest message."""
_OFFER_BYTES: Final = 4

_EXPIRED: Final = 2529638944
_ANSWER_S: Final = 10.0
"""As long as a connection may take."""
_KDC_REMEDY: Final = "check that it is up, and [realms] in krb5.conf"
_NO_TICKET: Final = frozenset({2529639053, 2529639107})
_WRONG_KEY: Final = "the KDC refuses the key of the client: the keytab is older than the principal's last password, or another's"
_REASONS: Final = {
    2529638949: "the clocks of this machine and of the KDC or the server differ too much: synchronise them",
    2529638918: "the KDC does not know the client principal: check principal in {setting}",
    2529638919: "the KDC does not know the service principal: check sasl.kerberos.service.name and the server's host name",
    2529638936: _WRONG_KEY,
    2529638943: _WRONG_KEY,
    2529639066: "krb5.conf has no KDC for the realm",
    2529639068: f"no KDC of the realm answers: {_KDC_REMEDY}",
    2529639093: "the keytab has no key of the client principal",
}
"""By the minor code of MIT Kerberos."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin(BrokerLogin):
    """Who logs in: the principal of a keytab, or the owner of the tickets in a cache (without a path the process's own).

    ``service_name`` is the first part of the servers' principals, ``setting`` the property to name in messages.
    """

    service_name: str
    mechanism: str = "GSSAPI"
    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None
    setting: str = "sasl.jaas.config"

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who one is. The ticket cache is the user's own."""
        return () if self.keytab is None else (self.keytab,)

    def known_name(self) -> str | None:
        """Return the name that Kafka's default rules make of the principal, ``None`` when only the ticket shows it."""
        return None if self.principal is None else self.principal.partition("@")[0].partition("/")[0]

    def opened(self, _host: str, /) -> KerberosLogin:
        """Itself."""
        return self

    def begin(self, host: str) -> SaslExchange:
        """Begin a login at a server. Raises ``AuthenticationError``, or ``MissingDependencyError`` without the package."""
        return _KerberosExchange(self, host)


def kerberos_login(settings: JavaProperties, line: JaasLine) -> KerberosLogin:
    """Read the options of Java's login module. Raises ``UsageError``."""
    options, setting = line.options, line.setting
    if setting == _OF_ZOOKEEPER:
        service_name = settings.get("zookeeper.sasl.client.username") or "zookeeper"
    else:
        service_name = settings.get(_SERVICE_NAME) or options.get("serviceName", "")
    if not service_name:
        raise settings.refused(_SERVICE_NAME, "the value is missing: write the first part of the brokers' principals, as kafka")
    if options.get("useKeyTab", "").lower() == "true":
        keytab, principal = options.get("keyTab", ""), options.get("principal", "")
        if not keytab or principal in ("", "*"):
            raise settings.refused(setting, "useKeyTab=true needs keyTab and principal")
        return KerberosLogin(service_name=service_name, principal=principal, keytab=keytab.removeprefix("FILE:"), setting=setting)
    if options.get("useTicketCache", "").lower() != "true":
        why = "write useKeyTab=true with keyTab and principal, or useTicketCache=true: no password is asked for"
        raise settings.refused(setting, why)
    return KerberosLogin(
        service_name=service_name,
        principal=options.get("principal") or None,
        ticket_cache=options.get("ticketCache") or None,
        setting=setting,
    )


class _KerberosExchange:
    """Makes a security context with the server, then declines its layers."""

    def __init__(self, login: KerberosLogin, host: str) -> None:
        self._login = login
        self._service = f"{login.service_name}@{host}"
        try:
            import gssapi
        except (ImportError, OSError) as error:  # OSError: the package is there, MIT Kerberos is not
            raise MissingPackageError("Logging in with Kerberos needs", "gssapi", remark=_REMARK) from error
        self._gssapi: Any = gssapi
        self._context = self._guarded(self._make_context)
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether the layers were declined."""
        return self._is_complete

    def respond(self, challenge: bytes | None, /) -> bytes:
        """The next token. Raises ``AuthenticationError``."""
        if not self._context.complete:
            return self._guarded(lambda: self._context.step(challenge)) or b""
        offer = self._guarded(lambda: self._context.unwrap(challenge or b"").message)
        if len(offer) != _OFFER_BYTES or not offer[0] & _NO_LAYER[0]:
            raise self._failed("the server insists on encrypting the connection with Kerberos, which Kafka does not do")
        self._is_complete = True
        return bytes(self._guarded(lambda: self._context.wrap(_NO_LAYER, encrypt=False).message))

    def _make_context(self) -> Any:
        gssapi, login = self._gssapi, self._login
        name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal) if login.principal else None
        store: dict[str, str] = {}
        if login.keytab is not None:
            # A cache in memory, for the cache of the process may have another client's tickets.
            store = {"client_keytab": f"FILE:{login.keytab}", "ccache": f"MEMORY:kafka-quotas-{secrets.token_hex(8)}"}
        elif login.ticket_cache is not None:
            store = {"ccache": login.ticket_cache}
        credentials = gssapi.Credentials(name=name, usage="initiate", store=store or None)
        flags = gssapi.RequirementFlag
        return gssapi.SecurityContext(
            name=gssapi.Name(self._service, gssapi.NameType.hostbased_service),
            creds=credentials,
            usage="initiate",
            mech=gssapi.MechType.kerberos,
            flags=flags.mutual_authentication | flags.integrity,
        )

    def _guarded(self, act: Callable[[], Any]) -> Any:
        """The result of ``act``. It gets a thread of its own, which may stay behind: MIT Kerberos tries a silent KDC for 50 s."""
        try:
            return result_until(time.monotonic() + _ANSWER_S, act)
        except self._gssapi.exceptions.GSSError as error:
            raise self._failed(self._reason(error)) from None
        except LateAnswerError:
            raise self._failed(f"no KDC of the realm answers within {_ANSWER_S:.0f} s: {_KDC_REMEDY}") from None

    def _reason(self, error: Any) -> str:
        minor = error.min_code & 0xFFFFFFFF
        if minor == _EXPIRED or isinstance(error, self._gssapi.exceptions.ExpiredCredentialsError):
            return f"the ticket has expired: run kinit, or name a keytab in {self._login.setting}"
        if minor in _NO_TICKET and self._login.keytab is not None:
            return "the keytab cannot be read, or has no key of this principal: klist -k shows its keys"
        if minor in _NO_TICKET:
            return f"the ticket cache is empty: run kinit, or name a keytab in {self._login.setting}"
        if reason := _REASONS.get(minor):
            return reason.format(setting=self._login.setting)
        texts = error.get_all_statuses(error.min_code, is_maj=False) or error.get_all_statuses(error.maj_code, is_maj=True)
        return escaped("; ".join(text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in texts))

    def _failed(self, reason: str) -> AuthenticationError:
        place = self._login.keytab or self._login.ticket_cache
        client = escaped(self._login.principal or "the owner of the ticket") + (f" ({escaped(place)})" if place else "")
        return AuthenticationError(f"The Kerberos login of {client} at {escaped(self._service)} failed: {reason}")


KINDS: Final = (
    LoginKind(
        mechanism="GSSAPI",
        module="Krb5LoginModule",
        needs="com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;",
        read=kerberos_login,
    ),
)
