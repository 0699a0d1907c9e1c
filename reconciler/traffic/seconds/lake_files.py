"""Files of a dataset on any file system that Spark reaches, through the Hadoop client of its own driver.

Everything but ``create`` may happen twice. ``create`` is the one step that decides between two writers: of two that create the
same file, one fails.
"""

from __future__ import annotations

import contextlib
import logging
import os
import urllib.parse
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from reconciler.errors import FileAccessError, UsageError
from reconciler.logs import log_event
from reconciler.model import escaped
from reconciler.traffic.sources.datasets import path_of
from reconciler.traffic.spark_jobs import java_gateway, reason

_log: Final = logging.getLogger(__name__)
_CONDITIONAL: Final = "fs.option.create.conditional.overwrite"
"""Of Hadoop's S3A: PUT with If-None-Match, which the store decides."""
_YES, _NO = True, False
"""Of Java's methods, whose arguments have no names."""
_RENAMES_AT_ONCE: Final = frozenset({"hdfs", "viewfs"})


class LakeFiles:
    """``root``: the dataset's address; names are below it. Raises ``FileAccessError`` where the file system refuses."""

    def __init__(self, root: str) -> None:
        """Raises ``UsageError`` on Spark Connect, whose client has no Hadoop."""
        self._gateway = java_gateway()
        if self._gateway is None:
            raise UsageError("--out needs the driver of Spark in this process: leave out --remote, and give --master")
        self.root = root.rstrip("/")
        self._scheme = urllib.parse.urlsplit(self.root).scheme
        self._java: Any = self._gateway.jvm.org.apache.hadoop.fs
        self._configuration = self._gateway.jvm.org.apache.spark.SparkContext.getOrCreate().hadoopConfiguration()
        with self._refusals(self.root):
            self._system = self._path("").getFileSystem(self._configuration)

    @property
    def local(self) -> Path | None:
        """The root as a path, where all workers see it; ``None`` on any other file system."""
        path = path_of(self.root)
        return None if path is None else Path(path)

    def head(self, address: str, most: int) -> bytes:
        """The first bytes of a file with a whole address."""
        return self._part(address, 0, most)

    def tail(self, address: str, most: int) -> bytes:
        """The last bytes of a file with a whole address."""
        return self._part(address, max(0, self.size(address) - most), most)

    def size(self, address: str) -> int:
        """Bytes of a file with a whole address."""
        with self._refusals(address):
            path = self._java.Path(address)
            return int(path.getFileSystem(self._configuration).getFileStatus(path).getLen())

    def names(self, folder: str) -> list[str]:
        """The names of what is in a folder, sorted; none when there is no such folder."""
        with self._refusals(folder):
            if not self._system.exists(self._path(folder)):
                return []
            return sorted(str(status.getPath().getName()) for status in self._system.listStatus(self._path(folder)))

    def read(self, name: str) -> bytes | None:
        """A small file, or ``None``."""
        with self._refusals(name):
            if not self._system.exists(self._path(name)):
                return None
            stream = self._system.open(self._path(name))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, name: str, content: bytes) -> None:
        """A file that only this run knows."""
        with self._refusals(name):
            self._fill(self._system.create(self._path(name), _YES), content)

    def move(self, source: str, target: str) -> None:
        """A folder that only this run knows. On object stores this copies its files."""
        with self._refusals(target):
            self._system.mkdirs(self._path(target).getParent())
            if not self._system.rename(self._path(source), self._path(target)):
                raise FileAccessError(f"cannot write {escaped(self.root)}/{escaped(target)}: the folder could not be moved there")

    def remove(self, name: str) -> None:
        """A file, or a folder with all in it; what is not there is no error."""
        with self._refusals(name):
            self._system.delete(self._path(name), _YES)

    def remove_empty(self, folder: str) -> None:
        """A folder, unless something is in it."""
        with contextlib.suppress(Py4JJavaError):
            self._system.delete(self._path(folder), _NO)

    def create(self, name: str, content: bytes) -> bool:
        """Write a new file whole; false when there is one of that name, and then nothing was changed."""
        with self._refusals(name):
            if self._scheme == "file":
                return self._linked(name, content)
            if self._scheme in _RENAMES_AT_ONCE:
                return self._renamed(name, content)
            return self._put(name, content)

    def _linked(self, name: str, content: bytes) -> bool:
        assert self.local is not None
        target = self.local / name
        made = target.with_name(f".{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with made.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.link(made, target)
        except FileExistsError:
            return False
        except OSError as error:
            raise FileAccessError(f"cannot write {escaped(str(target))}: {error.strerror or error}") from error
        finally:
            with contextlib.suppress(OSError):
                made.unlink(missing_ok=True)
        return True

    def _renamed(self, name: str, content: bytes) -> bool:
        folder, _, last = name.rpartition("/")
        made, target = f"{folder}/.{uuid.uuid4().hex}", self._path(name)
        self.write(made, content)
        rename = self._java.Options.Rename
        options = self._gateway.new_array(rename, 1)
        options[0] = rename.NONE
        ways = self._java.FileContext.getFileContext(target.toUri(), self._configuration)
        try:
            ways.rename(self._path(made), target, options)
        except Py4JJavaError as error:
            self.remove(made)
            if "FileAlreadyExistsException" in str(error.java_exception):
                return False
            raise
        log_event(_log, "manifest created", file=last)
        return True

    def _put(self, name: str, content: bytes) -> bool:
        if self._system.exists(self._path(name)):
            return False
        builder = self._system.createFile(self._path(name)).recursive().overwrite(self._scheme == "s3a")
        if self._scheme == "s3a":
            builder = builder.opt(_CONDITIONAL, _YES)
        try:
            self._fill(builder.build(), content)
        except Py4JJavaError as error:
            text = str(error.java_exception)
            if "AlreadyExists" in text or "412" in text or "PreconditionFailed" in text:
                return False
            raise
        return True

    def _fill(self, stream: Any, content: bytes) -> None:
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def _part(self, address: str, begin: int, most: int) -> bytes:
        with self._refusals(address):
            path = self._java.Path(address)
            stream = path.getFileSystem(self._configuration).open(path)
            try:
                stream.seek(begin)
                return bytes(stream.readNBytes(most))
            finally:
                stream.close()

    def _path(self, name: str) -> Any:
        return self._java.Path(f"{self.root}/{name}".rstrip("/"))

    @contextmanager
    def _refusals(self, name: str) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            text = str(error.java_exception)
            if "FileNotFoundException" in text and ":" in name.partition("/")[0]:
                raise FileAccessError(f"{escaped(name)} was there when it was listed, and is gone now. Run this again") from None
            cause = text.splitlines()[0].partition(": ")[2] or reason(text)
            where = name if "://" in name else f"{self.root}/{name}".rstrip("/")
            raise FileAccessError(f"cannot use {escaped(where)}: {escaped(cause)}") from None
