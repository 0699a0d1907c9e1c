"""Values that travel to Spark's workers once, and that each worker process unpacks once, however many tasks it runs.

They travel in this direction alone, as Spark's own functions do. What workers return is ``typed_values``, and never a pickle.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from pyspark.serializers import CPickleSerializer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Value = TypeVar("Value")
Built = TypeVar("Built")
_BUILT: Final[dict[bytes, Any]] = {}
"""Of this process, by digest, the ones used last."""
_MOST_BUILT: Final = 4


_PICKLED: Final[Any] = CPickleSerializer()
"""As Spark unpacks the values of this run itself."""


class Shipped(Generic[Value, Built]):
    """A value that Spark broadcasts, and what ``build`` makes of it in each process. Spark Connect sends it with each job."""

    def __init__(self, spark: SparkSession, value: Value, build: Callable[[Value], Built]) -> None:
        """``build`` is a function of a module."""
        packed: Any = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        self.size = len(packed)
        self._digest = hashlib.blake2b(packed, digest_size=16).digest()
        self._build = build
        self._packed, self._broadcast = packed, None
        with contextlib.suppress(Exception):  # a session of Spark Connect has no context
            self._broadcast = spark.sparkContext.broadcast(packed)
            self._packed = None

    def built(self) -> Built:
        """The same object at each call in one process."""
        if self._digest not in _BUILT:
            while len(_BUILT) >= _MOST_BUILT:
                _BUILT.pop(next(iter(_BUILT)))
            packed = self._packed if self._broadcast is None else self._broadcast.value
            _BUILT[self._digest] = self._build(_PICKLED.loads(packed))
        return cast("Built", _BUILT[self._digest])

    def close(self) -> None:
        """Let workers forget the bytes."""
        if self._broadcast is not None:
            self._broadcast.unpersist()
