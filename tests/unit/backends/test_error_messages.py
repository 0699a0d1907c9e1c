"""The client library's errors, in words."""

from __future__ import annotations

import pytest
from kafka import errors

from reconciler.backends.broker.error_messages import connection_advice, describe_error, is_tls_failure

WRONG_HOST = "IP address mismatch, certificate is not valid for '127.0.0.1'."
TLS = f"Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {WRONG_HOST} (_ssl.c:1006)"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.KafkaConnectionError("111 ECONNREFUSED"), "connection refused"),
        (errors.KafkaConnectionError("113 EHOSTUNREACH"), "no route to host"),
        (errors.KafkaConnectionError("unable to connect: KafkaConnectionError: 111 ECONNREFUSED"), "unable to connect: .*"),
        (errors.KafkaConnectionError("DNS Resolution failure"), "unknown host"),
        (errors.KafkaConnectionError("Connection timed out"), "no answer in time"),
        (errors.KafkaConnectionError("socket disconnected"), "the server closed the connection"),
        (errors.KafkaConnectionError(ConnectionResetError(104, "Connection reset by peer")), "the server closed the connection"),
        (errors.KafkaConnectionError(), "the server closed the connection"),
        (errors.RequestTimedOutError("Request timed out after 500 ms"), "no answer in time"),
        (errors.KafkaTimeoutError("x"), "no answer in time"),
        (errors.InvalidReceiveError("Invalid frame length: 1213486160"), "what it answers is not the Kafka protocol"),
        (errors.CorrelationIdError("x"), "what it answers is not the Kafka protocol"),
        (errors.UnsupportedSaslMechanismError(), ".*mechanism.*"),
        (
            errors.SaslAuthenticationFailedError("SaslAuthenticationFailedError: Authentication failed: Invalid username"),
            "Authentication failed: Invalid username",
        ),
        (errors.KafkaConnectionError(TLS), "the server's certificate is for another host than '127.0.0.1'. .*"),
        (errors.KafkaConnectionError(TLS.replace(WRONG_HOST, "certificate has expired")), "the server's certificate has expired"),
        (
            errors.KafkaConnectionError(TLS.replace(WRONG_HOST, "self-signed certificate in certificate chain")),
            ".*not trusted here.*",
        ),
        (errors.KafkaConnectionError(TLS.replace(WRONG_HOST, "something new")), "certificate verify failed: something new"),
        (
            errors.KafkaConnectionError(
                "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required (_ssl.c:2580)"
            ),
            "the server refused the client certificate",
        ),
        (
            errors.KafkaConnectionError("Handshake failed: [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"),
            "what answers does not speak TLS",
        ),
        (errors.SaslAuthenticationFailedError("\x1b[2Jgone"), r"\\u001b\[2Jgone"),
    ],
)
def test_each_error_is_told_in_a_few_words(error, text):
    import re

    assert re.fullmatch(text, describe_error(error)), describe_error(error)


def test_a_failed_handshake_is_known_before_and_after_it():
    assert is_tls_failure(errors.KafkaConnectionError(TLS))
    assert is_tls_failure(errors.KafkaConnectionError("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] x (_ssl.c:2580)"))
    assert not is_tls_failure(errors.KafkaConnectionError("socket disconnected"))
    assert not is_tls_failure(ValueError("[SSL: "))


@pytest.mark.parametrize(
    ("error", "protocol", "hinted"),
    [
        (errors.KafkaConnectionError("socket disconnected"), "PLAINTEXT", "--command-config"),
        (errors.InvalidReceiveError("x"), "PLAINTEXT", "--command-config"),
        (errors.InvalidReceiveError("x"), "SASL_PLAINTEXT", "SASL_SSL"),
        (errors.KafkaConnectionError("Handshake failed: wrong version number (_ssl.c:1)"), "SSL", "PLAINTEXT"),
        (errors.KafkaConnectionError("111 ECONNREFUSED"), "PLAINTEXT", "Check the port"),
        (errors.KafkaConnectionError(TLS), "SSL", None),
        (None, "PLAINTEXT", None),
    ],
)
def test_the_advice_is_about_the_address_or_the_protocol_that_the_listener_may_want(error, protocol, hinted):
    advice = connection_advice(error, protocol)
    assert (advice is not None and hinted in advice) if hinted else advice is None
