"""``${env:NAME}``, ``${file:PATH:KEY}`` and ``${dir:PATH:KEY}`` in a properties file, as Kafka's config providers read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.backends.broker.settings import SaslLogin, Security, parse_client_properties
from reconciler.errors import UsageError

SECRET = "s3cret-horse"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
CLASSES = "org.apache.kafka.common.config.provider"


def read(password: str, *further: str) -> Security:
    lines = [
        "# a comment",
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=PLAIN",
        f'sasl.jaas.config={PLAIN} required username="a" \\',
        f'  password="{password}";',
        *further,
    ]
    return parse_client_properties("\n".join(lines).encode(), source="client.properties").security


def password_of(security: Security) -> str:
    assert isinstance(security.sasl, SaslLogin)
    return security.sasl.password


@pytest.fixture
def secrets(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    (tmp_path / "password").write_text(f"{SECRET}\n")
    (tmp_path / "secrets.properties").write_text(f"kafka.password={SECRET}\n")
    (tmp_path / "broken.properties").write_text(f"kafka.password={SECRET}\\uXYZ")
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "further"),
    [
        ("${env:KAFKA_PASSWORD}", ()),
        ("${file:@/secrets.properties:kafka.password}", ()),
        ("${dir:@:password}", ()),
        ("${directory:@:password}", ()),
        ("${vars:KAFKA_PASSWORD}", ("config.providers=vars", f"config.providers.vars.class={CLASSES}.EnvVarConfigProvider")),
        (
            "${f:@/secrets.properties:kafka.password}",
            ("config.providers=f", f"config.providers.f.class={CLASSES}.FileConfigProvider"),
        ),
    ],
)
def test_a_reference_is_replaced_by_its_value(reference, further, secrets):
    found = read(reference.replace("@", str(secrets)), *(line.replace("@", str(secrets)) for line in further))

    assert password_of(found) == SECRET
    assert SECRET not in repr(found)


def test_the_files_of_values_are_among_those_that_a_trusted_reference_vouches_for(secrets):
    assert read(f"${{dir:{secrets}:password}}").files == (str(secrets / "password"),)
    assert read("${env:KAFKA_PASSWORD}").files == ()


@pytest.mark.parametrize(
    ("reference", "further", "reason"),
    [
        ("${env:NOT_SET}", (), "the environment has no variable NOT_SET"),
        ("${file:@/secrets.properties:none}", (), "secrets.properties has no key none"),
        ("${file:@/none.properties:key}", (), "none.properties cannot be read: No such file or directory"),
        ("${file:@/broken.properties:kafka.password}", (), "broken.properties is not a Java properties file"),
        ("${dir:@:none}", (), "cannot be read: No such file or directory"),
        ("${dir:@:../password}", (), "write ${dir:FOLDER:FILE}"),
        ("${vault:kafka:password}", (), "no config provider is called vault. Built in are env, file and dir"),
        (
            "${vault:kafka:password}",
            ("config.providers=vault", "config.providers.vault.class=org.example.VaultProvider"),
            "the provider vault is a Java class, which cannot be used here",
        ),
    ],
)
def test_a_reference_without_a_value_is_named_with_its_line_and_no_value_is_repeated(reference, further, reason, secrets):
    reference = reference.replace("@", str(secrets))
    with pytest.raises(UsageError) as refused:
        read(reference, *further)

    assert str(refused.value).startswith(f"client.properties:4: sasl.jaas.config: {reference} has no value: ")
    assert reason in str(refused.value)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("name", ["security.protocol", "sasl.mechanism", "ssl.truststore.type", "ssl.truststore.location"])
def test_a_value_that_cannot_be_used_is_not_repeated(name, secrets):
    settings = {"security.protocol": "SASL_SSL", "ssl.truststore.location": "/nowhere", name: "${env:KAFKA_PASSWORD}"}
    text = "\n".join(f"{key}={value}" for key, value in settings.items())
    if name != "sasl.mechanism":
        text += f'\nsasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN} required username="a" password="b";'
    with pytest.raises(UsageError) as refused:
        parse_client_properties(text.encode(), source="client.properties")

    assert name in str(refused.value)
    assert SECRET not in str(refused.value).lower()
