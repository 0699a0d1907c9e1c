"""Request log lines as brokers write them, for tests."""

from __future__ import annotations

import json
from typing import Any


def line(
    api: str = "PRODUCE",
    version: int = 9,
    *,
    client_id: str | None = "app-1",
    principal: str = "User:alice",
    request: dict[str, Any] | None = None,
    response: dict[str, Any] | str | None = None,
    at: str = "2026-11-21 13:00:00,123",
    prefix: str = "[{at}] DEBUG ",
    suffix: str = " (kafka.request.logger)",
    connection: str = "10.0.0.5:9092-10.0.0.9:53412-2-0",
    correlation_id: int = 7,
    throttle_ms: int = 0,
    waited_ms: tuple[float, float] = (0.0, 0.0),
) -> str:
    key = {"PRODUCE": 0, "FETCH": 1, "METADATA": 3}[api]
    document = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": key, "requestApiVersion": version, "correlationId": correlation_id,
            "clientId": client_id, "requestApiKeyName": api,
        },
        "request": request if request is not None else produce_request(100),
        "response": response if response is not None else produce_response(0),
        "connection": connection, "totalTimeMs": 3.482, "requestQueueTimeMs": 0.11, "localTimeMs": 2.9, "remoteTimeMs": 0.0,
        "throttleTimeMs": throttle_ms, "responseQueueTimeMs": waited_ms[0], "sendTimeMs": waited_ms[1],
        "securityProtocol": "SASL_PLAINTEXT", "principal": principal, "listener": "SASL",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "4.3.0"},
    }  # fmt: skip
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return f"{prefix.format(at=at)}Completed request:{text}{suffix}"


def produce_request(*sizes: int, topic: str = "t1", transactional_id: str | None = None, acks: int = 1) -> dict[str, Any]:
    partitions = [{"index": i, "recordsSizeInBytes": size} for i, size in enumerate(sizes)]
    return {
        "transactionalId": transactional_id, "acks": acks, "timeoutMs": 30000,
        "topicData": [{"name": topic, "partitionData": partitions}],
    }  # fmt: skip


def produce_response(*codes: int) -> dict[str, Any]:
    partitions = [{"index": i, "errorCode": code, "baseOffset": 0} for i, code in enumerate(codes)]
    return {"responses": [{"name": "t1", "partitionResponses": partitions}], "throttleTimeMs": 0}


def fetch_request(**more: Any) -> dict[str, Any]:
    return {"maxWaitMs": 500, "minBytes": 1, "maxBytes": 52428800, "topics": [], **more}


def fetch_response(*sizes: int, topic: str = "t1") -> dict[str, Any]:
    partitions = [{"partitionIndex": i, "abortedTransactions": None, "recordsSizeInBytes": size} for i, size in enumerate(sizes)]
    responses = [{"topic": topic, "partitions": partitions}] if sizes else []
    return {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 3, "responses": responses}
