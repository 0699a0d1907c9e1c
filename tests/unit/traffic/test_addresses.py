"""Addresses of files: Hadoop decodes nothing of one, and Spark encodes those that it reports."""

from __future__ import annotations

import pytest

from reconciler.traffic.sources.log_files import Dataset, address_of_file, local_path


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("file:///data/a%20b", "/data/a%20b"),
        ("file:///data/a b#c?d", "/data/a b#c?d"),
        ("file:/data/ä", "/data/ä"),
        ("file://host/data", "/data"),
        ("hdfs://h:1/data", None),
    ],
)
def test_a_path_is_that_of_its_address_character_by_character(address: str, path: str | None) -> None:
    assert local_path(Dataset(name=address)) == path


def test_a_table_has_no_path() -> None:
    assert local_path(Dataset(name="file:///not.an.address", is_table=True)) is None


@pytest.mark.parametrize("name", ["a b", "a%20b", "ä+%25", "a#b?c", "10%"])
def test_a_file_of_spark_is_the_file_of_the_file_system(name: str) -> None:
    encoded = name.replace("%", "%25").replace(" ", "%20").replace("#", "%23").replace("?", "%3F")
    assert address_of_file(f"s3a://bucket/{encoded}") == f"s3a://bucket/{name}"
