"""The value grammar, case by case: the number, or which refusal with which suggestion."""

import pytest

from reconciler.formats.units import ValueRefusedError, parse_value, value_text
from reconciler.model.quota import QuotaKey

BYTES = QuotaKey.PRODUCER_BYTE_RATE
PERCENT = QuotaKey.REQUEST_PERCENTAGE
MUTATIONS = QuotaKey.CONTROLLER_MUTATION_RATE
CONNECTIONS = QuotaKey.CONNECTION_CREATION_RATE


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        (BYTES, "20", 20),
        (BYTES, "1e6", 1_000_000),
        (BYTES, "1E+6", 1_000_000),
        (BYTES, "20MiB", 20 * 1024**2),
        (BYTES, "20 MiB", 20 * 1024**2),
        (BYTES, "20MiB/s", 20 * 1024**2),
        (BYTES, "1.5KB", 1500),
        (BYTES, "0.5KiB", 512),
        (BYTES, "1500B", 1500),
        (BYTES, "1TB", 10**12),
        (BYTES, "1TiB/s", 1024**4),
        (BYTES, "9223372036854775808", 2**63),
        (BYTES, "1.0", 1),
        (PERCENT, "200", 200),
        (PERCENT, "200%", 200),
        (PERCENT, "12.5 %", 12.5),
        (PERCENT, "0.1", 0.1),
        (MUTATIONS, "0.5", 0.5),
        (MUTATIONS, "5e-1", 0.5),
        (CONNECTIONS, "2147483647", 2147483647),
    ],
)
def test_a_value_is_the_number_that_the_broker_holds(key, text, number):
    written = parse_value(key, text)

    assert written.number == number
    assert written.text == text


@pytest.mark.parametrize(
    ("key", "text", "problem", "hint"),
    [
        (BYTES, "-1", "value-not-positive", "Without the key"),
        (BYTES, "0", "value-not-positive", "Without the key"),
        (BYTES, "0MiB", "value-not-positive", "Without the key"),
        (PERCENT, "0.0", "value-not-positive", "Without the key"),
        (BYTES, "9223372036854775807", "value-not-exact", "9223372036854775808"),
        (BYTES, "9007199254740993", "value-not-exact", "9007199254740992"),
        (BYTES, "1e19", "value-too-large", "Without the key"),
        (BYTES, "1e999999999", "value-too-large", "Without the key"),
        (BYTES, "9223372036854775809", "value-too-large", "Without the key"),
        (CONNECTIONS, "2147483648", "value-too-large", "Without the key"),
        (PERCENT, "1e309", "value-too-large", "Without the key"),
        (PERCENT, "1e-400", "value-not-exact", "too small"),
        (PERCENT, "1e-999999999", "value-not-exact", "too small"),
        (PERCENT, "33.333333333333333333", "value-not-exact", "33.333333333333336"),
        (BYTES, "0.5", "value-fractional", "nearest is 1"),
        (BYTES, "1e-7", "value-fractional", "whole numbers"),
        (BYTES, "0.1MiB", "value-fractional", "104857.6"),
        (CONNECTIONS, "1.5", "value-fractional", "nearest is 2"),
        (BYTES, "10kb", "unknown-unit", "Did you mean 10KB"),
        (BYTES, "10Mb", "unknown-unit", "Did you mean 10MB"),
        (BYTES, "10mib", "unknown-unit", "Did you mean 10MiB"),
        (BYTES, "10M", "unknown-unit", "Did you mean 10MB or 10MiB"),
        (BYTES, "10MBps", "unknown-unit", "Did you mean 10MB/s"),
        (BYTES, "10parsec", "unknown-unit", "The units are"),
        (BYTES, "10%", "unknown-unit", "The units are"),
        (PERCENT, "10MiB", "unknown-unit", "with %"),
        (CONNECTIONS, "10/s", "value-syntax", "Write a number"),
        (MUTATIONS, "10 %", "unknown-unit", "takes no unit"),
        (BYTES, "007", "value-syntax", "leading zeros"),
        (BYTES, "1,000", "value-syntax", "separators"),
        (BYTES, "+5", "value-syntax", "without sign"),
        (BYTES, "5 ", "value-syntax", "'5'"),
        (BYTES, "", "value-syntax", "Write a number"),
        (BYTES, "lots", "value-syntax", "10MiB"),
        (BYTES, "unlimited", "value-not-finite", "Without the key"),
        (PERCENT, ".inf", "value-not-finite", "Without the key"),
        (PERCENT, "NaN", "value-not-finite", "Without the key"),
        (BYTES, "٣", "value-syntax", "Write a number"),
        (BYTES, "1" * 5000, "value-syntax", "Write a number"),
    ],
)
def test_a_value_that_kafka_would_refuse_or_bend_is_refused_with_a_suggestion(key, text, problem, hint):
    with pytest.raises(ValueRefusedError) as refused:
        parse_value(key, text)

    assert refused.value.id == problem
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("key", "number", "text"),
    [
        (BYTES, 10485760.0, "10MiB"),
        (BYTES, 1500.0, "1500B"),
        (BYTES, 5_000_000.0, "5MB"),
        (BYTES, 1024.0, "1KiB"),
        (BYTES, 1.0, "1B"),
        (PERCENT, 12.5, "12.5"),
        (PERCENT, 200.0, "200"),
        (CONNECTIONS, 50.0, "50"),
    ],
)
def test_a_number_is_written_as_people_write_it(key, number, text):
    assert value_text(key, number) == text
