"""From the paths of an import to what is read, and what several files together come to."""

import json
from pathlib import Path

import pytest

from reconciler.errors import FileAccessError, UsageError
from reconciler.features.importing.conversion import import_files
from tests.support.spans import span_of

QUOTA = "apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuota\n"
QUOTA += "spec: {type: USER, entity: {user: NAME}, configs: {producerByteRate: 1}}\n"


def raw_state(*rows):
    """A raw state of one quota a row: a name, and the alias of a provider or ``None``."""
    resources = [
        {
            "mode": "managed", "type": "kafka_quota", "name": "q", "provider": f'provider["p"]{f".{alias}" if alias else ""}',
            "instances": [{"attributes": {"entity_type": "user", "entity_name": name, "config": {"producer_byte_rate": 1}}}],
        }
        for name, alias in rows
    ]  # fmt: skip
    return json.dumps({"version": 4, "serial": 1, "lineage": "x", "resources": resources})


def ids(result):
    return [one.id for one in result.findings]


def test_a_folder_stands_for_the_files_below_it(tmp_path: Path):
    texts = {"a.yaml": QUOTA, "in/b.yml": QUOTA, "c.txt": QUOTA}
    states = {"s.tfstate": raw_state(("a", None)), "in/t.tfstate": raw_state(("b", None)), ".terraform/terraform.tfstate": "{}"}
    for name, text in {**texts, **states}.items():
        (tmp_path / "s" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "s" / name).write_text(text.replace("NAME", name))

    jikkou = import_files("jikkou", [str(tmp_path / "s")], folder=tmp_path / "1")
    terraform = import_files("terraform", [str(tmp_path / "s")], folder=tmp_path / "2")

    assert (jikkou.sources, jikkou.entities, ids(jikkou)) == (2, 2, [])
    assert (terraform.sources, terraform.entities, ids(terraform)) == (2, 2, [])


def test_a_configuration_beside_its_state_is_refused_by_name(tmp_path: Path):
    (tmp_path / "main.tf").write_text('resource "kafka_quota" "q" {}\n')
    (tmp_path / "terraform.tfstate").write_text(raw_state(("a", None)))

    result = import_files("terraform", [str(tmp_path)], folder=tmp_path / "q")

    assert [(one.id, span_of(one).file) for one in result.findings] == [("import-template", str(tmp_path / "main.tf"))]
    assert not result.written


def test_files_without_quotas_are_mentioned_and_a_folder_without_any_is_an_error(tmp_path: Path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "topics.yaml").write_text("apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaTopic\n")
    empty = import_files("jikkou", [str(tmp_path / "s")], folder=tmp_path / "q")
    assert sorted(ids(empty)) == ["import-left-out", "import-nothing-found"]

    (tmp_path / "s" / "quotas.yaml").write_text(QUOTA)
    assert ids(import_files("jikkou", [str(tmp_path / "s")], folder=tmp_path / "q")) == ["import-left-out"]


def test_quotas_without_a_cluster_do_not_mix_with_those_that_have_one(tmp_path: Path):
    (tmp_path / "a.tfstate").write_text(raw_state(("a", None)))
    (tmp_path / "b.tfstate").write_text(raw_state(("b", "eu")))

    result = import_files("terraform", [str(tmp_path)], folder=tmp_path / "q", partial=True)

    assert ids(result) == ["import-ambiguous"]
    assert {file.path for file in result.files} == {"users.yaml", "cluster.yaml"}
    assert "clusters: [eu]" in result.files[0].text


def test_one_entity_for_two_clusters_is_no_conflict_and_twice_for_one_is(tmp_path: Path):
    a, b = tmp_path / "a.tfstate", tmp_path / "b.tfstate"
    a.write_text(raw_state(("a", "eu"), ("a", "us")))
    b.write_text(raw_state(("a", "eu")))

    assert ids(import_files("terraform", [str(a)], folder=tmp_path / "1")) == []
    assert ids(import_files("terraform", [str(a), str(b)], folder=tmp_path / "2")) == ["duplicate-entity"]


def test_nothing_is_read_for_an_unknown_tool_or_into_a_folder_that_is_in_use(tmp_path: Path):
    with pytest.raises(UsageError, match="jikkou, strimzi, terraform"):
        import_files("another", ["none"], folder=tmp_path / "q")
    (tmp_path / "there").touch()
    with pytest.raises(FileAccessError):
        import_files("jikkou", ["none"], folder=tmp_path)
