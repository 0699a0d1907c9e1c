"""What recorded traffic comes with: a place for Spark, a mapping, names of clients, or the request to a metrics server."""

from __future__ import annotations

import datetime
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import FileAccessError, TrafficError, UsageError
from reconciler.files import cache_folder
from reconciler.hooks import added, load
from reconciler.model import ClusterSpec, LabelMatcher, Message, MetricServer, TrafficKind, TrafficPlace
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.workflows.git_manifests import write_files_of
from reconciler.workflows.git_repository import repository_around
from reconciler.workflows.trusted import TrustedTree

if TYPE_CHECKING:
    from reconciler.traffic import Between, OpenFiles


def read_trusted_mapping(path: Path | None, trusted: TrustedTree | None) -> OpenFiles | None:
    """Return how the mapping file, if there is any, reads files. With ``trusted`` it is the reference's.

    Raises ``ManifestError`` with all findings, ``TrafficError`` for a missing file, and
    ``UntrustedError`` for one that only the work tree has.
    """
    if path is None:
        return None
    parse = next(added("MAPPINGS"), None)
    if parse is None:
        raise UsageError("This installation reads no mapping files")
    if trusted is not None:
        content, source = trusted.files.read(str(path))
    else:
        try:
            content, source = path.read_bytes(), str(path)
        except OSError as error:
            raise TrafficError(f"mapping {path} cannot be read: {error.strerror}") from error
    mapped: OpenFiles = load(parse)(content, source)
    return mapped


_HOUR_S: Final = 3600.0
SCHEME_PREFIX: Final = "prometheus+"
"""Before the address of a server, as ``--traffic`` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusRequest:
    """Which samples to read: those after ``since`` up to ``until`` (UTC). ``address`` begins with ``http``."""

    address: str
    since: datetime.datetime
    until: datetime.datetime
    store: Path
    """The folder of all servers' pages."""
    http_config: Path | None = None
    match: tuple[LabelMatcher, ...] = ()

    @classmethod
    def of(
        cls,
        server: MetricServer,
        *,
        since: datetime.datetime | None = None,
        until: datetime.datetime | None = None,
        store: Path | None = None,
        http_config: Path | None = None,
        match: tuple[LabelMatcher, ...] = (),
    ) -> PrometheusRequest:
        """A request to ``server``, as far as the caller leaves parts out: its login, its matchers, its days up to now."""
        end = until or datetime.datetime.now(datetime.UTC)
        login = http_config if http_config is not None or server.http_config is None else Path(server.http_config)
        return cls(
            address=server.address,
            since=since or end - datetime.timedelta(days=server.days),
            until=end,
            store=store or cache_folder() / "prometheus",
            http_config=login,
            match=match or server.match,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedSamples:
    """The pages that have the samples, and what to know about them."""

    folder: Path
    files: tuple[Path, ...]
    between: Between
    """Pages have whole hours: only samples of this time count."""
    notes: tuple[Message, ...]
    pages_read: tuple[Path, ...]
    """Those of the files that were read now; the others were there."""
    samples: int
    """Samples that were read now."""
    rows: int
    """Samples of all pages."""


def configured_server(spec: ClusterSpec, trusted: TrustedTree | None) -> MetricServer | None:
    """The server of ``spec.traffic``, with the login file beside the Cluster manifest; ``None`` where it names none."""
    server = spec.traffic
    if not isinstance(server, MetricServer) or server.http_config is None:
        return server if isinstance(server, MetricServer) else None
    return replace(server, http_config=str(_beside(spec, trusted) / server.http_config))


def configured_traffic(spec: ClusterSpec, trusted: TrustedTree | None) -> tuple[str, ...]:
    """``spec.traffic`` as the arguments of ``--traffic``; none of a server. The files of a git reference are written out.

    Raises ``GitError`` for a reference that is not here, and ``FileAccessError``.
    """
    traffic = spec.traffic
    if not isinstance(traffic, TrafficPlace):
        return ()
    match traffic.kind:
        case TrafficKind.FOLDER:
            return (str(_beside(spec, trusted) / traffic.place),)
        case TrafficKind.REFERENCE:
            return (str(_written_out(traffic.place)),)
    return (traffic.place,)


def configured_since(spec: ClusterSpec, until: datetime.datetime | None) -> datetime.datetime | None:
    """Return the time from which on ``spec.traffic`` is read. ``None``: whole, or a server, which has its own days."""
    traffic = spec.traffic
    return traffic.since(until or datetime.datetime.now(datetime.UTC)) if isinstance(traffic, TrafficPlace) else None


def _beside(spec: ClusterSpec, trusted: TrustedTree | None) -> Path:
    if spec.span is None:
        return Path()
    return Path(spec.span.file if trusted is None else trusted.path_of(spec.span.file)).parent


def _written_out(ref: str) -> Path:
    """The files of a reference's commit in a folder of the cache, written once; folders of other commits are removed."""
    git = repository_around(".")
    commit = git.commit(ref)
    above = cache_folder() / "traffic" / ref.replace("/", "%")
    folder = above / commit
    try:
        if not folder.is_dir():
            above.mkdir(parents=True, exist_ok=True)
            # Beside its place first: a run that is killed leaves no half folder of this name.
            fresh = Path(tempfile.mkdtemp(prefix=".new-", dir=above))
            write_files_of(git, commit, str(fresh))
            fresh.replace(folder)
        for other in above.iterdir():
            # Another run may be reading or writing a younger one.
            if other != folder and other.stat().st_mtime < time.time() - _HOUR_S:
                shutil.rmtree(other, ignore_errors=True)
    except OSError as error:
        raise FileAccessError(f"cannot write the traffic of {ref} to {above}: {error.strerror}") from error
    return folder


def require_samples(traffic: FetchedSamples, request: PrometheusRequest) -> None:
    """Raise ``TrafficError`` with all that is known about the reason when no client has a sample."""
    if traffic.rows:
        return
    notes = "".join(f" {note}" for note in traffic.notes)
    since, until = f"{request.since:%Y-%m-%d %H:%M}", f"{request.until:%Y-%m-%d %H:%M} UTC"
    command = f"kafka-quotas doctor --traffic {SCHEME_PREFIX}{request.address}"
    raise TrafficError(
        f"{request.address} has no sample of a known client from {since} to {until}.{notes} Examine the server with {command}"
    )


def is_prometheus(argument: str) -> bool:
    """True for a ``--traffic`` argument that names a Prometheus server."""
    return argument.startswith(SCHEME_PREFIX)


def prometheus_address(argument: str) -> str:
    """The server's own address of a ``--traffic`` argument."""
    return argument.removeprefix(SCHEME_PREFIX)


def fetch_from_server(
    request: PrometheusRequest, *, now: datetime.datetime, progress: Progress = NO_PROGRESS, trusted: TrustedTree | None = None
) -> FetchedSamples:
    """The samples as files, by the feature that reads such servers. ``trusted``: vouches for the file of a login.

    Raises ``UsageError``, also without such a feature, ``FileAccessError``, ``UntrustedError``, and ``TrafficError`` for a
    server that refuses.
    """
    fetch = next(added("SAMPLE_SERVERS"), None)
    if fetch is None:
        raise UsageError("This installation reads no Prometheus server. Give files with --traffic")
    samples: FetchedSamples = load(fetch)(request, now=now, progress=progress, trusted=trusted)
    return samples
