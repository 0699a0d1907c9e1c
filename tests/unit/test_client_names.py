"""Completion in a notebook offers the public names of the Python interface."""

from __future__ import annotations

import subprocess
import sys


def test_names_that_were_never_used_are_listed() -> None:
    program = "import reconciler.client as client; print({'connect', 'manifests', 'entity'} <= set(dir(client)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
