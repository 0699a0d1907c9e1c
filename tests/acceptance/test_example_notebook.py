"""The code cells of the example notebook, run one after another as Jupyter would; the last line of each gives its output."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from reconciler.client import BacktestReport, PlannedChange

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "quotas.ipynb"


def code_cells() -> list[dict[str, Any]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_cells() -> list[Any]:
    """The value of each cell's last line."""
    names: dict[str, Any] = {}
    values = []
    for number, cell in enumerate(code_cells()):
        *before, last = ast.parse("".join(cell["source"])).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(before, type_ignores=[]), f"cell {number}", "exec"), names)
        values.append(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names))
    return values


def test_every_cell_runs_and_the_verdict_is_that_of_the_traffic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    planned, changes, drift, judged, throttled = run_cells()

    assert isinstance(planned, PlannedChange)
    assert isinstance(judged, BacktestReport)
    assert [guard.id for guard in planned.plan.tripped] == ["default-entity", "large-reduction"]
    assert isinstance(changes, pd.DataFrame)
    assert set(changes["key"]) == set(drift["key"]) == {"producer_byte_rate", "consumer_byte_rate"}
    assert list(throttled["user"]) == ["payments"]


def test_the_notebook_is_committed_without_outputs() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code_cells())
