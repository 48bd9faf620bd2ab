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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from harnesses import compare

# An argument is a value, or a function that makes one from a random generator.
Argument = Any | Callable[[np.random.Generator], Any]

# A function that tells from the arguments of a harness which of their axes may be symbolic; see
# `axes`.
Axes = Callable[[Sequence[Any]], Sequence[str | None]]

# Derivatives are sums of products, which XLA and TensorFlow round differently.
DERIVATIVES = compare.close_to_largest(ulps=256)
# Functions of several steps, on natural targets, whose kernels round each of them otherwise.
SEVERAL_STEPS = compare.close_to_largest(ulps=64)
# Where functions have poles or products overflow, derivatives depend on the order of operations.
FINITE_DERIVATIVES = compare.close_to_largest(ulps=256, only_finite=True)

# The dtypes that JAX has only with `jax_enable_x64`.
DTYPES_OF_64_BITS = ("int64", "uint64", "float64", "complex128")


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
      natural: how they are compared on natural targets, where sums and products have any order, and
        functions of several steps are rounded otherwise; by default as on the others.
      promoted: how they are compared where floats of 16 bits are computed in float32; by default as
        on other natural targets.
      derivatives: how derivatives are compared; None if they cannot be, as they differ where the
        result is not unique.
      dtype: the dtype that limitations and documents group this harness under; that of the first
        argument by default.
      params: further properties by name, for limitations to ask for.
      symbolic: which axes of its arguments may be symbolic, as `polymorphic_shapes` says it; for
        the first arguments, or for none. Or a function of the arguments that returns that.
    """

    primitive: str
    case: str
    fun: Callable[..., Any]
    args: tuple[Argument, ...] = ()
    comparer: compare.Comparer = compare.exact
    natural: compare.Comparer | None = dataclasses.field(default=None, kw_only=True)
    promoted: compare.Comparer | None = dataclasses.field(default=None, kw_only=True)
    dtype: Any = None
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    derivatives: compare.Comparer | None = DERIVATIVES
    symbolic: Sequence[str | None] | Axes = ()

    @property
    def name(self) -> str:
        """The name, unique among all harnesses and the same in every run."""
        return f"{self.primitive}_{self.case}"

    def make_args(self, sample: int = 0) -> list[Any]:
        """The arguments; always the same, as they are seeded with the harness's name.

        Args:
          sample: other samples have other random numbers.
        """
        rng = np.random.default_rng(zlib.crc32(self.name.encode()) + sample)
        return [arg(rng) if callable(arg) else arg for arg in self.args]

    def shapes(self, args: Sequence[Any]) -> list[str | None]:
        """The `polymorphic_shapes` of its arguments: None for those without a symbolic axis."""
        specs = self.symbolic(args) if callable(self.symbolic) else self.symbolic
        return [*specs, *(None for _ in args[len(specs) :])]

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

    @property
    def is_of_64_bits(self) -> bool:
        """Whether it has numbers of 64 bits, so that it says nothing of 32-bit runtimes."""
        return self.dtype_name in DTYPES_OF_64_BITS


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
