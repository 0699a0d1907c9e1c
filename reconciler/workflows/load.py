"""Manifests from paths: the one road that validate, plan, apply and backtest take from files to a desired state."""

from __future__ import annotations

import datetime
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from reconciler.collector import pause_collector
from reconciler.errors import ManifestError, UntrustedError, UsageError
from reconciler.logs import log_event, timed_event
from reconciler.manifest import (
    REPOSITORY_FILE,
    ClientQuotasDocument,
    ClusterDocument,
    Discovery,
    Document,
    FileContent,
    FindingsBaseline,
    IncludedFiles,
    ManifestFile,
    Owner,
    RepositoryDocument,
    UnreadableError,
    cluster_findings,
    clusters_without_id,
    desired_state,
    discover,
    file_span,
    find_root,
    finding,
    misplaced_clusters,
    ownership_findings,
    path_matcher,
    read_documents,
    read_file,
)
from reconciler.model import (
    ClusterSpec,
    DesiredState,
    Finding,
    QuotaProfile,
    Severity,
    Span,
    compose,
    display_name,
    in_order,
    rules,
)
from reconciler.ports import SystemClock
from reconciler.text import did_you_mean, shown, shown_part

if TYPE_CHECKING:
    from reconciler.workflows.git_manifests import ManifestsAt

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The references as the user gave them."""

    trusted: str | None = None
    base: str | None = None


NO_REFERENCES: Final = References()


_NO_REPOSITORY: Final = RepositoryDocument(file="", span=Span(file="", line=1, column=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedManifests:
    """Everything that the manifests declare, before a cluster is chosen.

    ``documents`` are in the order of their files. ``selected``: the files that the user asked for, when that is not all of them
    (findings about others are still here; ``is_shown`` distinguishes them). ``complete`` is false when a plan must not prune.
    ``proposed``, ``proposed_repository`` and ``proposed_baseline`` are the work tree's own. Those of ``trust`` apply in their
    place where there is one.
    """

    documents: tuple[ClientQuotasDocument, ...] = ()
    findings: tuple[Finding, ...] = ()
    root: str | None = None
    files: tuple[str, ...] = ()
    selected: frozenset[str] | None = None
    complete: bool = True
    proposed: Mapping[str, ClusterSpec] = field(default_factory=dict)
    proposed_repository: RepositoryDocument | None = None
    proposed_baseline: FindingsBaseline | None = None
    trust: ManifestsAt | None = None
    at: datetime.datetime | None = None
    """The moment that decides about values that expire."""

    @property
    def baseline(self) -> FindingsBaseline | None:
        """The findings baseline that applies: a pull request does not add to what it may leave."""
        return self.proposed_baseline if self.trust is None else self.trust.loaded.proposed_baseline

    @property
    def clusters(self) -> Mapping[str, ClusterSpec]:
        """The Cluster manifests that apply."""
        return self.proposed if self.trust is None else self.trust.loaded.proposed

    @property
    def repository(self) -> RepositoryDocument:
        """The Repository manifest that applies: a pull request does not raise its own budget. An empty one where none does."""
        ruling = self.proposed_repository if self.trust is None else self.trust.loaded.proposed_repository
        return ruling if ruling is not None else _NO_REPOSITORY

    def desired(self, spec: ClusterSpec) -> DesiredState:
        """Return all that is declared for one cluster, also by files that the user did not name."""
        profiles, budgets = self.profiles(spec.name), self.repository.budgets
        return desired_state(self.documents, spec, profiles=profiles, budgets=budgets, at=self.at).state

    def profiles(self, cluster: str | None) -> tuple[Mapping[str, QuotaProfile], ...]:
        """The profiles of the repository, then those of a cluster. They are values, so they are always the work tree's own."""
        repository, spec = self.proposed_repository, self.proposed.get(cluster or "")
        return (repository.profiles if repository else {}, spec.profiles if spec else {})

    def is_shown(self, finding: Finding) -> bool:
        """True for a finding that concerns what the user asked for."""
        if self.selected is None or finding.span is None or PurePath(finding.span.file).name == REPOSITORY_FILE:
            return True
        read_elsewhere = finding.span.file in self.files and finding.span.file not in self.selected
        return not read_elsewhere or any(r.span.file in self.selected for r in finding.related)


def load_manifests(
    paths: Sequence[str], *, trust: ManifestsAt | None = None, within: str | None = None, at: datetime.datetime | None = None
) -> LoadedManifests:
    """Read everything that the paths stand for; whatever is wrong with files or documents is in ``findings``.

    With ``trust`` its clusters, lint settings and root apply, and the work tree's own are ignored. The root is not looked
    for above the folder ``within``. ``at``: the moment that decides about values that expire; ``None``: now.
    Raises ``UsageError`` when the paths belong to different roots.
    """
    trusted = None if trust is None else trust.ref
    with timed_event(_log, "manifests read", level=logging.INFO, paths=list(paths), trusted_ref=trusted) as data:
        with pause_collector():
            loaded = _load(paths, trust, within, at or SystemClock().now())
        data["root"] = loaded.root
        data["files"] = len(loaded.files)
        data["clusters"] = sorted(loaded.clusters)
        data["findings"] = len(loaded.findings)
    return loaded


def find_repository_root(paths: Sequence[str], *, within: str | None = None) -> str | None:
    """The folder of the Repository file at or above all paths. Raises ``UsageError`` when they belong to different roots."""
    contents: dict[str, FileContent] = {}
    root = find_root(paths, lambda path: _is_repository_file(path, contents), within=within)
    return root if root is None else _with_owners_above(root, contents, within)


def _with_owners_above(root: str, contents: dict[str, FileContent], within: str | None) -> str:
    """The outermost root whose owners rule this folder: a Repository manifest in a team's folder must not end their rule.

    Nothing is looked for above the top of a git work tree, or above ``within``.
    """
    file = Path(root, REPOSITORY_FILE)
    for folder, above in zip(file.parents, file.parent.parents, strict=False):
        if str(folder) == within or os.path.lexists(folder / ".git"):
            break
        candidate = str(above / REPOSITORY_FILE)
        if Path(candidate).is_file() and _is_repository_file(candidate, contents):
            repository = _repository_of(str(above), contents)
            if repository and repository.owners and not path_matcher(repository.exclude)(file.relative_to(above).as_posix()):
                root = str(above)
    return root


def _load(paths: Sequence[str], trust: ManifestsAt | None, within: str | None, at: datetime.datetime) -> LoadedManifests:
    contents: dict[str, FileContent] = {}
    if trust is not None and trust.root is not None:
        # It wins: a pull request that moves the root would change what a plan takes for the whole.
        root: str | None = trust.path_of(trust.root)
        _is_repository_file(f"{root}{os.sep}{REPOSITORY_FILE}", contents)
    else:
        root = find_root(paths, lambda path: _is_repository_file(path, contents), within=within)
        root = root if root is None else _with_owners_above(root, contents, within)
    repository = None if root is None else _repository_of(root, contents)
    include = IncludedFiles(repository.include, path_matcher(repository.include)) if repository and repository.include else None
    excluded = path_matcher(repository.exclude) if repository and repository.exclude else None
    discovered = discover(paths, root=root, excluded=excluded, include=include)
    findings = list(discovered.findings)
    documents: list[Document] = []
    for file in discovered.files:
        content = _content(file)
        log_event(_log, "file read", file=file.path, documents=len(content.documents), findings=len(content.findings))
        documents += content.documents
        findings += content.findings
    return _assemble(paths, discovered, documents, findings, repository=repository, trust=trust, at=at)


def _assemble(
    paths: Sequence[str],
    discovered: Discovery,
    documents: list[Document],
    findings: list[Finding],
    *,
    repository: RepositoryDocument | None = None,
    trust: ManifestsAt | None = None,
    at: datetime.datetime | None = None,
) -> LoadedManifests:
    """Put together what the documents declare. ``discovered``: where they come from."""
    quotas = tuple(d for d in documents if isinstance(d, ClientQuotasDocument))
    clusters = tuple(d for d in documents if isinstance(d, ClusterDocument))
    findings += cluster_findings(quotas, clusters)
    if not documents and not findings:
        findings.append(_nothing_found(paths, discovered))
    by_name: dict[str, ClusterSpec] = {}
    for cluster in clusters:
        by_name.setdefault(cluster.spec.name or "", cluster.spec)
    relative = {file.path: file.relative for file in discovered.files}
    repositories = [d for d in documents if isinstance(d, RepositoryDocument)]
    if repositories:
        findings += _misplaced(repositories, relative, discovered.root)
    # The same document once more, with its places as the user would type them.
    at_root = (document for document in repositories if relative[document.file] == REPOSITORY_FILE)
    repository = next(at_root, repository) if discovered.root is not None else None
    baselines = [d for d in documents if isinstance(d, FindingsBaseline)]
    if baselines:
        findings += _misplaced_baselines(baselines, relative, discovered.root)
    loaded = LoadedManifests(
        documents=quotas,
        root=discovered.root,
        files=tuple(file.path for file in discovered.files),
        selected=discovered.selected,
        complete=not discovered.filtered,
        proposed=by_name,
        proposed_repository=repository,
        proposed_baseline=next((each for each in baselines if _may_lie(each, relative, discovered.root)), None),
        trust=trust,
        at=at,
    )
    ruling = loaded.repository
    if any(cluster.spec.safety.accept for cluster in clusters):
        findings += _unknown_guards(clusters)
    if ruling.owners or ruling.cluster_paths is not None or len(clusters) > 1:
        findings += _about_places(clusters, ruling, relative, discovered.root)
    if ruling.owners:
        findings += _unknown_owners(clusters, ruling.owners)
        specs = tuple(loaded.clusters.values())
        findings += ownership_findings(quotas, ruling.owners, relative=relative.__getitem__, clusters=specs)
    findings = list(adjusted(findings, ruling.lint)) if ruling.lint else findings
    return replace(loaded, findings=in_order(findings))


def _about_places(
    clusters: Sequence[ClusterDocument], ruling: RepositoryDocument, relative: Mapping[str, str], root: str | None
) -> Iterator[Finding]:
    """Cluster manifests that lie where none may, and others that may mean the same cluster."""
    misplaced = tuple(misplaced_clusters(clusters, ruling, places=lambda file: _places(file, relative[file], root)))
    wrong = {finding.span for finding in misplaced}
    # The other manifests are not to blame for what a misplaced one names.
    yield from (*misplaced, *clusters_without_id([cluster for cluster in clusters if cluster.span not in wrong]))


def _places(file: str, relative: str, root: str | None) -> tuple[str, ...]:
    """A file's paths from the root: as it was found, and without links, since a link may lead to where another team writes."""
    if root is None:
        return (relative,)
    physical = os.path.relpath(os.path.realpath(file), os.path.realpath(root)).replace(os.sep, "/")
    return tuple(dict.fromkeys((relative, physical)))


def desired_for(loaded: LoadedManifests, cluster_name: str | None) -> tuple[ClusterSpec, DesiredState, tuple[Finding, ...]]:
    """The cluster, what is declared for it, and the findings about it alone (those of ``loaded`` are not among them).

    The cluster is the one of that name, or the only one, or the stand-in when there is none. Raises ``UsageError`` for an unknown
    name, or when there are several clusters and no name, and ``UntrustedError`` for one that the trusted reference lacks.
    """
    spec = chosen_cluster(loaded, cluster_name)
    selected = loaded.selected
    shown_files = None if selected is None else selected.__contains__
    result = desired_state(
        loaded.documents,
        spec,
        shown_files=shown_files,
        limits=loaded.repository.limits,
        profiles=loaded.profiles(spec.name),
        budgets=loaded.repository.budgets,
        at=loaded.at,
    )
    state = result.state if loaded.complete else replace(result.state, complete=False)
    return spec, state, in_order(adjusted(result.findings, loaded.repository.lint)) if result.findings else ()


def chosen_cluster(loaded: LoadedManifests, cluster_name: str | None) -> ClusterSpec:
    """The cluster to work on.

    Raises ``UsageError`` for an unknown or ambiguous name, ``UntrustedError`` for one only in the work tree.
    """
    names = sorted(loaded.clusters)
    if loaded.trust is not None:
        _require_trusted(loaded, loaded.trust, cluster_name)
    if cluster_name is not None:
        if cluster_name not in loaded.clusters:
            known = did_you_mean(cluster_name, names) if names else ". No Cluster manifest was read"
            msg = f"no manifest declares cluster {shown(cluster_name)}{known}"
            raise UsageError(msg)
        return loaded.clusters[cluster_name]
    if len(names) > 1:
        choices = ", ".join(display_name(name) for name in names)
        raise UsageError(f"the manifests declare several clusters. Choose one with --cluster: {choices}")
    return loaded.clusters[names[0]] if names else ClusterSpec()


def _require_trusted(loaded: LoadedManifests, trust: ManifestsAt, wanted: str | None) -> None:
    new = [name for name in sorted(loaded.proposed) if name not in trust.loaded.proposed]
    if wanted is None and new and not trust.loaded.proposed:
        wanted = new[0]
    if wanted is not None and wanted in new:
        msg = (
            f"cluster {display_name(wanted)} is new: {trust.ref} has no Cluster manifest of that name, so its connection, scope "
            "and guards are not trusted yet. Merge that document first"
        )
        raise UntrustedError(msg)


def stop_on(findings: Sequence[Finding], fail_on: Severity = Severity.ERROR) -> None:
    """Raise ``ManifestError`` with these findings when one that is not as before is as bad as ``fail_on``, or worse."""
    stopping = [finding for finding in findings if finding.fails(fail_on)]
    if not stopping:
        return
    first = min(stopping, key=lambda finding: finding.severity.rank)
    where = f"{first.span}: " if first.span else ""
    counts = Counter(finding.severity for finding in stopping)
    words = [f"{counts[each]} {each.value}{'s' if counts[each] > 1 and each is not Severity.INFO else ''}" for each in Severity]
    count = ", ".join(word for word in words if not word.startswith("0 "))
    if first.severity is Severity.ERROR:
        brief = f"the manifests are not valid: {count}"
    else:
        brief = f"the manifests are valid, but the command fails on level {fail_on.value}: {count}"
    raise ManifestError(f"{brief}. {where}{first.message} [{first.id}]", findings=findings, brief=brief)


def adjusted(findings: Sequence[Finding], lint: Mapping[str, Severity | None]) -> tuple[Finding, ...]:
    """Findings with the severities of the Repository document; those switched off are left out."""
    wanted = ((finding, lint.get(finding.id, finding.severity)) for finding in findings)
    return tuple(replace(finding, severity=severity) for finding, severity in wanted if severity is not None)


def _content(file: ManifestFile) -> FileContent:
    try:
        return read_documents(read_file(file.path), file.path)
    except UnreadableError as error:
        return FileContent(documents=(), findings=(finding(error.rule_id, str(error), file_span(file.path)),))


def _is_repository_file(path: str, contents: dict[str, FileContent]) -> bool:
    """True unless the file clearly has only other kinds: a broken Repository file must not make its folder another one's."""
    content = contents[path] = _content(ManifestFile(path=path, relative=REPOSITORY_FILE))
    if not content.documents or any(finding.id in rules("file") for finding in content.findings):
        return True
    return any(isinstance(d, RepositoryDocument) for d in content.documents)


def _repository_of(root: str, contents: Mapping[str, FileContent]) -> RepositoryDocument | None:
    content = contents.get(str(PurePath(root, REPOSITORY_FILE)))
    documents = () if content is None else content.documents
    return next((d for d in documents if isinstance(d, RepositoryDocument)), None)


def _misplaced(documents: Sequence[RepositoryDocument], relative: Mapping[str, str], root: str | None) -> Iterator[Finding]:
    seen = False
    for document in documents:
        if root is None or relative[document.file] != REPOSITORY_FILE:
            message = f"a Repository document belongs into the file {REPOSITORY_FILE} at the root, and counts nowhere else"
            yield finding("repository-misplaced", message, document.span)
        elif seen:
            yield finding("repository-misplaced", "this file already has a Repository document", document.span)
        else:
            seen = True


def _may_lie(baseline: FindingsBaseline, relative: Mapping[str, str], root: str | None) -> bool:
    """Whether a findings baseline is beside the Repository manifest: a team's folder has none."""
    return root is None or "/" not in relative[baseline.file]


def _misplaced_baselines(
    baselines: Sequence[FindingsBaseline], relative: Mapping[str, str], root: str | None
) -> Iterator[Finding]:
    placed = [each for each in baselines if _may_lie(each, relative, root)]
    for each in baselines:
        if each not in placed:
            message = f"a FindingsBaseline lies beside {REPOSITORY_FILE}, and counts nowhere else. Move this file there"
            yield finding("baseline-misplaced", message, each.span)
        elif each is not placed[0]:
            message = compose("{place} is the FindingsBaseline already. Move the entries there", place=placed[0].span)
            yield finding("baseline-misplaced", message, each.span)


def _unknown_guards(clusters: Sequence[ClusterDocument]) -> Iterator[Finding]:
    from reconciler.policy import GUARDS

    for document in clusters:
        for acceptance in document.spec.safety.accept:
            if acceptance.guard not in GUARDS:
                message = compose(
                    "{guard} is not a guard{hint}",
                    guard=shown_part(acceptance.guard),
                    hint=did_you_mean(acceptance.guard, GUARDS),
                )
                yield finding("unknown-guard", message, acceptance.span or document.span)


def _unknown_owners(clusters: Sequence[ClusterDocument], owners: Mapping[str, Owner]) -> Iterator[Finding]:
    """Unknown owners in a rule of a backtest: such a rule would never fail."""
    for document in clusters:
        for rule in document.spec.backtest.fail:
            for name in rule.owners:
                if name not in owners:
                    words = "the repository declares no owner {name}{hint}"
                    message = compose(words, name=shown_part(name), hint=did_you_mean(name, owners))
                    yield finding("unknown-owner", message, rule.span or document.span)


def _nothing_found(paths: Sequence[str], discovery: Discovery) -> Finding:
    named = ", ".join(shown(path) for path in paths[:3])
    files = f"{len(discovery.files)} YAML files there are empty" if discovery.files else "no .yaml or .yml file"
    return finding("no-manifests", f"no manifest in {named}: {files}", file_span(paths[0]))
