"""Whatever a file has, an import of it ends in quotas that Kafka takes and findings inside the file. It never raises."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.importing.resources import read_jikkou
from reconciler.features.importing.strimzi import read_strimzi
from reconciler.features.importing.terraform import read_terraform

FIXTURES = Path(__file__).parent / "fixtures"
RAW_STATE = (
    b'{"version": 4, "serial": 1, "lineage": "x", "resources": [{"mode": "managed", "type": "kafka_quota", "name": "q", '
    b'"provider": "provider[\\"x\\"].eu", "instances": [{"attributes": {"entity_type": "user", "entity_name": "a", '
    b'"config": {"producer_byte_rate": 1024}}}]}]}'
)
JIKKOU = (
    b"apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuotaList\nitems:\n"
    b"  - spec: {type: USER, entity: {user: a}, configs: {producerByteRate: 1024}}\n"
)
CASES = {
    "strimzi": (read_strimzi, (FIXTURES / "strimzi.yaml").read_bytes()),
    "jikkou": (read_jikkou, JIKKOU),
    "terraform": (lambda content, _file: read_terraform(content, "terraform.tfstate"), RAW_STATE),
}
PIECES = [
    b"[",
    b"]",
    b"{",
    b"}",
    b"null",
    b"3",
    b"-",
    b": ",
    b"\n",
    b"true",
    b"1e999",
    b"<default>",
    b"\xff",
    b"&a ",
    b"*a",
    b"\0",
]


@pytest.mark.parametrize("tool", CASES)
@given(data=st.data())
def test_a_file_with_anything_in_it_never_raises_and_findings_lie_inside_it(tool, data):
    read, content = CASES[tool]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 12)))
        content = content[:start] + data.draw(st.sampled_from(PIECES)) + content[end:]

    found = read(content, "file")

    lines = content.count(b"\n") + content.count(b"\r") + 2
    for finding in found.findings:
        assert finding.span is not None
        assert 1 <= finding.span.line <= lines
    for quota in found.quotas:
        assert quota.entity.is_known
        assert all(value > 0 for value in quota.quotas.values())
