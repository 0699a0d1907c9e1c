"""Whatever bytes are given, ``validate`` ends with 0 or 1, without a traceback, in bounded memory."""

import io
import json
import resource
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.cli.main import main

HEAD = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"
GIB = 1024**3

GOOD = """apiVersion: kafka-quotas/v1
kind: ClientQuotas
metadata: {name: payments, owner: team-payments}
spec:
  clusters: [prod]
  quotas:
    - match: {user: payments, client-id: {default: true}}
      quotas: {producer_byte_rate: 20MiB, request_percentage: 200}
      note: "peak of the night"
      overrides:
        - {clusters: {labels: {tier: gold}}, quotas: {producer_byte_rate: null}}
    - match: {ip: "2001:db8::1"}
      quotas: {connection_creation_rate: 50}
    - {match: {user: orders}, quotas: {producer_byte_rate: 20MiB}}
---
apiVersion: kafka-quotas/v1
kind: Cluster
metadata: {name: prod, labels: {tier: gold}}
spec:
  prune: confirm
  protected: [{user: {glob: "a*"}}]
  accept: [{guard: prune, until: 2027-01-31, reason: r}]
---
apiVersion: kafka-quotas/v1
kind: Repository
spec: {exclude: ["x/**"], lint: {user-prefix: "off"}}
"""


def limited(*arguments: str, cwd: Path, memory: int, seconds: float = 100) -> subprocess.CompletedProcess[str]:
    """The command in a process that cannot have more memory than this."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    return subprocess.run(
        [sys.executable, "-m", "reconciler", *arguments],
        cwd=cwd,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def test_a_file_of_100_megabytes_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "a.yaml").open("wb") as stream:
        stream.truncate(100 * 1024**2)

    done = limited("validate", cwd=tmp_path, memory=GIB // 2)

    assert done.returncode == 1
    assert "[file-too-large]" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.large
def test_a_hundred_thousand_findings_are_all_reported_in_bounded_memory(tmp_path: Path) -> None:
    entries = "".join(f"    - {{match: {{user: User:u{n}}}, quotas: {{producer_byte_rate: 1MiB}}}}\n" for n in range(100_000))
    (tmp_path / "a.yaml").write_text(HEAD + entries, encoding="utf-8")

    done = limited("validate", "--format", "json", cwd=tmp_path, memory=GIB)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["warning"] == 100_000


def exit_code_of(content: bytes) -> int:
    """What ``validate`` ends with for one file of these bytes, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kafka-quotas.yaml").write_bytes(content)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["validate", "--format", "json", folder])
        assert "internal error" not in err.getvalue(), err.getvalue()
        document = json.loads(out.getvalue())
        assert code == (1 if document["summary"]["error"] else 0)
        return code


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good stream of all kinds of documents with a few slices replaced, moved or doubled."""
    content = GOOD.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 30)))
        other = draw(st.integers(0, len(content)))
        piece = draw(
            st.one_of(
                st.binary(max_size=6),
                st.sampled_from(
                    [b"null", b"{}", b"[]", b"- ", b": ", b"&a ", b"*a", b"<<: ", b"!!x ", b"\t", b"'", b'"', b"1e999"]
                ),
                st.just(content[other : other + 40]),
            )
        )
        content = content[:start] + piece + content[end:]
    return content


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(damaged())
def test_no_damage_to_good_manifests_breaks_validate(content: bytes) -> None:
    assert exit_code_of(content) in (0, 1)
