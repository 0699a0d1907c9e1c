"""Make a repository for quotas: the template as it is, or around the quotas that a cluster already has."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError
from reconciler.features.starting.export import require_free, schema_files, write_files
from reconciler.features.starting.manifests import (
    SCHEMA_FOLDER,
    Export,
    ExportedFile,
    FilePlace,
    emit,
    name_of_cluster,
    owners_by_prefix,
    owners_yaml,
    place_of_owner,
    traffic_setting,
)
from reconciler.files import bundled_folder
from reconciler.manifest import REPOSITORY_FILE
from reconciler.model import Connection, CurrentState, MetricServer, TrafficKind, TrafficPlace, escaped, slug_of
from reconciler.workflows import is_prometheus, prometheus_address
from reconciler.yaml import scalar_text

_NIGHTLY: Final = ".github/workflows/quotas-traffic.yml"
_GITLAB: Final = ".gitlab-ci.yml"
_NIGHTLY_JOB: Final = re.compile(r"\n# Every night: .*", re.DOTALL)
"""The last job of GitLab's pipeline. It and the workflow are written only for traffic that they keep."""
_SAMPLES: Final = {
    _NIGHTLY: (("      cluster: {}\n", "production"), ("        {}\n", "/var/log/kafka")),
    _GITLAB: (("      - CLUSTER: [{}]\n", "production"), ("    TRAFFIC: {}\n", "/var/log/kafka")),
}
"""Where the template has its cluster, and the logs of it."""
TEMPLATE_CLUSTERS: Final = ("staging", "production")
_DAYS: Final = 14
"""How many days of an address a new repository judges by; as many as the nightly workflow keeps."""
TEMPLATE: Final = "examples/gitops-repository"

_OF_FORGE: Final = {".github": "github", ".gitlab-ci.yml": "gitlab"}
_MODELINE: Final = re.compile(r"\A(# yaml-language-server: \$schema=)\S*?([\w-]+\.v\d+\.schema\.json)$", re.MULTILINE)
_ONLY: Final = re.compile(r"<!-- only: (\w+) -->\n(.*?)<!-- end -->\n", re.DOTALL)
_PINNED: Final = re.compile(r"OWNER/kafka-quotas(/\.github/workflows/[\w-]+\.yml)@0{40} # v[\w.]+")
_CLONED: Final = re.compile(r"(github\.com/)OWNER/kafka-quotas(\.git\"\n +KAFKA_QUOTAS_COMMIT: )\"0{40}\"")
_GIVEN_WORKFLOWS: Final = re.compile(
    r"(?P<repository>[A-Za-z0-9_-]{1,39}/[A-Za-z0-9._-]{1,100})@(?P<commit>[0-9a-f]{40}|[0-9a-f]{64})"
)


def require_workflows(text: str) -> None:
    """Raise ``UsageError`` unless it is ``OWNER/NAME@COMMIT``: a branch or tag may be moved by its owner, so it is not taken."""
    if _GIVEN_WORKFLOWS.fullmatch(text) is None:
        raise UsageError(f"--workflows takes OWNER/NAME@COMMIT with all 40 digits of the commit, not {escaped(text)!r}")


def template_files(setting: Setting) -> Iterator[ExportedFile]:
    """The files for a forge, in the order of their paths, the schemas that they name included. Raises ``FileAccessError``."""
    source = bundled_folder(TEMPLATE, with_file=REPOSITORY_FILE)
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        path = file.relative_to(source).as_posix()
        if _OF_FORGE.get(path.split("/", maxsplit=1)[0], setting.forge) == setting.forge:
            yield ExportedFile(path=path, text=_adapted(file.read_text(encoding="utf-8"), path, setting))
    yield from schema_files()


def with_schema_place(text: str, path: str) -> str:
    """A manifest whose first line names its schema, seen from where it will be."""
    place = posixpath.relpath(SCHEMA_FOLDER, posixpath.dirname(path) or ".")
    return _MODELINE.sub(rf"\g<1>{place}/\g<2>", text, count=1)


def for_clusters(text: str, names: Sequence[str]) -> str:
    """A pipeline that lists the template's clusters, listing others."""
    return text.replace("CLUSTER: [staging, production]", f"CLUSTER: [{', '.join(names)}]")


def _adapted(text: str, path: str, setting: Setting) -> str:
    text = _ONLY.sub(lambda match: match[2] if match[1] == setting.forge else "", text)
    text = with_schema_place(text, path)
    if setting.workflows is not None:
        repository, _, commit = setting.workflows.partition("@")
        text = _PINNED.sub(rf"{repository}\g<1>@{commit} # kafka-quotas {setting.version}", text)
        text = _CLONED.sub(rf'\g<1>{repository}\g<2>"{commit}" # {setting.version}', text)
    return text


CLUSTER_FOLDER: Final = "clusters"
"""Where the Cluster manifests are; a path to client properties is written as seen from there."""

_PLACEHOLDERS: Final = ("OWNER/kafka-quotas", "@YOUR-ORG")
_OF_TEMPLATE_ONLY: Final = ("clusters/", "teams/", REPOSITORY_FILE, ".github/CODEOWNERS")
_REPOSITORY: Final = """\
# yaml-language-server: $schema=.schemas/repository.v1.schema.json
apiVersion: kafka-quotas/v1
kind: Repository
spec:
  # YAML that is not a manifest. Hidden folders are never read, hidden files are.
  exclude: [".gitlab-ci.yml", ".pre-commit-config.yaml"]
  # Where Cluster manifests may lie: they decide where credentials are sent, and which limits a write has.
  clusterPaths: ["clusters/**"]
  # Who may declare what, and where. Then every document names its owner in metadata.
  # owners:
  #   team-payments: {paths: ["teams/payments/**"], entities: [{user: {prefix: payments-}}]}
  #   team-platform: {paths: ["quotas/**"]}
  # The largest values that a change may ask for.
  # limits:
  #   - {owner: team-payments, producer_byte_rate: {max: 200MiB}}
"""
_CODEOWNERS: Final = """\
# Who must approve what. The last line that matches a file counts. Write your organisation's teams in place of @YOUR-ORG.
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
    """How the repository is to be."""

    forge: str
    """``github``, ``gitlab`` or ``none``."""
    version: str
    """Of kafka-quotas, which the pipelines install."""
    workflows: str | None = None
    """``OWNER/NAME@COMMIT`` of the reusable workflows. ``None``: a placeholder."""
    traffic: str | None = None
    """As ``--traffic`` of ``backtest`` takes it."""
    cluster: str = TEMPLATE_CLUSTERS[-1]
    """The cluster of the template that this traffic is of."""

    def traffic_of(self, cluster: str) -> MetricServer | TrafficPlace | None:
        """``spec.traffic`` of this cluster. On a forge, a nightly job keeps the totals of a folder in a reference."""
        if self.traffic is None:
            return None
        if is_prometheus(self.traffic):
            return MetricServer(address=prometheus_address(self.traffic))
        place = TrafficPlace(place=self.traffic)
        if place.kind is TrafficKind.FOLDER and self.forge != "none":
            return TrafficPlace(place=f"refs/kafka-quotas/traffic/{slug_of(cluster)}")
        return replace(place, days=_DAYS) if place.kind is TrafficKind.ADDRESS else place


def make_repository(
    folder: Path,
    setting: Setting,
    *,
    overwrite: bool = False,
    state: CurrentState | None = None,
    connection: Connection | None = None,
    adopt: bool = False,
) -> Made:
    """Write the template, or with ``state`` a repository whose plan for that cluster is empty.

    Files of the same names are replaced with ``overwrite``, others are left. Raises ``FileAccessError``; then single files may
    have been replaced, and none is half written.
    """
    require_free(folder, overwrite=overwrite)
    files = tuple(template_files(setting))
    export = None
    clusters: tuple[str, ...] = TEMPLATE_CLUSTERS
    of_traffic = setting.cluster
    if state is not None:
        owners = owners_by_prefix(state.entities) if adopt else {}
        traffic = setting.traffic_of(name_of_cluster(state))
        settings = [] if traffic is None else [traffic_setting(traffic)]
        place = (lambda entity: place_of_owner(entity, owners)) if adopt else (lambda _: FilePlace())
        export = emit(state, connection=connection, place=place, settings=settings)
        of_traffic = export.cluster_name
        clusters = (of_traffic,)
        files = tuple(_adopted(files, export, forge=setting.forge, owners=owners_yaml(owners) if adopt else ""))
    elif setting.traffic is not None:
        files = tuple(_with_traffic(files, setting))
    files = tuple(_with_nightly(files, setting, of_traffic))
    files = tuple(sorted(files, key=lambda file: file.path))
    write_files(files, folder)
    return Made(
        folder=folder,
        files=tuple(file.path for file in files),
        clusters=clusters,
        export=export,
        placeholders=tuple(word for word in _PLACEHOLDERS if any(word in f.text for f in files if f.path != "README.md")),
    )


def _with_traffic(files: Sequence[ExportedFile], setting: Setting) -> Iterator[ExportedFile]:
    """The template, with traffic in the manifest of one of its clusters."""
    traffic = setting.traffic_of(setting.cluster)
    for file in files:
        if traffic is not None and file.path == f"{CLUSTER_FOLDER}/{setting.cluster}.yaml":
            yield replace(file, text=f"{file.text.rstrip()}\n{traffic_setting(traffic)}\n")
        else:
            yield file


def _with_nightly(files: Sequence[ExportedFile], setting: Setting, cluster: str) -> Iterator[ExportedFile]:
    """The files, with the job that keeps traffic where this setting needs it."""
    traffic = setting.traffic_of(cluster)
    kept = isinstance(traffic, TrafficPlace) and traffic.kind is TrafficKind.REFERENCE
    for file in files:
        text = file.text
        if file.path in _SAMPLES and kept:
            for (place, sample), value in zip(_SAMPLES[file.path], (cluster, str(setting.traffic)), strict=True):
                written = value if place.startswith("        ") else scalar_text(value)
                text = text.replace(place.format(sample), place.format(written))
        elif file.path == _GITLAB:
            text = _NIGHTLY_JOB.sub("", text)
        if file.path != _NIGHTLY or kept:
            yield replace(file, text=text)


def _adopted(files: Sequence[ExportedFile], export: Export, *, forge: str, owners: str = "") -> Iterator[ExportedFile]:
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
        quotas = file.path if owners else f"quotas/{file.path}"
        path = f"{CLUSTER_FOLDER}/{slug_of(export.cluster_name)}.yaml" if file.path == "cluster.yaml" else quotas
        yield ExportedFile(path=path, text=with_schema_place(file.text, path))
    yield ExportedFile(path=REPOSITORY_FILE, text=_REPOSITORY + owners + lint)
