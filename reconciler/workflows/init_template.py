"""The repository template, made ready for a place: what CI it has, which versions its workflows take, where its schemas are."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.files import bundled_folder
from reconciler.formats import schema_folder
from reconciler.manifest import REPOSITORY_FILE, SCHEMA_FOLDER, ExportedFile
from reconciler.model import escaped

TEMPLATE: Final = "examples/gitops-repository"
FORGES: Final = ("github", "gitlab", "none")

_SCHEMAS: Final = ("client-quotas", "cluster", "repository")
_OF_FORGE: Final = {".github": "github", ".gitlab-ci.yml": "gitlab"}
_MODELINE: Final = re.compile(r"\A(# yaml-language-server: \$schema=)\S*?([\w-]+\.v\d+\.schema\.json)$", re.MULTILINE)
_ONLY: Final = re.compile(r"<!-- only: (\w+) -->\n(.*?)<!-- end -->\n", re.DOTALL)
_PINNED: Final = re.compile(r"OWNER/kafka-quotas(/\.github/workflows/[\w-]+\.yml)@0{40} # v[\w.]+")
_CLONED: Final = re.compile(r"(github\.com/)OWNER/kafka-quotas(\.git\"\n +KAFKA_QUOTAS_COMMIT: )\"0{40}\"")
_GIVEN_WORKFLOWS: Final = re.compile(
    r"(?P<repository>[A-Za-z0-9_-]{1,39}/[A-Za-z0-9._-]{1,100})@(?P<commit>[0-9a-f]{40}|[0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflows:
    """Where kafka-quotas' reusable workflows are, pinned by commit."""

    repository: str
    commit: str


def parse_workflows(text: str) -> Workflows:
    """``OWNER/NAME@COMMIT``. Raises ``UsageError``: a branch or tag may be moved by whoever owns it, so it is not taken."""
    match = _GIVEN_WORKFLOWS.fullmatch(text)
    if match is None:
        raise UsageError(f"--workflows takes OWNER/NAME@COMMIT with all 40 digits of the commit, not {escaped(text)!r}")
    return Workflows(repository=match["repository"], commit=match["commit"])


def template_files(*, forge: str, version: str, workflows: Workflows | None) -> Iterator[ExportedFile]:
    """The files for one of ``FORGES``, in the order of their paths, the schemas that they name included.

    ``version`` is that of kafka-quotas, which the pipelines install. Raises ``FileAccessError``.
    """
    source = bundled_folder(TEMPLATE, holds=REPOSITORY_FILE)
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        path = file.relative_to(source).as_posix()
        if _OF_FORGE.get(path.split("/", maxsplit=1)[0], forge) == forge:
            yield ExportedFile(path=path, text=_adapted(_text(file), path, forge=forge, version=version, workflows=workflows))
    for name in _SCHEMAS:
        schema = schema_folder() / f"{name}.v1.schema.json"
        yield ExportedFile(path=f"{SCHEMA_FOLDER}/{schema.name}", text=_text(schema))


def with_schema_place(text: str, path: str) -> str:
    """A manifest whose first line names its schema, seen from where it will be."""
    place = posixpath.relpath(SCHEMA_FOLDER, posixpath.dirname(path) or ".")
    return _MODELINE.sub(rf"\g<1>{place}/\g<2>", text, count=1)


def for_clusters(text: str, names: Sequence[str]) -> str:
    """A pipeline that lists the template's clusters, listing others."""
    return text.replace("CLUSTER: [staging, production]", f"CLUSTER: [{', '.join(names)}]")


def _adapted(text: str, path: str, *, forge: str, version: str, workflows: Workflows | None) -> str:
    text = _ONLY.sub(lambda match: match[2] if match[1] == forge else "", text)
    text = with_schema_place(text, path)
    if workflows is not None:
        text = _PINNED.sub(rf"{workflows.repository}\g<1>@{workflows.commit} # kafka-quotas {version}", text)
        text = _CLONED.sub(rf'\g<1>{workflows.repository}\g<2>"{workflows.commit}" # {version}', text)
    return text


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
