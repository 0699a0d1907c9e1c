"""What an editor needs: every example names its schema."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for suffix in ("yaml", "yml")
    for path in (ROOT / "examples").rglob(f"*.{suffix}")
    # Pipelines and overlays are no manifests.
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts) and path.name != "kustomization.yaml"
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_begins_with_the_schema_of_its_kind(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    modeline = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    kinds = re.findall(r"^kind: (\w+)$", text, re.MULTILINE)
    assert modeline is not None
    schema = json.loads((path.parent / modeline[1]).read_text(encoding="utf-8"))
    assert {schema["properties"]["kind"]["const"]} == set(kinds)
