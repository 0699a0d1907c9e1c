"""A login file beside the manifests, or in one file with them: no output of any format repeats a word of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import run
from tests.support.manifests import cluster

SECRET = "hunter2"
NO_MANIFESTS = {
    "properties": f'sasl.mechanism=PLAIN\nsasl.jaas.config=x required password="{SECRET}";\n',
    "mapping": f"sasl.mechanism: PLAIN\nsasl.password: {SECRET}\n",
    "repeated": f"password: {SECRET}\npassword: {SECRET}x\n",
    "text alone": f"{SECRET}\n",
    "block": f"login: |\n  {SECRET}\n\tx\n",
    "alias": f"password: *{SECRET}\n",
    "tag": f"password: !{SECRET} x\n",
    "local tag": f"password: !!{SECRET} x\n",
    "escape": f'password: "{SECRET}\\q"\n',
    "unclosed": f'password: "{SECRET}\n',
    "syntax": f"- {SECRET}: {SECRET}: [\n",
    "control": f"password: {SECRET}\x01\n",
    "of Kubernetes": f"apiVersion: v1\nkind: Secret\nstringData: {{password: {SECRET}}}\n",
}
IN_MANIFESTS = {
    "field": f"  password: {SECRET}\n",
    "below a field": f"  clientSecret:\n    - value: {SECRET}\n    -   [{SECRET}\n",
    "jaas": f'  "sasl.jaas.config": [{SECRET}\n',
    "key": f"  ssl.keystore.key: {SECRET}: x\n",
    "token": f"  token: {SECRET}: [\n",
}
FORMATS = ("text", "json", "markdown", "github", "sarif", "html")


def require_silent(folder: Path, *, name: str) -> None:
    outputs = [argument for kind in FORMATS[1:] for argument in ("--out", f"{kind}={folder / kind}.out")]
    done = run("validate", str(folder), *outputs, cwd=folder.parent)
    assert done.code == 1, done.out
    assert name in done.out
    for text in (done.out, done.err, *(file.read_text("utf-8") for file in folder.glob("*.out"))):
        assert SECRET not in text


@pytest.mark.parametrize("content", NO_MANIFESTS)
@pytest.mark.parametrize("place", ["beside", "below"])
def test_no_word_of_a_file_that_is_no_manifest_is_printed(tmp_path: Path, content: str, place: str) -> None:
    folder = tmp_path / "quotas"
    folder.mkdir()
    if place == "beside":
        (folder / "cluster.yaml").write_text(cluster(), encoding="utf-8")
        (folder / "login.yaml").write_text(NO_MANIFESTS[content], encoding="utf-8")
    else:
        (folder / "login.yaml").write_text(f"{cluster()}---\n{NO_MANIFESTS[content]}", encoding="utf-8")
    require_silent(folder, name="login.yaml")


@pytest.mark.parametrize("content", IN_MANIFESTS)
def test_no_line_of_a_field_that_looks_secret_is_printed(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "quotas"
    folder.mkdir()
    text = f"apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {{name: prod}}\nspec:\n{IN_MANIFESTS[content]}"
    (folder / "cluster.yaml").write_text(text, encoding="utf-8")
    require_silent(folder, name="cluster.yaml")
