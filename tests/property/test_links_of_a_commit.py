"""Where a link of a commit leads, found without a file system, is where the operating system finds it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reconciler.workflows.git_manifests import resolved_link

STEPS = st.sampled_from(["a", "b", "l", "m", "..", ".", ""])
TARGETS = st.lists(STEPS, min_size=1, max_size=5).map("/".join).filter(bool)


@given(
    links=st.dictionaries(st.sampled_from(["l", "m", "a/l", "a/m", "b/l", "a/b/l"]), TARGETS | TARGETS.map("/tmp/{}".format)),
    path=st.lists(st.sampled_from(["a", "b", "l", "m"]), min_size=1, max_size=4).map("/".join),
)
def test_a_path_resolves_to_what_the_operating_system_opens(links: dict[str, str], path: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        outer = Path(os.path.realpath(name))
        top = outer / "commit"
        for folder in ("a/b", "b"):
            (top / folder).mkdir(parents=True)
        for link, target in links.items():
            (top / link).symlink_to(target)
        found = resolved_link(path, links)
        try:
            physical = Path(os.path.realpath(top / path, strict=True))
        except OSError:
            return
        inside = physical.is_relative_to(top)
        assert found is None or (inside and top / found == physical)
        went_out = "/tmp" in "".join(links.values()) or ".." in "".join(links.values())
        assert found is not None or not inside or went_out
