"""Which files a ``--traffic`` argument means, and which broker wrote each, and their lines, part by part, without Spark.

A request log does not name its broker.
"""

from __future__ import annotations

import gzip
import itertools
import logging
import re
import urllib.parse
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import log_event

_log: Final = logging.getLogger(__name__)
_BROKER_IN_NAME: Final = re.compile(r"(?:^|[-_.])(?:node|broker)[-_]?(\d{1,9})(?=$|[-_.])")
_SEGMENT: Final = re.compile(r"\d{20}\.log")
"""A broker keeps its data in files of such names; they can be huge, and are not logs of requests."""
_EXPLICIT: Final = re.compile(r"(\d{1,9})=(.+)", re.DOTALL)
_GZIP_MAGIC: Final = b"\x1f\x8b"
_SMALLEST: Final = 4_000_000
_LARGEST: Final = 64_000_000
"""Bytes of a part."""
_LONGEST_LINE: Final = 64 * 1024 * 1024
"""What is longer comes in pieces: a file without line ends must fit into memory."""
_BUFFER: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFiles:
    """The log files of one broker, sorted."""

    broker: int
    files: tuple[str, ...]


def find_logs(arguments: Sequence[str]) -> tuple[BrokerFiles, ...]:
    """The files of ``[ID=]PATH`` arguments by broker, sorted by broker id.

    A folder means the files below it whose name contains ``.log`` and ``request``, or, when there are none, just ``.log``
    (rotated and gzipped ones too; hidden ones and a broker's data segments not). The broker is ID when given, else the number
    in the nearest file or folder name such as ``node-3`` or ``broker-3`` at or below PATH (for a file also the folder it is
    in), else the next free number from 0, one for each argument.

    Raises ``TrafficError`` when a path has no log, ``UsageError`` when there are no arguments or a file is given for two brokers.
    """
    if not arguments:
        raise UsageError("no recorded traffic: name request logs with --traffic [BROKER=]PATH")
    split = [split_argument(argument) for argument in arguments]
    return number_brokers([(broker, str(path.resolve()), list(map(str, _files_of(path)))) for broker, path in split])


def number_brokers(arguments: Sequence[tuple[int | None, str, Sequence[str]]]) -> tuple[BrokerFiles, ...]:
    """``find_logs`` for files that are found: of each argument the broker it names, its path or address, and its files.

    Raises ``UsageError`` when a file is given for two brokers.
    """
    broker_of: dict[str, int] = {}
    nameless: list[list[str]] = []
    for broker, below, files in arguments:
        root, unnumbered = below.rstrip("/").split("/"), []
        for file in files:
            inside = file.split("/")[len(root) :]
            # The nearest name of the file or of a folder at or below ``below``; of a file given alone, also of its folder.
            names = (*reversed(inside), root[-1]) if inside else root[-1:-3:-1]
            numbers = (int(match[1]) for name in names if (match := _BROKER_IN_NAME.search(name)))
            number = broker if broker is not None else next(numbers, None)
            if number is None:
                unnumbered.append(file)
            elif broker_of.setdefault(file, number) != number:
                first, second = sorted((broker_of[file], number))
                raise UsageError(f"recorded traffic {file} is given for broker {first} and for broker {second}")
        nameless.append(unnumbered)
    taken = set(broker_of.values())
    for unnumbered in nameless:
        if fresh := [file for file in unnumbered if file not in broker_of]:
            number = next(free for free in itertools.count() if free not in taken)
            taken.add(number)
            broker_of |= dict.fromkeys(fresh, number)
    logs = tuple(
        BrokerFiles(broker=broker, files=tuple(sorted(file for file, number in broker_of.items() if number == broker)))
        for broker in sorted(taken)
    )
    for log in logs:
        log_event(_log, "request logs listed", broker=log.broker, files=log.files)
    return logs


def split_argument(argument: str) -> tuple[int | None, Path]:
    """The broker (``None`` without ``ID=``) and the path of a ``[ID=]PATH`` argument."""
    explicit = _EXPLICIT.fullmatch(argument)
    if explicit and not Path(argument).exists():
        return int(explicit[1]), Path(explicit[2])
    return None, Path(argument)


def _files_of(path: Path) -> list[Path]:
    try:
        if path.is_file():
            files = [path]
        elif path.is_dir():
            shown = (file for file in path.rglob("*") if not any(part.startswith(".") for part in file.relative_to(path).parts))
            logs = sorted(file for file in shown if ".log" in file.name and file.is_file())
            of_requests = [file for file in logs if "request" in file.name]
            files = of_requests or [file for file in logs if is_request_log(file.name)]
        else:
            raise TrafficError(f"recorded traffic {path}: no such file or folder")
        for file in files:
            with file.open("rb") as stream:
                # Its lines would be passed over as those of other loggers.
                if stream.read(2) == _GZIP_MAGIC and file.suffix != ".gz":
                    raise TrafficError(
                        f"recorded traffic {file} is compressed with gzip: rename it, so that its name ends in .gz"
                    )
    except OSError as error:
        raise TrafficError(f"recorded traffic {path} cannot be read: {error.strerror or error}") from error
    if not files:
        raise TrafficError(f"recorded traffic {path}: the folder has no file whose name contains .log")
    return [file.resolve() for file in files]


def is_request_log(name: str) -> bool:
    """Whether a file of this name may be a request log: a log, and none of a broker's data segments."""
    return ".log" in name and not _SEGMENT.fullmatch(name)


@dataclass(frozen=True, slots=True)
class LogPart:
    """The lines of one file that begin at ``begin`` or later, before ``end``; a compressed file is one part."""

    path: str
    broker: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Bytes, as they are stored."""
        return self.end - self.begin

    @property
    def uri(self) -> str:
        """The file's address."""
        return Path(self.path).as_uri()

    def lines(self) -> Iterator[bytes]:
        """Each with its end. Raises ``TrafficError`` for a compressed file that is damaged."""
        if self.path.endswith(".gz"):
            try:
                with cast("IO[bytes]", gzip.open(self.path)) as stream:
                    yield from iter(lambda: stream.readline(_LONGEST_LINE), b"")
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise TrafficError(
                    f"recorded traffic {self.path} is damaged or cut short: take it out, or unpack the rest with gzip -dc"
                ) from error
            return
        with Path(self.path).open("rb", buffering=_BUFFER) as stream:
            at = self.begin
            if at:
                # The line before is the other part's, also when it ends right here.
                stream.seek(at - 1)
                at -= 1
                while piece := stream.readline(_LONGEST_LINE):
                    at += len(piece)
                    if piece.endswith(b"\n"):
                        break
            while at < self.end and (line := stream.readline(_LONGEST_LINE)):
                at += len(line)
                yield line


def has_text(file: str, text: bytes) -> bool:
    """Whether a log has a text, which is searched for from its beginning. Raises ``TrafficError`` for a damaged file."""
    if file.endswith(".gz"):
        return any(text in line for line in LogPart(file, 0, 0, Path(file).stat().st_size).lines())
    with Path(file).open("rb", buffering=0) as stream:
        read = b""
        while more := stream.read(_BUFFER):
            read = read[-len(text) :] + more
            if text in read:
                return True
    return False


def log_parts(logs: Sequence[BrokerFiles], workers: int) -> tuple[LogPart, ...]:
    """All of these files, in parts that keep so many workers busy."""
    files = [(log.broker, path, Path(path).stat().st_size) for log in logs for path in log.files]
    step = max(_SMALLEST, min(_LARGEST, sum(size for _, _, size in files) // (2 * workers)))
    return tuple(
        LogPart(path, broker, begin, min(begin + length, size))
        for broker, path, size in files
        if size
        for length in (size if path.endswith(".gz") else step,)
        for begin in range(0, size, length)
    )


_ADDRESS: Final = re.compile(r"(?:(?P<broker>\d{1,9})=)?(?P<address>[A-Za-z][A-Za-z0-9.-]*://.+)", re.DOTALL)
_TABLE: Final = "table:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One argument of ``--traffic``: an address of a file system, or the name of a table."""

    name: str
    """As Spark takes it: ``s3a://bucket/path`` or ``catalog.database.table``."""
    is_table: bool = False
    broker: int | None = None
    """Of the request logs there, when the argument names it."""

    def __str__(self) -> str:
        return f"{_TABLE}{self.name}" if self.is_table else self.name


def parse_dataset(argument: str) -> Dataset | None:
    """Parse ``[BROKER=]SCHEME://...`` or ``table:NAME``; ``None`` for a path.

    Raises ``UsageError`` for a table without a name.
    """
    if argument.startswith(_TABLE):
        name = argument.removeprefix(_TABLE)
        if not name.strip():
            raise UsageError(f"--traffic {argument}: write the name of a table, such as table:catalog.database.traffic")
        return Dataset(name=name, is_table=True)
    if match := _ADDRESS.fullmatch(argument):
        broker = match["broker"]
        return Dataset(name=match["address"], broker=None if broker is None else int(broker))
    return None


def local_path(dataset: Dataset) -> str | None:
    """The path of a ``file:`` address, of which Hadoop decodes nothing; ``None`` for any other dataset."""
    scheme, _, rest = dataset.name.partition(":")
    if dataset.is_table or scheme != "file":
        return None
    return f"/{rest[2:].partition('/')[2]}" if rest.startswith("//") else rest


def address_of_file(file_path: str) -> str:
    """The address of a file as its file system takes it. ``file_path``: as Spark encodes it in ``_metadata.file_path``."""
    return urllib.parse.unquote(file_path)
