"""Request lines that are not those of a broker's own log are named, quoted, and it is said what serves."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from reconciler.errors import TrafficError
from reconciler.traffic.sources.log_files import find_logs
from reconciler.traffic.sources.request_log import require_request_lines
from tests.traffic.log_lines import line

AT, TIME = "2021-02-03 10:00:00,101", "2026-11-21T13:00:00.1Z"
TEXT = (
    f"[{AT}] DEBUG Completed request:RequestHeader(apiKey=PRODUCE, apiVersion=8, clientId=loader, correlationId=6) -- "
    "{acks=-1,timeout=30000,partitionSizes=[orders-0=15514]},response:{responses=[]} from connection "
    "10.0.0.1:9094-10.0.0.9:61040-0;totalTime:2.42 (kafka.request.logger)"
)
OLDER = f"[{AT}] DEBUG Completed request:{{api_key=3,api_version=1,correlation_id=0}} -- {{topics=[]}} from connection a-b"
OLDEST = f"[{AT}] TRACE Completed request:Name: ProducerRequest; Version: 0; CorrelationId: 7 from client a;totalTime:1"
GOOD = line()
MESSAGE = GOOD[GOOD.index("Completed") :]


def as_json(**fields: str) -> str:
    return json.dumps(fields)


JSON = ["Each of these lines is a JSON document", "jq -rj .log FILE"]
FORMS = {
    "2.0 to 2.7": (TEXT, ["the text form of brokers before 2.8", "kafka-quotas explain prometheus"]),
    "1.x": (OLDER, ["the text form of brokers before 2.8"]),
    "0.8": (OLDEST, ["the text form of brokers before 2.8"]),
    "docker": (as_json(log=f"{GOOD}\n", stream="stdout", time=TIME), JSON),
    "logstash": (as_json(**{"@timestamp": TIME, "message": MESSAGE, "level": "DEBUG"}), JSON),
    "CRI in parts": (f"2026-11-21T13:00:00.1Z stdout P {GOOD[:200]}", ["(CRI)", "the flag P"]),
    "no time": (MESSAGE, ["No date and time is before 'Completed request:'", "[%d] %p %m (%c)%n"]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_foreign_form_is_named_with_a_line_and_what_serves(tmp_path: Path, form: str, zipped: bool) -> None:
    raw, words = FORMS[form]
    text = f"{raw}\n".encode() * 3
    path = tmp_path / f"kafka-request.log{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(text) if zipped else text)
    with pytest.raises(TrafficError) as refused:
        require_request_lines(find_logs([f"1={path}"]), "UTC")
    message = str(refused.value)
    assert "none of the 3 request lines looked at can be read. " in message
    assert [word for word in words if word not in message] == []
    assert raw[:100] in message
    assert "cut short" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "text",
    [f"2026-11-21T13:00:00.123456789Z stdout F {GOOD}", f"2026-11-21T13:00:00.123+0100 DEBUG [kafka.request.logger] - {MESSAGE}"],
    ids=["CRI", "another layout"],
)
def test_whole_lines_with_a_time_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_text(f"{text}\n", "utf-8")
    require_request_lines(find_logs([f"1={path}"]), "UTC")


def test_a_few_lines_of_no_known_form_prove_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_text(f"{GOOD[: GOOD.index('{')]}what\n{GOOD.replace('principal', 'other')}\n", "utf-8")
    require_request_lines(find_logs([f"1={path}"]), "UTC")
