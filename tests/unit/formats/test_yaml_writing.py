"""Scalars as they are written, judged by another YAML reader with YAML 1.1's typing."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.yaml.editing import scalar_text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_one_line_that_reads_back_as_that_text(text):
    written = scalar_text(text)

    assert len(written.splitlines()) == 1
    assert yaml.safe_load(f"[{written}]") == [text]
    assert yaml.safe_load(f"k: {written}") == {"k": text}


@pytest.mark.parametrize(
    "text", ["on", "No", "null", "~", "0123", "1e6", "12:30", "2026-01-02", "<default>", "", "y", ".5", "- a"]
)
def test_what_yaml_would_type_or_refuse_is_quoted(text):
    assert scalar_text(text).startswith('"')


@pytest.mark.parametrize("text", ["alice", "payments-api", "app_1.x", "10.0.0.7"])
def test_ordinary_names_stay_plain(text):
    assert scalar_text(text) == text
