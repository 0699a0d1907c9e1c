"""Where a CI system reads the output."""

from __future__ import annotations

import pytest

from reconciler.cli.main import ci_reads


@pytest.mark.parametrize(
    ("environ", "read"),
    [
        ({}, False),
        ({"CI": ""}, False),
        ({"CI": "false"}, False),
        ({"CI": "true"}, True),
        ({"GITHUB_ACTIONS": "true"}, True),
        ({"TF_BUILD": "True"}, True),
        ({"GITLAB_CI": "true"}, True),
        ({"TEAMCITY_VERSION": "2025.03"}, True),
        ({"HOME": "/root"}, False),
    ],
)
def test_ci_systems_are_known_by_their_variables(environ: dict[str, str], read: bool) -> None:
    assert ci_reads(environ) is read
