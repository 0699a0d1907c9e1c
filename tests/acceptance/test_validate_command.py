"""``kafka-quotas validate`` as a user runs it: on files, as a process."""

import json

import pytest

from tests.support.command import invoke
from tests.support.manifests import snapshot
from tests.support.schemas import valid

QUOTAS = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"
CLUSTER = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: %s}\nspec: {prune: never}\n"
REPOSITORY = "apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n"


def quotas(*users, clusters=None):
    entries = "".join(f"    - {{match: {{user: {user}}}, quotas: {{producer_byte_rate: 1MiB}}}}\n" for user in users)
    text = QUOTAS if clusters is None else QUOTAS.replace("spec:\n", f"spec:\n  clusters: {clusters}\n")
    return text + entries


def validate(*arguments, cwd):
    return invoke("validate", *arguments, cwd=cwd)


def findings(*arguments, cwd):
    """The findings as JSON, checked against the schema, with the exit code that they call for."""
    done = validate(*arguments, "--format", "json", cwd=cwd)
    document = json.loads(done.out)
    valid(document, "findings")
    assert done.code == (1 if document["summary"]["error"] else 0), done.err
    assert "Traceback" not in done.err
    return [(f["id"], f["file"], f["line"], f["column"]) for f in document["findings"]]


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")

    return write_file


def test_good_manifests_print_one_line_and_end_with_0(tmp_path, write):
    write("a.yaml", quotas("alice", "bob"))
    write("clusters/eu.yml", CLUSTER % "eu")
    done = validate(cwd=tmp_path)

    assert (done.code, done.out, done.err) == (0, "no findings in 2 files, 1 cluster, 2 entities\n", "")


def test_a_finding_is_a_line_with_file_line_column_severity_and_id(tmp_path, write):
    write("teams/a.yaml", quotas("User:alice") + "    - {match: {user: b}, quotas: {producer_byte_rate: 10Mb}}\n")
    done = validate(cwd=tmp_path)

    lines = done.out.splitlines()
    assert done.code == 1
    assert lines[0].startswith("teams/a.yaml:5:22: warning: ")
    assert lines[0].endswith("[user-prefix]")
    assert lines[1].startswith("teams/a.yaml:6:55: error: ")
    assert "Did you mean 10MB" in lines[1]
    assert lines[1].endswith("[unknown-unit]")
    assert lines[2:] == ["1 error, 1 warning in 1 file, 0 clusters, 2 entities"]
    assert done.err == "kafka-quotas: the manifests are not valid: 1 error\n"


def test_fail_on_decides_from_which_severity_on_the_exit_code_is_1(tmp_path, write):
    write("a.yaml", quotas("User:alice"))

    assert [validate("--fail-on", level, cwd=tmp_path).code for level in ("error", "warning", "info")] == [0, 1, 1]


@pytest.mark.parametrize("path", ["nope", "nope.yaml", "a.yaml/below"])
def test_a_path_that_does_not_exist_is_one_clear_message(tmp_path, write, path):
    write("a.yaml", quotas("alice"))
    done = validate(path, cwd=tmp_path)

    assert done.code == 1
    assert path in done.out
    assert len(done.err.splitlines()) == 1


def test_the_repository_file_excludes_on_purpose(tmp_path, write):
    write("kafka-quotas.yaml", f"{REPOSITORY}  exclude: [mkdocs.yml, charts/**]\n")
    write("mkdocs.yml", "site_name: x\n")
    write("charts/a/values.yaml", "replicas: 1\n")
    write("a.yaml", quotas("alice"))

    assert findings(cwd=tmp_path) == []
    write("other.yml", "site_name: x\n")
    assert findings(cwd=tmp_path) == [("unknown-document", "other.yml", 1, 1)]


def test_below_a_root_a_path_only_chooses_what_is_shown(tmp_path, write):
    write("kafka-quotas.yaml", f"{REPOSITORY}  exclude: [mkdocs.yml]\n")
    write("clusters/eu.yaml", CLUSTER % "eu")
    write("a/one.yaml", quotas("alice", clusters="[eu]"))
    write("b/two.yaml", quotas("alice", "User:x", clusters="[eu]"))
    write("mkdocs.yml", "site_name: x\n")

    assert findings("a/one.yaml", cwd=tmp_path) == [("duplicate-entity", "b/two.yaml", 6, 15)]
    assert [f[0] for f in findings("b", cwd=tmp_path)] == ["duplicate-entity", "user-prefix"]
    assert findings("clusters/eu.yaml", cwd=tmp_path) == []
    assert findings("mkdocs.yml", cwd=tmp_path) == [("file-not-read", "mkdocs.yml", 1, 1)]
    assert [f[1] for f in findings("two.yaml", cwd=tmp_path / "b")] == ["two.yaml", "two.yaml"]
    assert [f[1] for f in findings("../b", cwd=tmp_path / "a")] == ["../b/two.yaml", "../b/two.yaml"]


def test_every_cluster_is_checked_unless_one_is_named(tmp_path, write):
    write("eu.yaml", CLUSTER % "eu")
    write("us.yaml", CLUSTER % "us")
    write("a.yaml", quotas("alice", clusters="[us]"))
    write("b.yaml", quotas("alice"))

    assert [f[0] for f in findings(cwd=tmp_path)] == ["duplicate-entity"]
    assert findings("--cluster", "eu", cwd=tmp_path) == []
    unknown = validate("--cluster", "er", cwd=tmp_path)
    assert (unknown.code, unknown.out) == (64, "")
    assert "Known: 'eu', 'us'" in unknown.err


def test_what_is_wrong_with_a_named_cluster_is_said_rather_than_that_it_is_missing(tmp_path, write):
    write("eu.yaml", (CLUSTER % "eu").replace("kind: Cluster", "kind: Clustr"))

    assert findings("--cluster", "eu", cwd=tmp_path) == [("unknown-document", "eu.yaml", 2, 7)]


def test_names_from_files_cannot_write_to_the_terminal(tmp_path, write):
    write("evil\x1b[31m.yaml", quotas('"a\\u001b[2Jb\\u202e\\n::error::x "'))
    done = validate(cwd=tmp_path)

    assert done.code == 0
    assert "\\u001b[2J" in done.out
    assert [c for c in done.out if not (c.isprintable() or c == "\n")] == []
    assert all(line.startswith(("evil", "1 warning")) for line in done.out.splitlines())


@pytest.mark.parametrize("command", [("validate",), ("plan", "--current", "now.json")])
def test_warnings_that_stop_a_command_make_no_manifest_invalid(tmp_path, command):
    (tmp_path / "cluster.yaml").write_text(CLUSTER % "prod")
    (tmp_path / "quotas.yaml").write_text(quotas("' a'"))
    (tmp_path / "now.json").write_text(snapshot({}))
    done = invoke(*command, ".", "--fail-on", "warning", cwd=tmp_path)

    assert done.code == 1
    assert done.out.count("unusual-name") == 1
    assert done.err == "kafka-quotas: the manifests are valid, but the command fails on level warning: 1 warning\n"


def test_of_many_findings_of_one_rule_the_text_shows_the_first_and_counts_the_rest(tmp_path):
    (tmp_path / "quotas.yaml").write_text(quotas(*(f"' {n}'" for n in range(1500))))

    text, document = validate(cwd=tmp_path), json.loads(validate("--format", "json", cwd=tmp_path).out)

    assert len(document["findings"]) == 1500
    lines = text.out.splitlines()
    assert len(lines) == 20 + 2
    rest = "1,480 more findings of this rule. For all: validate --format json"
    assert lines[-2] == f"warning: {rest} [unusual-name]"
    assert lines[-1].startswith("1500 warnings in 1 file")
