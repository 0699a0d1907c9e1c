"""Make a repository for quotas: the template as it is, or around the quotas that a cluster already has."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError
from reconciler.manifest import REPOSITORY_FILE, Export, ExportedFile, emit
from reconciler.model import Connection, CurrentState, slug_of
from reconciler.workflows.init_template import Workflows, for_clusters, template_files, with_schema_place
from reconciler.yaml import scalar_text

CLUSTER_FOLDER: Final = "clusters"
"""Where the Cluster documents are; a path to client properties is written as seen from there."""

_LEFT_ALONE: Final = frozenset({".git"})
_PLACEHOLDERS: Final = ("OWNER/kafka-quotas", "@YOUR-ORG")
_OF_TEMPLATE_ONLY: Final = ("clusters/", "teams/", REPOSITORY_FILE, ".github/CODEOWNERS")
_REPOSITORY: Final = """\
# yaml-language-server: $schema=.schemas/repository.v1.schema.json
apiVersion: kafka-quotas/v1
kind: Repository
spec:
  # YAML that is no manifest. Hidden folders are never read, hidden files are.
  exclude: [".gitlab-ci.yml", ".pre-commit-config.yaml"]
  # Where Cluster manifests may lie: they say where credentials are sent, and which limits a write has.
  clusterPaths: ["clusters/**"]
  # Who may declare what, and where; then every document names its owner in metadata.
  # owners:
  #   team-payments: {paths: ["teams/payments/**"], entities: [{user: {prefix: payments-}}]}
  #   team-platform: {paths: ["quotas/**"]}
  # The largest values that a change may ask for.
  # limits:
  #   - {owner: team-payments, producer_byte_rate: {max: 200MiB}}
"""
_CODEOWNERS: Final = """\
# Who must approve what; the last line that matches a file counts. Write your organisation's teams in place of @YOUR-ORG.
*  @YOUR-ORG/team-platform
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What was written. ``export`` is what came of a cluster; ``placeholders``: words that a person must replace."""

    folder: Path
    files: tuple[str, ...]
    clusters: tuple[str, ...]
    export: Export | None = None
    placeholders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the repository is to be: its forge, the tool's version, and where its workflows come from."""

    forge: str
    version: str
    workflows: Workflows | None = None


def require_room(folder: Path, *, overwrite: bool) -> None:
    """Raise ``FileAccessError`` when the folder holds anything but ``.git`` (unless ``overwrite``), or is none."""
    try:
        occupied = any(entry.name not in _LEFT_ALONE for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileAccessError(f"cannot make a repository in {folder}: {error.strerror}") from error
    if occupied and not overwrite:
        raise FileAccessError(f"the folder {folder} is not empty; nothing was written; choose another, or pass --overwrite")


def make_repository(
    folder: Path,
    setting: Setting,
    *,
    overwrite: bool = False,
    state: CurrentState | None = None,
    connection: Connection | None = None,
) -> Made:
    """Write the template, or with ``state`` a repository whose plan for that cluster is empty.

    Files of the same names are replaced with ``overwrite``, others are left. Raises ``FileAccessError``; then single files may
    have been replaced, and none is half written.
    """
    require_room(folder, overwrite=overwrite)
    files = tuple(template_files(forge=setting.forge, version=setting.version, workflows=setting.workflows))
    export = None
    clusters: tuple[str, ...] = ("staging", "production")
    if state is not None:
        export = emit(state, connection=connection)
        clusters = (export.cluster_name,)
        files = tuple(_adopted(files, export, forge=setting.forge))
    files = tuple(sorted(files, key=lambda file: file.path))
    _write(files, folder)
    return Made(
        folder=folder,
        files=tuple(file.path for file in files),
        clusters=clusters,
        export=export,
        placeholders=tuple(word for word in _PLACEHOLDERS if any(word in f.text for f in files if f.path != "README.md")),
    )


def _adopted(files: Sequence[ExportedFile], export: Export, *, forge: str) -> Iterator[ExportedFile]:
    """The template's pipelines and words, with the quotas of the cluster in place of its example."""
    for file in files:
        if not file.path.startswith(_OF_TEMPLATE_ONLY):
            yield ExportedFile(path=file.path, text=for_clusters(file.text, [scalar_text(export.cluster_name)]))
    if forge == "github":
        yield ExportedFile(path=".github/CODEOWNERS", text=_CODEOWNERS)
    lint = ""
    for file in export.files:
        if file.path == REPOSITORY_FILE:
            lint = file.text.partition("spec:\n")[2]
            continue
        path = f"{CLUSTER_FOLDER}/{slug_of(export.cluster_name)}.yaml" if file.path == "cluster.yaml" else f"quotas/{file.path}"
        yield ExportedFile(path=path, text=with_schema_place(file.text, path))
    yield ExportedFile(path=REPOSITORY_FILE, text=_REPOSITORY + lint)


def _write(files: Sequence[ExportedFile], folder: Path) -> None:
    stage: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".init-", dir=folder))
        for file in files:
            staged = stage / file.path
            staged.parent.mkdir(parents=True, exist_ok=True)
            staged.write_text(file.text, encoding="utf-8", newline="\n")
        for file in files:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            (stage / file.path).replace(target)
    except OSError as error:
        raise FileAccessError(f"cannot make a repository in {folder}: {error.strerror}") from error
    finally:
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
