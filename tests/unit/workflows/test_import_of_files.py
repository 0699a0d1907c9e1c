"""From the paths of an import to what is read, and what several files together come to."""

from pathlib import Path

import pytest

from reconciler.errors import FileAccessError, UsageError
from reconciler.workflows.import_quotas import import_files
from tests.support.spans import span_of

QUOTA = "apiVersion: kafka.jikkou.io/v1\nkind: KafkaClientQuota\n"
QUOTA += "spec: {type: USER, entity: {user: NAME}, configs: {producerByteRate: 1}}\n"
BLOCK = 'resource "kafka_quota" "q" {\n  entity_type = "user"\n  entity_name = "NAME"\n  config = { producer_byte_rate = 1 }\n}\n'


def ids(result):
    return [one.id for one in result.findings]


def test_a_folder_of_jikkou_is_read_with_the_folders_below_it_and_one_of_terraform_is_one_module(tmp_path: Path):
    for name, text in {"a.yaml": QUOTA, "in/b.yml": QUOTA, "c.txt": QUOTA, "a.tf": BLOCK, "in/b.tf": BLOCK}.items():
        (tmp_path / "s" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "s" / name).write_text(text.replace("NAME", name))

    jikkou = import_files("jikkou", [str(tmp_path / "s")], folder=tmp_path / "1")
    terraform = import_files("terraform", [str(tmp_path / "s")], folder=tmp_path / "2")

    assert (jikkou.sources, jikkou.entities, ids(jikkou)) == (2, 2, [])
    assert (terraform.sources, terraform.entities, ids(terraform)) == (1, 1, [])


def test_files_without_quotas_in_a_folder_are_nothing_to_mention_but_a_folder_without_any_is(tmp_path: Path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "topics.yaml").write_text("apiVersion: kafka.jikkou.io/v1\nkind: KafkaTopic\n")
    assert ids(import_files("jikkou", [str(tmp_path / "s")], folder=tmp_path / "q")) == ["import-nothing-found"]

    (tmp_path / "s" / "quotas.yaml").write_text(QUOTA)
    assert ids(import_files("jikkou", [str(tmp_path / "s")], folder=tmp_path / "q")) == []


@pytest.mark.parametrize("named", ["/etc/helmsman/list.yaml", "list.yaml"])
def test_the_quotas_file_of_helmsman_is_found_beside_the_configuration(tmp_path: Path, named: str):
    (tmp_path / "helmsman.yaml").write_text(f"kafka: {{}}\nquotasFile: {named}\ndefaults: {{request-percentage: 50}}\n")
    (tmp_path / "list.yaml").write_text("- {principal: a, producer-byte-rate: 1}\n- {principal: b, producer-byte-rate: lots}\n")

    result = import_files("helmsman", [str(tmp_path / "helmsman.yaml")], folder=tmp_path / "q", partial=True)

    assert result.entities == 1
    assert "request_percentage: 50" in result.files[0].text
    (finding,) = result.findings
    assert (span_of(finding).file, span_of(finding).line) == (str(tmp_path / "list.yaml"), 2)


def test_quotas_without_a_cluster_do_not_mix_with_those_that_have_one(tmp_path: Path):
    (tmp_path / "a.tf").write_text(BLOCK.replace("NAME", "a"))
    (tmp_path / "b.tf").write_text(BLOCK.replace("NAME", "b").replace("  config", "  provider = kafka.eu\n  config"))

    result = import_files("terraform", [str(tmp_path)], folder=tmp_path / "q", partial=True)

    assert ids(result) == ["import-ambiguous"]
    assert {file.path for file in result.files} == {"users.yaml", "cluster.yaml"}
    assert "clusters: [eu]" in result.files[0].text


def test_one_entity_for_two_clusters_is_no_conflict_and_twice_for_one_is(tmp_path: Path):
    eu, us = (BLOCK.replace("  config", f"  provider = kafka.{name}\n  config") for name in ("eu", "us"))
    (tmp_path / "a.tf").write_text(eu + us)
    (tmp_path / "b.tf").write_text(eu)

    assert ids(import_files("terraform", [str(tmp_path / "a.tf")], folder=tmp_path / "1")) == []
    assert ids(import_files("terraform", [str(tmp_path)], folder=tmp_path / "2")) == ["duplicate-entity"]


def test_nothing_is_read_for_an_unknown_tool_or_into_a_folder_that_is_in_use(tmp_path: Path):
    with pytest.raises(UsageError, match="jikkou, terraform"):
        import_files("another", ["none"], folder=tmp_path / "q")
    (tmp_path / "there").touch()
    with pytest.raises(FileAccessError):
        import_files("jikkou", ["none"], folder=tmp_path)
