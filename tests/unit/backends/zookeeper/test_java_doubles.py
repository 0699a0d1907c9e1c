"""Doubles as Java prints them: values printed by a JVM."""

import math

import pytest

from reconciler.backends.zookeeper.node_text import java_text, parse_java

PRINTED = {
    0.0: "0.0",
    1.0: "1.0",
    12.5: "12.5",
    100.0: "100.0",
    1e-5: "1.0E-5",
    0.001: "0.001",
    9.99e-4: "9.99E-4",
    9999999.0: "9999999.0",
    1e7: "1.0E7",
    12345678.9: "1.23456789E7",
    123456.789: "123456.789",
    0.1 + 0.2: "0.30000000000000004",
    1e22: "1.0E22",
    1e23: "1.0E23",
    5e-324: "4.9E-324",
    2.2250738585072014e-308: "2.2250738585072014E-308",
    1.7976931348623157e308: "1.7976931348623157E308",
    math.inf: "Infinity",
}


@pytest.mark.parametrize(("value", "text"), PRINTED.items())
def test_a_double_has_the_text_that_java_gives_it(value: float, text: str) -> None:
    assert java_text(value) == text
    assert java_text(-value) == f"-{text}"
    assert parse_java(text) == value


def test_not_a_number_is_printed_without_a_sign() -> None:
    assert java_text(math.nan) == java_text(-math.nan) == "NaN"
    assert math.isnan(parse_java("NaN") or 0.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" 12 ", 12.0), ("12d", 12.0), ("12.5f", 12.5), ("+3", 3.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1E-2", 0.01),
        ("0x1p3", 8.0), ("0X.8P1d", 1.0), ("1e400", math.inf), ("-0x1p9999", -math.inf), ("+Infinity", math.inf),
        ("5.9028721132322368E16", 5.902872113232237e16),
    ],
)  # fmt: skip
def test_whatever_java_parses_is_read(text: str, value: float) -> None:
    assert parse_java(text) == value


@pytest.mark.parametrize("text", ["", " ", "abc", "1_0", "1,5", "0x1", "inf", "nan", "INFINITY", "1e", "--1", "٣", "12 d", "+-1"])
def test_what_java_does_not_parse_is_not_read(text: str) -> None:
    assert parse_java(text) is None
