"""Files of manifests are revised whole, with their permissions, and only inside of what was named."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.errors import FileAccessError
from reconciler.features.manifest_edits import read_manifest, rewrite_file, write_revisions
from reconciler.model import FileRevision
from reconciler.yaml import ScalarEdit, edit_scalars

TEXT = "\ufeffspec:\r\n  rate: '1KiB'   # as agreed\r\n"
EDIT = ScalarEdit(line=2, column=9, old="1KiB", new="2KiB")


def revised(path: Path) -> FileRevision:
    before = read_manifest(str(path))
    return rewrite_file(str(path), before, edit_scalars(before, [EDIT]), paths=[str(path.parent)])


def test_line_ends_permissions_a_byte_order_mark_and_a_link_inside_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "q.yaml"
    real.write_bytes(TEXT.encode())
    real.chmod(0o640)
    link.symlink_to("real.yaml")
    write_revisions([revised(link)])
    assert link.is_symlink()
    assert real.read_bytes() == TEXT.replace("1KiB", "2KiB").encode()
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_bytes(TEXT.encode())
    path.chmod(0o444)
    with pytest.raises(FileAccessError, match=r"q\.yaml is read-only\. Nothing was written"):
        revised(path)


def test_a_link_out_of_the_named_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "quotas").mkdir()
    elsewhere, link = tmp_path / "elsewhere.yaml", tmp_path / "quotas" / "q.yaml"
    elsewhere.write_bytes(TEXT.encode())
    link.symlink_to(elsewhere)
    with pytest.raises(FileAccessError, match="outside of the repository"):
        revised(link)
