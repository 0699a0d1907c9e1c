"""Request lines that are not those of a broker's own log are refused, with what one needs."""

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
GOOD = line()
MESSAGE = GOOD[GOOD.index("Completed") :]


FORMS = {
    "2.0 to 2.7": TEXT,
    "docker": json.dumps({"log": f"{GOOD}\n", "stream": "stdout", "time": TIME}),
    "CRI in parts": f"2026-11-21T13:00:00.1Z stdout P {GOOD[:200]}",
    "no time": MESSAGE,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zipped", [False, True])
def test_lines_of_another_form_are_refused_with_one_of_them(tmp_path: Path, form: str, *, zipped: bool) -> None:
    text = f"{FORMS[form]}\n".encode() * 50
    path = tmp_path / f"kafka-request.log{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(text) if zipped else text)
    with pytest.raises(TrafficError) as refused:
        require_request_lines(find_logs([f"1={path}"]), "UTC")
    message = str(refused.value)
    assert "none of the 50 request lines looked at can be read. A line of a broker has its date and time first" in message
    assert FORMS[form][:100] in message
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
