"""Laws of what workers return: it is what was packed, and bytes of any other kind are refused and never run."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, UserDefinedType, _parse_datatype_json_string

from reconciler.errors import TrafficError
from reconciler.features.verdict_tables.worker import PACKED_PARTS, PACKED_ROW
from reconciler.model import DEFAULT, BucketVerdict, Entity
from reconciler.traffic.backtest import ReportParts
from reconciler.traffic.spark_versions import refuse_foreign_types

ENTITIES = st.dictionaries(st.sampled_from(["user", "client-id", "ip"]), st.text(max_size=3) | st.just(DEFAULT), min_size=1).map(
    Entity.of
)
st.register_type_strategy(Entity, ENTITIES)
st.register_type_strategy(float, st.floats(allow_nan=False))

deep = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@deep
@given(st.from_type(BucketVerdict))
def test_a_row_comes_back_as_it_was(verdict: BucketVerdict) -> None:
    assert PACKED_ROW.unpack(PACKED_ROW.pack(verdict)) == verdict


@deep
@given(st.from_type(ReportParts))
def test_parts_of_a_report_come_back_as_they_were(parts: ReportParts) -> None:
    assert PACKED_PARTS.unpack(PACKED_PARTS.pack(parts)) == parts


class OwnType(UserDefinedType):
    """A type that the program itself has."""

    @classmethod
    def sqlType(cls) -> LongType:  # noqa: N802 - as PySpark has it
        return LongType()


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> Any:
        return os.system, (self._command,)


def test_a_pickle_from_a_worker_is_refused_and_does_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(TrafficError, match="a worker of Spark returned bytes that are not a ReportParts"):
        PACKED_PARTS.unpack(pickle.dumps(Runs(f"touch {marker}")))
    assert not marker.exists()


def test_a_schema_that_brings_a_class_as_a_pickle_is_refused_and_does_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    pickled = base64.b64encode(pickle.dumps(Runs(f"touch {marker}"))).decode()
    foreign = {"type": "udt", "class": None, "pyClass": "wave.Own", "serializedClass": pickled, "sqlType": "long"}
    column = {"name": "user", "type": foreign, "nullable": True, "metadata": {}}
    types: Any = UserDefinedType
    before = types.fromJson
    try:
        refuse_foreign_types()
        refuse_foreign_types()
        with pytest.raises(TrafficError, match=r"the schema of the traffic has a type of its own, 'wave\.Own'"):
            _parse_datatype_json_string(json.dumps({"type": "struct", "fields": [column]}))
        own = {**foreign, "pyClass": f"{OwnType.__module__}.OwnType"}
        assert isinstance(UserDefinedType.fromJson(own).sqlType(), LongType)
    finally:
        types.fromJson = before
    assert "wave" not in sys.modules
    assert not marker.exists()


@given(st.binary(max_size=20) | st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists).map(repr).map(str.encode))
def test_no_other_bytes_are_a_row(packed: bytes) -> None:
    with pytest.raises(TrafficError):
        PACKED_ROW.unpack(packed)
