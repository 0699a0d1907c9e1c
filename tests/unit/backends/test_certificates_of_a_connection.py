"""Which certificates a connection has, and when they end, whatever form their stores have."""

from __future__ import annotations

import datetime
import ssl

import pytest

from reconciler.backends.broker.settings import client_properties
from reconciler.backends.security.certificates import local_certificates, server_certificates
from reconciler.backends.security.tls import Tls
from reconciler.model import Certificate, CertificateOwner
from tests.support.certificates import Authority

SECRET = "s3cr3t"
CA, OTHER = Authority("Old Authority", days=20), Authority("New Authority")
CLIENT = CA.sign("alice", days=5)


def named(found: tuple[Certificate, ...]) -> list[tuple[str, str, datetime.datetime]]:
    return [(each.owner.value, each.name, each.ends) for each in found]


EXPECTED = [
    ("client", "CN=alice", CLIENT.certificate.not_valid_after_utc),
    ("authority", "CN=Old Authority", CA.certificate.not_valid_after_utc),
]


@pytest.mark.parametrize("form", ["pem", "pkcs12", "inline"])
def test_the_clients_certificate_and_its_authorities_are_read(form, tmp_path):
    settings = {"security.protocol": "SSL"}
    kind = "PKCS12" if form == "pkcs12" else "PEM"
    settings |= {"ssl.keystore.type": kind, "ssl.truststore.type": kind}
    if form == "inline":
        settings |= {"ssl.truststore.certificates": CA.pem, "ssl.keystore.key": CLIENT.key_pem()}
        settings |= {"ssl.keystore.certificate.chain": CLIENT.chain + CA.pem}
    else:
        trust, key = tmp_path / "trust", tmp_path / "key"
        trust.write_bytes(CA.trust_store(SECRET) if form == "pkcs12" else CA.pem.encode())
        key.write_bytes(CLIENT.pkcs12(SECRET) if form == "pkcs12" else CLIENT.pem(SECRET).encode())
        settings |= {"ssl.truststore.location": str(trust), "ssl.keystore.location": str(key), "ssl.key.password": SECRET}
        settings |= {"ssl.truststore.password": SECRET, "ssl.keystore.password": SECRET} if form == "pkcs12" else {}
    tls = client_properties(settings, source="f").security.tls

    assert tls is not None
    assert named(local_certificates(tls)) == EXPECTED


def test_each_of_several_authorities_is_read_and_what_is_between_them_is_not(tmp_path):
    broken = "-----BEGIN CERTIFICATE-----\nbm8gY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"
    noise = "-----BEGIN CERTIFICATE-----\n\xe4\xf6\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(f"# old\n{CA.pem}{broken}{noise}\n# new\n{OTHER.pem}")

    found = local_certificates(Tls(ca_file=str(tmp_path / "ca.pem")))
    assert [each.name for each in found] == ["CN=Old Authority", "CN=New Authority"]


def test_servers_are_named_by_their_addresses():
    der = ssl.PEM_cert_to_DER_cert(CLIENT.chain)
    found = server_certificates({"b2:9093": der, "b1:9093": der, "b3:9093": b"noise"})

    assert [(each.owner, each.name) for each in found] == [
        (CertificateOwner.SERVER, "b1:9093"),
        (CertificateOwner.SERVER, "b2:9093"),
    ]
    assert {each.ends for each in found} == {CLIENT.certificate.not_valid_after_utc}
