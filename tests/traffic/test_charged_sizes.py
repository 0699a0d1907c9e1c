"""Charged sizes against kafka-python's own encoding of the same messages, in every version that it can write."""

from __future__ import annotations

import random
import re
import uuid
from pathlib import Path
from typing import Any

from tests.traffic.log_lines import line

NAMES = ["t", "orders", "größe-日本", "x" * 126, "y" * 127, "z" * 200]
SIZES = [0, 1, 126, 127, 171, 16382, 16383, 70000, 2097151, 2097152]


def topics(random_: random.Random) -> list[tuple[str, list[tuple[int, int | None]]]]:
    """Topic names with, per partition, a batch size and a number of aborted transactions (None: null)."""
    count = random_.choice([0, 1, 1, 2, 5])
    chosen = random_.sample(NAMES, count)
    partitions = random_.choice([1, 1, 3, 130])
    return [
        (
            name,
            [
                (random_.choice(SIZES if partitions < 9 else SIZES[:5]), random_.choice([None, 0, 1, 130]))
                for _ in range(partitions)
            ],
        )
        for name in chosen
    ]


def produce_case(version: int, random_: random.Random) -> tuple[str, int]:
    from kafka.protocol.producer import ProduceRequest

    topic = ProduceRequest.TopicProduceData
    content = topics(random_)
    transaction = random_.choice([None, "", "tx-1", "ü" * 80]) if version >= 3 else None
    client = random_.choice(["", "app-1", "größe", "c" * 300])
    message = ProduceRequest(
        version=version, transactional_id=transaction, acks=-1, timeout_ms=1000,
        topic_data=[
            topic(
                name=name, topic_id=uuid.uuid4(),
                partition_data=[topic.PartitionProduceData(index=0, records=bytes(size)) for size, _ in partitions],
            )
            for name, partitions in content
        ],
    )  # fmt: skip
    message.with_header(correlation_id=1, client_id=client)
    logged: dict[str, Any] = {
        "transactionalId": transaction, "acks": -1,
        "topicData": [
            {"name" if version < 13 else "topicId": name, "partitionData": [{"recordsSizeInBytes": s} for s, _ in partitions]}
            for name, partitions in content
        ],
    }  # fmt: skip
    return line("PRODUCE", version, client_id=client, request=logged), len(message.encode(header=True))


def fetch_case(version: int, random_: random.Random) -> tuple[str, int]:
    from kafka.protocol.consumer import FetchResponse

    topic = FetchResponse.FetchableTopicResponse
    content = topics(random_)
    data = topic.PartitionData
    known = {
        "diverging_epoch": data.EpochEndOffset(epoch=3, end_offset=9),
        "current_leader": data.LeaderIdAndEpoch(leader_id=1, leader_epoch=2),
        "snapshot_id": data.SnapshotId(end_offset=9, epoch=2),
    }
    names = [name for name in known if version >= 12 and random_.random() < 0.5]
    tagged = {name: known[name] for name in names}
    logged: dict[str, dict[str, object]] = {re.sub("_(.)", lambda found: found[1].upper(), name): {} for name in names}

    def partition(index: int, size: int, aborted: int | None) -> Any:
        transactions = (
            None if aborted is None else [topic.PartitionData.AbortedTransaction(producer_id=1, first_offset=2)] * aborted
        )
        return topic.PartitionData(
            partition_index=index, error_code=0, high_watermark=1, last_stable_offset=1, log_start_offset=0,
            aborted_transactions=transactions, preferred_read_replica=-1, records=bytes(size), **tagged,
        )  # fmt: skip

    message = FetchResponse(
        version=version, throttle_time_ms=0, error_code=0, session_id=3,
        responses=[
            topic(topic=name, topic_id=uuid.uuid4(), partitions=[partition(i, s, a) for i, (s, a) in enumerate(partitions)])
            for name, partitions in content
        ],
    )  # fmt: skip
    sizes = [
        {
            "topic" if version < 13 else "topicId": name,
            "partitions": [
                {
                    "recordsSizeInBytes": size,
                    "abortedTransactions": None if aborted is None else [{"producerId": 1}] * aborted,
                    **logged,
                }
                for size, aborted in partitions
            ],
        }
        for name, partitions in content
    ]  # fmt: skip
    response = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 3, "responses": sizes}
    return line("FETCH", version, request={"maxWaitMs": 5}, response=response), 4 + len(message.encode())


def test_sizes_equal_the_encoded_messages_in_every_version(tmp_path: Path) -> None:
    from reconciler.traffic.sources.normal_form import IDENTITY_COLUMNS
    from tests.support.traffic_rows import log_rows

    random_ = random.Random(20261121)
    cases = [produce_case(version, random_) for version in range(14) for _ in range(8)]
    cases += [fetch_case(version, random_) for version in range(19) for _ in range(8)]
    path = tmp_path / "kafka-request.log"
    numbered = (text.replace('"correlationId":7', f'"correlationId":{i}') for i, (text, _) in enumerate(cases))
    path.write_text("\n".join(numbered) + "\n", encoding="utf-8")

    rows = log_rows(path, also=IDENTITY_COLUMNS)

    charged = {row.correlation_id: row.records + row.overhead for row in rows if row.status == "charged"}
    assert [charged.get(i) for i in range(len(cases))] == [size for _, size in cases]


def test_the_sizes_that_kafkas_own_classes_printed(tmp_path: Path) -> None:
    from tests.support.traffic_rows import log_rows
    from tests.traffic.log_lines import fetch_request, fetch_response, produce_request

    path = tmp_path / "kafka-request.log"
    produce = line("PRODUCE", 12, request=produce_request(171))
    fetch = line("FETCH", 12, request=fetch_request(replicaId=-1), response=fetch_response(171))
    path.write_text(f"{produce}\n{fetch}\n", encoding="utf-8")

    rows = log_rows(path)

    assert {row.kind: row.records + row.overhead for row in rows} == {"produce": 208, "fetch": 230}
