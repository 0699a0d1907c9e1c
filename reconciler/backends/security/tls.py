"""What TLS needs, and what that means for Python's ``ssl``, without leaving a secret on the disk.

``ssl`` takes a private key from a file only. The key is sealed with a passphrase that exists in this process alone, and its file
(0600) lives for one call: whatever happens to the file, it is not a secret.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedKeyPair:
    """A certificate chain (the first is one's own) and its private key, sealed; all PEM."""

    chain: bytes = field(repr=False)
    sealed_key: bytes = field(repr=False)
    passphrase: str = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make the context present it. Raises ``ssl.SSLError`` when key and certificate do not belong together."""
        descriptor, name = tempfile.mkstemp(prefix="kafka-quotas-", suffix=".pem")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.chain + self.sealed_key)
            context.load_cert_chain(name, password=self.passphrase)
        finally:
            Path(name).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS. Without ``ca_file`` and ``ca_pem`` the system's authorities are trusted; certificate and key are for mutual TLS.

    Files are PEM; what came in another form is in ``ca_pem`` and ``key_pair``. ``files`` names every file that was read.
    """

    ca_file: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    key_pair: SealedKeyPair | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_host_name: bool = True
    files: tuple[str, ...] = ()


def tls_context(tls: Tls) -> ssl.SSLContext:
    """What the settings mean for Python. Raises ``OSError`` (of which ``ssl.SSLError`` is one) or ``ValueError`` for bad ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_host_name
    if tls.ca_pem:
        context.load_verify_locations(cadata=tls.ca_pem)
    elif tls.ca_file is not None:
        context.load_verify_locations(tls.ca_file)
    elif tls.ca_pem is None:
        context.load_default_certs()
    if tls.key_pair is not None:
        tls.key_pair.load_into(context)
    elif tls.certificate_file is not None:
        # An empty password keeps OpenSSL from asking for one at the terminal.
        context.load_cert_chain(tls.certificate_file, password=tls.key_password or "")
    return context
