"""The jars of one Kafka version in the user's cache, complete and checked."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from reconciler.errors import FileAccessError, SandboxError
from reconciler.ports import Progress
from reconciler.sandbox.artifacts import Artifact, JarSet
from reconciler.sandbox.cache import cache_folder, exclusive
from reconciler.sandbox.fetch import Fetcher


def ensure_jars(
    jar_set: JarSet,
    *,
    fetchers: Callable[[], Sequence[Fetcher]],
    progress: Progress | None = None,
    cache: Path | None = None,
) -> tuple[Path, ...]:
    """The jar files of ``jar_set``, in the order of its list, fetched if need be; ``fetchers`` is only called then.

    Every file's SHA-256 is checked on every call (50 MB take less than 0.1 s), so a damaged cache is fetched anew. A fetch fills
    a temporary folder, which gets its final name only when all sums are right; a lock makes a second process wait and then find
    the files.
    Raises ``SandboxError`` when no fetcher brings the right files, and what ``fetchers`` raises.
    """
    home = (cache_folder() if cache is None else cache) / "jars"
    folder = home / jar_set.key
    say = progress.step if progress else _ignore
    if faults(folder, jar_set.artifacts):
        waiting = f"another process is fetching the jars of Kafka {jar_set.kafka_version}; waiting for it"
        with exclusive(home / f"{jar_set.key}.lock", waiting=lambda: say(waiting)):
            wrong = faults(folder, jar_set.artifacts)
            if wrong:
                if folder.exists():
                    say(f"the cached jars of Kafka {jar_set.kafka_version} are damaged ({wrong[0]}); fetching them again")
                _fetch_into(folder, jar_set, fetchers(), say)
    return tuple(folder / artifact.file_name for artifact in jar_set.artifacts)


def faults(folder: Path, artifacts: Sequence[Artifact]) -> tuple[str, ...]:
    """What is wrong with the files of ``artifacts`` in ``folder``, one phrase a file; other files there do not matter."""
    wrong: list[str] = []
    for artifact in artifacts:
        try:
            with (folder / artifact.file_name).open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            wrong.append(f"{artifact.file_name} is missing")
            continue
        if actual != artifact.sha256:
            wrong.append(f"{artifact.file_name} has SHA-256 {actual}, expected {artifact.sha256}")
    return tuple(wrong)


def _fetch_into(folder: Path, jar_set: JarSet, fetchers: Sequence[Fetcher], say: Callable[[str], None]) -> None:
    """Called with the lock held, so whatever temporary folders of this key are there were left by processes that died."""
    prefix = f".{jar_set.key}."
    for left in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    failures: list[str] = []
    for fetcher in fetchers:
        say(f"fetching Kafka {jar_set.kafka_version} ({len(jar_set.artifacts)} jars) with {fetcher.name}")
        work = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
        try:
            fetched = work / "jars"
            fetched.mkdir()
            fetcher.fetch(jar_set.artifacts, work, fetched)
            wrong = faults(fetched, jar_set.artifacts)
            if not wrong:
                _replace(folder, fetched, aside=work / "old")
                return
            failures.append(f"{fetcher.name} brought the wrong files: {'; '.join(wrong[:3])}")
        except SandboxError as error:
            failures.append(str(error))
        except OSError as error:
            raise FileAccessError(
                f"cannot write to {folder.parent}: {error}; set KAFKA_QUOTAS_CACHE to another folder"
            ) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
    raise SandboxError(f"Kafka {jar_set.kafka_version} could not be fetched: " + "; ".join(failures))


def _replace(folder: Path, fetched: Path, *, aside: Path) -> None:
    if folder.exists():
        folder.rename(aside)
    fetched.rename(folder)


def _ignore(_message: str) -> None:
    """Nobody wants to hear it."""
