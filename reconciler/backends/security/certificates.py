"""When the certificates of an encrypted connection end: the client's own, those it trusts, and what servers showed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from cryptography import x509

from reconciler.backends.security.tls import Tls, allow_old_serials
from reconciler.model import Certificate, CertificateOwner

_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def local_certificates(tls: Tls) -> tuple[Certificate, ...]:
    """The client's own certificate and the authorities of its trust store, not those of the system. Raises ``OSError``."""
    own = tls.key_pair.chain if tls.key_pair is not None else _content(tls.certificate_file)
    trusted = tls.ca_pem.encode() if tls.ca_pem else _content(tls.ca_file)
    client = _read_each(_PEM.findall(own)[:1], CertificateOwner.CLIENT, x509.load_pem_x509_certificate)
    authorities = _read_each(_PEM.findall(trusted), CertificateOwner.AUTHORITY, x509.load_pem_x509_certificate)
    return (*client, *authorities)


def server_certificates(shown: Mapping[str, bytes]) -> tuple[Certificate, ...]:
    """Those that servers showed, in DER by their addresses."""
    return tuple(
        Certificate(owner=CertificateOwner.SERVER, name=address, ends=certificate.ends)
        for address, content in sorted(shown.items())
        for certificate in _read_each((content,), CertificateOwner.SERVER, x509.load_der_x509_certificate)
    )


def _content(file: str | None) -> bytes:
    return b"" if file is None else Path(file).read_bytes()


def _read_each(
    contents: Iterable[bytes], owner: CertificateOwner, load: Callable[[bytes], x509.Certificate]
) -> Iterator[Certificate]:
    """What cannot be read is left out: OpenSSL decides whether it can be used."""
    for content in contents:
        try:
            with allow_old_serials():
                certificate = load(content)
            yield Certificate(owner=owner, name=certificate.subject.rfc4514_string(), ends=certificate.not_valid_after_utc)
        except ValueError:
            continue
