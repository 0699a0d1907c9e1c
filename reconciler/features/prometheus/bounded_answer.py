"""Answers of HTTP servers that may be slow, endless, or packed too well: one deadline for all of an answer, and small blocks."""

from __future__ import annotations

import contextlib
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import urllib3

BLOCK: Final = 1 << 18
_GZIP: Final = 31


class LateAnswerError(Exception):
    """The deadline passed before the answer was whole. ``size``: the bytes that came, unpacked."""

    def __init__(self, size: int = 0) -> None:
        super().__init__(f"{size:,} bytes")
        self.size = size


class PackedAnswerError(Exception):
    """The answer is packed in a way that was not asked for, or is not complete."""


def request_until(deadline: float, send: Callable[[], urllib3.BaseHTTPResponse]) -> urllib3.BaseHTTPResponse:
    """The head of an answer. ``deadline``: as ``time.monotonic``. Raises ``LateAnswerError``, and what ``send`` raises.

    A socket's timeout begins anew with each byte. So a server that drips its head is left to a thread that keeps nothing alive.
    """
    from urllib3.exceptions import HTTPError

    future: Future[urllib3.BaseHTTPResponse] = Future()

    def run() -> None:
        try:
            future.set_result(send())
        except (HTTPError, OSError, ValueError) as error:
            future.set_exception(error)
        finally:
            if not future.done():
                future.set_exception(RuntimeError("a request ended with an error of its own"))

    threading.Thread(target=run, name="request", daemon=True).start()
    try:
        return future.result(timeout=max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        if future.done():
            # A timeout of the socket, not that of the deadline.
            raise
        future.add_done_callback(_close)
        raise LateAnswerError from None


def blocks_until(deadline: float, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The body, unpacked, in blocks of at most ``BLOCK`` bytes: a packed megabyte may be a gigabyte.

    Raises ``LateAnswerError``, ``PackedAnswerError``, ``zlib.error``, and what ``response`` raises.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise PackedAnswerError("the answer is packed in a way that was not asked for")
    unpack = zlib.decompressobj(wbits=_GZIP) if encoding == "gzip" else None
    size = 0
    while chunk := response.read1(BLOCK, decode_content=False):
        while chunk:
            block = unpack.decompress(chunk, BLOCK) if unpack else chunk
            chunk = unpack.unconsumed_tail if unpack else b""
            size += len(block)
            if time.monotonic() > deadline:
                raise LateAnswerError(size)
            if block:
                yield block
    if unpack is not None and not unpack.eof:
        raise PackedAnswerError("the answer is not complete")


def _close(future: Future[urllib3.BaseHTTPResponse]) -> None:
    with contextlib.suppress(Exception):
        future.result().close()
