"""Key and trust stores in every form that Kafka's clients take, and what is said about those that cannot be read."""

from __future__ import annotations

import ssl
import stat
import tempfile
from pathlib import Path

import pytest

from reconciler.backends.broker.settings import Security, client_properties, principal_name
from reconciler.backends.security.certificates import store_key_pair
from reconciler.backends.security.tls import tls_context
from reconciler.errors import UsageError
from reconciler.java import find_java
from tests.support.certificates import Authority
from tests.support.java_stores import STORE_PASSWORD, keytool, write_all

SECRET = "store-s3cr3t-horse"
CA = Authority()
CLIENT = CA.sign("alice")


def read(**settings: str) -> Security:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return client_properties({"security.protocol": "SSL", **named}, source="f").security


def context(security: Security) -> ssl.SSLContext:
    assert security.tls is not None
    return tls_context(security.tls)


def trusted(security: Security) -> list[bytes]:
    return context(security).get_ca_certs(binary_form=True)


CA_DER = ssl.PEM_cert_to_DER_cert(CA.pem)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Where the tests write, and a temporary folder that must be empty again."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return tmp_path


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.mark.parametrize("declared", ["PKCS12", "JKS", None])
def test_a_pkcs12_trust_store_is_read_whatever_its_type_says_as_java_does(declared, folder):
    file = write(folder / "trust", CA.trust_store(SECRET))
    kind = {"ssl_truststore_type": declared} if declared else {}
    found = read(ssl_truststore_location=file, ssl_truststore_password=SECRET, **kind)
    assert trusted(found) == [CA_DER]
    assert found.files == (file,)


def test_trusted_certificates_inside_the_properties_file():
    assert trusted(read(ssl_truststore_type="PEM", ssl_truststore_certificates=CA.pem)) == [CA_DER]


@pytest.mark.parametrize("form", ["pkcs12", "pem", "pem-encrypted", "inline", "inline-encrypted"])
def test_a_key_store_gives_the_certificate_and_leaves_nothing_behind(form, folder):
    password = SECRET if form.endswith("encrypted") else None
    settings = {"ssl_key_password": password} if password else {}
    if form == "pkcs12":
        file = write(folder / "key.p12", CLIENT.pkcs12(SECRET))
        settings |= {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": file, "ssl_keystore_password": SECRET}
    elif form.startswith("pem"):
        settings |= {"ssl_keystore_type": "PEM", "ssl_keystore_location": write(folder / "key.pem", CLIENT.pem(password))}
    else:
        settings |= {"ssl_keystore_type": "PEM", "ssl_keystore_key": CLIENT.key_pem(password)}
        settings |= {"ssl_keystore_certificate_chain": CLIENT.chain}
    found = read(**settings)
    assert context(found)
    assert principal_name(found) == "CN=alice"
    assert list((folder / "temporary").iterdir()) == []
    assert SECRET not in repr(found)
    assert "PRIVATE KEY" not in repr(found)


def test_the_file_that_python_needs_is_sealed_private_and_removed_even_when_it_cannot_be_used(folder):
    found = read(
        ssl_keystore_type="PKCS12", ssl_keystore_location=write(folder / "k", CLIENT.pkcs12("x")), ssl_keystore_password="x"
    )
    assert found.tls is not None
    pair = found.tls.key_pair
    assert pair is not None
    seen = []

    class Watching(ssl.SSLContext):
        def load_cert_chain(self, certfile, keyfile=None, password=None):
            seen.append((stat.S_IMODE(Path(certfile).stat().st_mode), Path(certfile).read_text()))
            raise ssl.SSLError("no")

    with pytest.raises(ssl.SSLError):
        pair.load_into(Watching(ssl.PROTOCOL_TLS_CLIENT))
    [(mode, text)] = seen
    assert mode == 0o600
    assert "BEGIN ENCRYPTED PRIVATE KEY" in text
    assert "BEGIN PRIVATE KEY" not in text
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"ssl_truststore_type": "PKCS12", "ssl_truststore_location": "@trust.p12"},
            "ssl.truststore.location: .* password is wrong",
        ),
        (
            {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": "@key.p12", "ssl_keystore_password": "wr0ng-horse"},
            "ssl.keystore.location: .* password is wrong",
        ),
        (
            {"ssl_keystore_type": "PKCS12", "ssl_keystore_location": "@trust.p12", "ssl_keystore_password": SECRET},
            "the store contains no private key",
        ),
        ({"ssl_truststore_location": "@ca.pem"}, "is in PEM form: set ssl.truststore.type=PEM"),
        ({"ssl_keystore_type": "PKCS12", "ssl_keystore_location": "@nowhere.p12"}, "No such file"),
        ({"ssl_keystore_type": "PKCS12", "ssl_keystore_location": "@noise.p12"}, "the file is not a PKCS12 store"),
        (
            {"ssl_truststore_location": "@old.jks", "ssl_truststore_password": SECRET},
            "ssl.truststore.location: .* Convert it with keytool -importkeystore -srckeystore OLD .* -deststoretype PKCS12",
        ),
        ({"ssl_keystore_type": "JCEKS", "ssl_keystore_location": "@old.jks"}, "Write PEM or PKCS12"),
        ({"ssl_keystore_type": "PEM", "ssl_keystore_location": "@key.pem"}, "ssl.key.password is wrong"),
        ({"ssl_keystore_type": "PEM", "ssl_keystore_key": "KEY"}, "ssl.keystore.certificate.chain go together"),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_key": "KEY", "ssl_keystore_certificate_chain": CLIENT.chain},
            "ssl.keystore.key: the text is not a private key",
        ),
        (
            {
                "ssl_keystore_type": "PEM",
                "ssl_keystore_key": CA.sign("other").key_pem(),
                "ssl_keystore_certificate_chain": CLIENT.chain,
            },
            "ssl.keystore.key: .* no key that fits",
        ),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_key": CLIENT.key_pem(SECRET), "ssl_keystore_certificate_chain": "x"},
            "the key needs ssl.key.password",
        ),
        ({"ssl_truststore_type": "PEM", "ssl_truststore_certificates": "noise"}, "ssl.truststore.certificates: "),
        (
            {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": CA.pem, "ssl_truststore_location": "@trust.p12"},
            "are both given",
        ),
    ],
)
def test_a_store_that_cannot_be_used_is_named_and_nothing_of_it_is_repeated(settings, said, folder):
    write(folder / "trust.p12", CA.trust_store(SECRET))
    write(folder / "key.p12", CLIENT.pkcs12(SECRET))
    write(folder / "key.pem", CLIENT.pem(SECRET))
    write(folder / "ca.pem", CA.pem)
    write(folder / "old.jks", b"\xfe\xed\xfe\xed" + b"x" * 20)
    write(folder / "noise.p12", b"\x30\x82noise")
    settings = {key: str(folder / value[1:]) if value.startswith("@") else value for key, value in settings.items()}
    with pytest.raises(UsageError, match=said) as refused:
        read(**settings)
    assert "horse" not in str(refused.value)
    assert "-----" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_the_chain_of_a_key_store_is_put_in_the_order_of_who_signed_whom():
    stranger = Authority("Stranger").certificate
    pair = store_key_pair(CLIENT.pkcs12(SECRET, others=(stranger,)), SECRET)
    assert pair.chain.decode() == CLIENT.chain + CA.pem


STORES = Path(__file__).parents[2] / "fixtures" / "stores"
KEYTOOL = find_java().resolve().parent / "keytool"


@pytest.fixture(scope="module", params=["java21", "java25", pytest.param("this Java", marks=pytest.mark.large)])
def stores(request, tmp_path_factory) -> Path:
    """The stores that a ``keytool`` wrote."""
    if request.param != "this Java":
        return STORES / request.param
    folder: Path = tmp_path_factory.mktemp("stores")
    write_all(KEYTOOL, folder)
    return folder


def test_trust_stores_of_keytool_are_read(stores):
    store = str(stores / "trust.pkcs12")
    expected = ssl.PEM_cert_to_DER_cert((stores / "ca.pem").read_text())

    assert trusted(read(ssl_truststore_location=store, ssl_truststore_password=STORE_PASSWORD)) == [expected]
    with pytest.raises(UsageError, match="password is wrong") as refused:
        read(ssl_truststore_location=store, ssl_truststore_password="wr0ng-horse", ssl_truststore_type="PKCS12")
    assert "horse" not in str(refused.value)


@pytest.mark.parametrize("name", ["key.pkcs12", "key-rsa.pkcs12"])
def test_key_stores_of_keytool_are_read(name, stores, folder):
    settings = {"ssl_keystore_location": str(stores / name), "ssl_keystore_type": "PKCS12"}

    found = read(**settings, ssl_keystore_password=STORE_PASSWORD)
    assert context(found)
    assert principal_name(found) == "CN=alice"
    assert STORE_PASSWORD not in repr(found)
    with pytest.raises(UsageError, match="password is wrong"):
        read(**settings, ssl_keystore_password="wr0ng-horse")
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.bulk
def test_the_authorities_that_come_with_java_are_read_without_a_warning(folder):
    """Some of their serial numbers are not positive, which the library of certificates warns of."""
    own, store = KEYTOOL.parents[1] / "lib" / "security" / "cacerts", str(folder / "authorities")
    words = ("-srcstorepass", "changeit", "-deststorepass", "changeit", "-deststoretype", "PKCS12")
    keytool(KEYTOOL, "-importkeystore", "-noprompt", "-srckeystore", str(own), "-destkeystore", store, *words)

    found = read(ssl_truststore_location=store, ssl_truststore_password="changeit")
    assert len(trusted(found)) > 50


def test_a_store_that_was_cut_short_is_no_store(folder):
    store, whole = folder / "trust", (STORES / "java21" / "trust.pkcs12").read_bytes()

    for size in (3, 30, 200):
        store.write_bytes(whole[:size])
        with pytest.raises(UsageError, match=r"ssl\.truststore\.location: .*not a PKCS12 store"):
            read(ssl_truststore_location=str(store), ssl_truststore_password=STORE_PASSWORD)
