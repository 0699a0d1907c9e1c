"""Certificates for tests: authorities, and what they sign, in PEM and PKCS12. Everything is made anew and worth nothing."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat, pkcs12
from cryptography.x509.oid import NameOID

_NOW = datetime.datetime.now(datetime.UTC)
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """A certificate with its key, and the certificate of who signed it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    issuer: x509.Certificate

    @property
    def chain(self) -> str:
        """The certificate in PEM."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str | None = None) -> str:
        """The key in PKCS8 PEM, encrypted if there is a password."""
        sealing = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealing).decode()

    def pem(self, password: str | None = None) -> str:
        """Key and certificate, as Kafka's PEM key stores have them."""
        return self.key_pem(password) + self.chain

    def pkcs12(self, password: str, *, others: tuple[x509.Certificate, ...] = ()) -> bytes:
        """A key store; ``others`` come before the issuer."""
        sealing = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"me", self.key, self.certificate, [*others, self.issuer], sealing)


class Authority:
    """Signs certificates. EC keys: an RSA key takes up to a second to make."""

    def __init__(self, name: str = "Test Authority") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        self.certificate = (
            _builder(subject, subject, self.key, _NOW - 30 * _DAY, _NOW + 800 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        """Its own certificate."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def trust_store(self, password: str) -> bytes:
        """A PKCS12 store with its certificate, as Java makes them."""
        entry = pkcs12.PKCS12Certificate(self.certificate, b"ca")
        return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def sign(self, name: str, *, hosts: tuple[str, ...] = ("127.0.0.1",), expired: bool = False) -> Certified:
        """A certificate for a server at ``hosts`` (or for a client, whom nobody asks where he is)."""
        key = ec.generate_private_key(ec.SECP256R1())
        end = _NOW - _DAY if expired else _NOW + 400 * _DAY
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        certificate = (
            _builder(_name(name), self.certificate.subject, key, _NOW - 20 * _DAY, end)
            .add_extension(names, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Certified(certificate=certificate, key=key, issuer=self.certificate)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime.datetime, end: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )
