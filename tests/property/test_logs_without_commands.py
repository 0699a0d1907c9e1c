"""Whatever strangers call users, clusters, files and notes: the log reader of a CI system finds no command in any output."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from reconciler.cli.main import main
from reconciler.model import Verdict
from reconciler.model.entity import Entity
from reconciler.render.backtest_text import backtest_view
from reconciler.render.sink import Sink
from reconciler.render.terminal import plain
from tests.support.backtest_reports import report_of, verdict
from tests.support.hostile_names import HOSTILE, NAMES
from tests.support.log_readers import commands_in

COMMANDS = (
    ("validate", "."),
    ("validate", ".", "--fail-on", "info"),
    ("validate", ".", "--format", "json"),
    ("plan", ".", "--current", "now.json", "--show-effects"),
    ("plan", ".", "--current", "now.json", "--format", "markdown"),
    ("plan", ".", "--current", "now.json", "--color", "always"),
    ("plan", ".", "--current", "now.json", "--format", "json"),
    ("drift", ".", "--current", "now.json"),
    ("describe", "--current", "now.json"),
    ("describe", "--current", "now.json", "--format", "yaml"),
    ("resolve", "--current", "now.json", "--all"),
    ("resolve", "--current", "now.json", "--all", "--format", "json"),
    ("tool", "clusters", "."),
    ("report", ".", "--current", "now.json"),
    ("apply", ".", "--auto-approve", "--bootstrap-server", "127.0.0.1:1"),
)
WORDS = st.sampled_from(HOSTILE) | NAMES


@contextlib.contextmanager
def in_ci(folder: Path) -> Iterator[io.StringIO]:
    """In this folder, with GitHub's runner reading; gives what is printed."""
    here, before = Path.cwd(), os.environ.get("GITHUB_ACTIONS")
    log = io.StringIO(newline="")
    os.environ["GITHUB_ACTIONS"] = "true"
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            yield log
    finally:
        os.chdir(here)
        os.environ.pop("GITHUB_ACTIONS") if before is None else os.environ.update(GITHUB_ACTIONS=before)


def write_repository(folder: Path, word: str, *, valid: bool) -> None:
    """A cluster and a team whose names, note, file name and values are ``word``, and a snapshot that names it everywhere."""
    text = json.dumps
    (folder / "cluster.yaml").write_text(
        "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec: {prune: always}\n", "utf-8"
    )
    match = {"user": word} if valid else {"user": word, word: word}
    entries = [{"match": match, "quotas": {"producer_byte_rate": "1MiB"}, "note": word[:200]}]
    body = (
        f"apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {{name: {text(word)}}}\nspec: {text({'quotas': entries})}\n"
    )
    stem = "".join(c for c in word if c not in "/\0\ud800").lstrip(".")[:30]
    for name in (f"teams-{stem}" if valid else f"{stem}-teams", *(() if valid else ("quotas",))):
        with contextlib.suppress(OSError, UnicodeError):
            (folder / f"{name}.yaml").write_text(body, "utf-8", errors="replace")
    state = {
        "format_version": "1.0",
        "cluster": {"name": None, "id": word, "kafka_version": word},
        "observed": {"at": "2026-01-02T12:00:00+00:00", "from": "broker"},
        "entities": [{"entity": {"user": word}, "quotas": {"producer_byte_rate": 5.0, word: 1.0}}],
    }
    (folder / "now.json").write_text(json.dumps(state), "utf-8")


@settings(max_examples=20)
@given(WORDS, st.booleans())
@example("::stop-commands::x", True)
@example("##[error]x", True)
@example("##vso[task.setvariable variable=a]b", False)
def test_no_command_prints_a_command(word: str, valid: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_repository(Path(folder), word, valid=valid)
        for arguments in COMMANDS:
            with in_ci(Path(folder)) as log, contextlib.suppress(SystemExit):
                main(arguments)
            assert commands_in(log.getvalue()) == [], arguments
            assert "internal error" not in log.getvalue(), (arguments, log.getvalue())


@settings(max_examples=60)
@given(WORDS)
def test_an_argument_that_is_echoed_is_no_command(word: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Else "/" has every manifest of the machine validated.
        assume(not Path(folder, word).exists())
        for arguments in (
            [word],
            ["plan", "--format", word],
            ["plan", "--nonsense", f"\n{word}"],
            ["plan", "--out", f"\n{word}"],
            ["plan", "-vv", "--current", f"\n{word}"],
            ["explain", f"\n{word}"],
            ["validate", "--cluster", f"\n{word}"],
            ["validate", word],
        ):
            with in_ci(Path(folder)) as log, contextlib.suppress(SystemExit):
                main(arguments)
            assert commands_in(log.getvalue()) == [], arguments


@settings(max_examples=50)
@given(WORDS)
def test_the_text_of_a_backtest_has_no_command(word: str) -> None:
    report = report_of(
        verdict(user=word, client_id=word, verdict=Verdict.THROTTLED, entity=Entity.of({"user": word})), cluster=word
    )
    log = io.StringIO()
    Sink(log, breaks=True).write(plain(backtest_view(report).lines))
    assert commands_in(log.getvalue()) == []


@pytest.mark.parametrize("variable", ["CI", "GITHUB_ACTIONS", "TF_BUILD", "GITLAB_CI", "TEAMCITY_VERSION"])
def test_names_stay_as_they_are_where_no_log_reader_reads(variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_repository(tmp_path, "##[error]x", valid=True)
    monkeypatch.chdir(tmp_path)
    for name in ("CI", "GITHUB_ACTIONS", "TF_BUILD", "GITLAB_CI", "TEAMCITY_VERSION"):
        monkeypatch.delenv(name, raising=False)
    plain_log, ci_log = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(plain_log):
        main(["describe", "--current", "now.json"])
    monkeypatch.setenv(variable, "true")
    with contextlib.redirect_stdout(ci_log):
        main(["describe", "--current", "now.json"])
    assert '"##[error]x"' in plain_log.getvalue()
    assert '"##\\u005berror]x"' in ci_log.getvalue()
