"""A harness is one case of one primitive.

A module in `harnesses/primitives/` has generator functions that yield the harnesses of a primitive
or a family:

    @harnesses
    def cbrt():
        for dtype in FLOAT:
            yield Harness("cbrt", f"shape=(4, 3)_{name(dtype)}", lax.cbrt, (random((4, 3), dtype),))
"""

import dataclasses
import functools
import importlib
import pkgutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from harnesses import compare

# An argument is a value, or a function that makes one from a random generator.
Argument = Any | Callable[[np.random.Generator], Any]


@dataclasses.dataclass(frozen=True)
class Harness:
    """One case of one primitive.

    Attributes:
      primitive: the name of the JAX primitive that it exercises.
      case: the name of the case, unique in the primitive, such as "shape=(2, 3)_float32".
      fun: a JAX function of `args`; it must bind `primitive`.
      args: NumPy arrays (or scalars, or PRNG keys), or functions of an `np.random.Generator` that
        make them.
      comparer: how results are compared; see `compare`.
      dtype: the dtype that limitations and documents group this harness under; that of the first
        argument by default.
      params: further properties by name, for limitations to ask for.
    """

    primitive: str
    case: str
    fun: Callable[..., Any]
    args: tuple[Argument, ...] = ()
    comparer: compare.Comparer = compare.exact
    dtype: Any = None
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name, unique among all harnesses and the same in every run."""
        return f"{self.primitive}_{self.case}"

    def make_args(self) -> list[Any]:
        """The arguments; always the same, as they are seeded with the harness's name."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [arg(rng) if callable(arg) else arg for arg in self.args]

    @functools.cached_property
    def dtype_name(self) -> str:
        """The name of the dtype for limitations and documents, such as "bfloat16"."""
        dtype = self.dtype
        if dtype is None:
            args = self.make_args()
            dtype = args[0].dtype if args and hasattr(args[0], "dtype") else np.float32
        if jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
            return str(dtype)
        return np.dtype(dtype).name


_GENERATORS: list[Callable[[], Iterable[Harness]]] = []


def harnesses(generator: Callable[[], Iterable[Harness]]) -> Callable[[], Iterable[Harness]]:
    """Registers a generator function of harnesses."""
    _GENERATORS.append(generator)
    return generator


@functools.cache
def all_harnesses() -> Mapping[str, Harness]:
    """All harnesses by name.

    Raises:
      ValueError: if two harnesses have the same name.
    """
    package = importlib.import_module("harnesses.primitives")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"harnesses.primitives.{module.name}")
    by_name: dict[str, Harness] = {}
    for harness in _all():
        if harness.name in by_name:
            raise ValueError(f"two harnesses have the name {harness.name!r}")
        by_name[harness.name] = harness
    return by_name


def _all() -> Iterator[Harness]:
    for generator in _GENERATORS:
        yield from generator()
