"""Make a repository for quotas: the template as it is, or around the quotas that a cluster already has."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import reconciler
from reconciler.errors import UsageError
from reconciler.features.starting.manifests import (
    SCHEMA_FOLDER,
    Export,
    emit,
    name_of_cluster,
    schema_files,
    traffic_setting,
    write_files,
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
_SAMPLES: Final[Mapping[str, tuple[str, str, Callable[[str], str]]]] = {
    _NIGHTLY: ("      cluster: {}\n", "        {}\n", str),
    _GITLAB: ("      - CLUSTER: [{}]\n", "    TRAFFIC: {}\n", scalar_text),
}
"""Where the template has its cluster, and the logs of it; the text of a workflow's logs stands in a block."""
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

CLUSTER_FOLDER: Final = "clusters"
"""Where the Cluster manifests are; a path to client properties is written as seen from there."""

PLACEHOLDERS: Final = ("OWNER/kafka-quotas", "@YOUR-ORG")
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


def require_workflows(text: str) -> None:
    """Raise ``UsageError`` unless it is ``OWNER/NAME@COMMIT``: a branch or tag may be moved by its owner, so it is not taken."""
    if _GIVEN_WORKFLOWS.fullmatch(text) is None:
        raise UsageError(f"--workflows takes OWNER/NAME@COMMIT with all 40 digits of the commit, not {escaped(text)!r}")


def _traffic_of(cluster: str, traffic: str, forge: str) -> MetricServer | TrafficPlace:
    """``spec.traffic`` of this cluster. On a forge, a nightly job keeps the totals of a folder in a reference."""
    if is_prometheus(traffic):
        return MetricServer(address=prometheus_address(traffic))
    place = TrafficPlace(place=traffic)
    if place.kind is TrafficKind.FOLDER and forge != "none":
        return TrafficPlace(place=f"refs/kafka-quotas/traffic/{slug_of(cluster)}")
    return replace(place, days=_DAYS) if place.kind is TrafficKind.ADDRESS else place


def make_repository(
    folder: Path,
    *,
    forge: str,
    workflows: str | None,
    traffic: str | None,
    cluster: CurrentState | str,
    connection: Connection | None,
) -> tuple[Mapping[str, str], Export | None]:
    """Write the template, or with the state of a cluster a repository whose plan for it is empty.

    ``forge``: ``github``, ``gitlab`` or ``none``. ``workflows``: ``OWNER/NAME@COMMIT`` of the reusable ones, else a placeholder.
    ``traffic``: as ``--traffic`` of ``backtest`` takes it. ``cluster``: what it has, or the name of the one in the
    template that the traffic is of.

    Returns the texts of the files by their paths, and what came of the cluster. Files of the same names are replaced, others are
    left. Raises ``FileAccessError``; then single files may have been replaced, and none is half written.
    """
    export = None
    name = cluster if isinstance(cluster, str) else name_of_cluster(cluster)
    files, place = _template(forge, workflows), None if traffic is None else _traffic_of(name, traffic, forge)
    settings = [] if place is None else [traffic_setting(place)]
    if not isinstance(cluster, str):
        export = emit(cluster, connection=connection, settings=settings)
        files = dict(_with_export(files, export, forge=forge))
    else:
        manifest = f"{CLUSTER_FOLDER}/{name}.yaml"
        files[manifest] = "\n".join((files[manifest].rstrip(), *settings, ""))
    is_kept = isinstance(place, TrafficPlace) and place.kind is TrafficKind.REFERENCE
    _keep_nightly(files, traffic if is_kept else None, name)
    files = dict(sorted(files.items()))
    write_files(files, folder)
    return files, export


def _template(forge: str, workflows: str | None) -> dict[str, str]:
    """The files for a forge, with the schemas that they name. Raises ``FileAccessError``."""
    source = bundled_folder(TEMPLATE, with_file=REPOSITORY_FILE)
    files = schema_files()
    for file in (path for path in source.rglob("*") if path.is_file()):
        path = file.relative_to(source).as_posix()
        if _OF_FORGE.get(path.split("/", maxsplit=1)[0], forge) == forge:
            text = _ONLY.sub(lambda match: match[2] if match[1] == forge else "", file.read_text(encoding="utf-8"))
            if workflows is not None:
                repository, _, commit = workflows.partition("@")
                version = reconciler.__version__
                text = _PINNED.sub(rf"{repository}\g<1>@{commit} # kafka-quotas {version}", text)
                text = _CLONED.sub(rf'\g<1>{repository}\g<2>"{commit}" # {version}', text)
            files[path] = _with_schema_place(text, path)
    return files


def _with_schema_place(text: str, path: str) -> str:
    """A manifest whose first line names its schema, seen from where it will be."""
    place = posixpath.relpath(SCHEMA_FOLDER, posixpath.dirname(path) or ".")
    return _MODELINE.sub(rf"\g<1>{place}/\g<2>", text, count=1)


def _with_export(files: Mapping[str, str], export: Export, *, forge: str) -> Iterator[tuple[str, str]]:
    """The template's pipelines and words, with the quotas of the cluster in place of its example."""
    for path, text in files.items():
        if not path.startswith(_OF_TEMPLATE_ONLY):
            listed = f"CLUSTER: [{scalar_text(export.cluster_name)}]"
            yield path, text.replace(f"CLUSTER: [{', '.join(TEMPLATE_CLUSTERS)}]", listed)
    if forge == "github":
        yield ".github/CODEOWNERS", _CODEOWNERS
    for path, text in export.files.items():
        if path != REPOSITORY_FILE:
            place = f"{CLUSTER_FOLDER}/{slug_of(export.cluster_name)}.yaml" if path == "cluster.yaml" else f"quotas/{path}"
            yield place, _with_schema_place(text, place)
    yield REPOSITORY_FILE, _REPOSITORY + export.files.get(REPOSITORY_FILE, "").partition("spec:\n")[2]


def _keep_nightly(files: dict[str, str], kept: str | None, cluster: str) -> None:
    """Adapt the job that keeps traffic to the folder of its logs. ``kept`` ``None``: remove it."""
    if kept is None:
        files.pop(_NIGHTLY, None)
        if _GITLAB in files:
            files[_GITLAB] = _NIGHTLY_JOB.sub("", files[_GITLAB])
        return
    for path in files.keys() & _SAMPLES.keys():
        of_cluster, of_traffic, written = _SAMPLES[path]
        text = files[path].replace(of_cluster.format("production"), of_cluster.format(scalar_text(cluster)))
        files[path] = text.replace(of_traffic.format("/var/log/kafka"), of_traffic.format(written(kept)))
