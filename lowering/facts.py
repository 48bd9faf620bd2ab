"""What is known about a primitive: its rules, its traits, and other facts."""

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class Trait(enum.Flag):
    """Facts about a primitive, which other modules ask for instead of its name."""

    NONE = 0
    # Treats all elements alike, by ops that broadcast. So an operand may come before it is
    # broadcast, and the result may stay so.
    ELEMENTWISE = enum.auto()
    # Not elementwise, but the result may stay smaller than its shape all the same: the ops that use
    # it broadcast it.
    BROADCASTS = enum.auto()
    # Each element of a result is an element of an operand of the same dtype, and needs no rounding.
    SELECTS = enum.auto()
    # Makes no integers that leave the range of their dtype of such as are in it.
    IN_RANGE = enum.auto()
    # Commutative and associative: a computation of reductions and scatters.
    MONOID = enum.auto()
    # Linear in its operands together, so that it treats the parts of complex numbers alike.
    LINEAR = enum.auto()
    # Does the same with floats of more digits, as all do that are elementwise, linear, contractions
    # or select elements.
    PROMOTED = enum.auto()
    # Depends on the bits of floats, or rounds on purpose: another dtype gives other results.
    OF_BITS = enum.auto()
    # A sum of products, which runs faster for many operands at once.
    CONTRACTION = enum.auto()
    # Must not run at lowering time: it may run forever, or depends on when the program runs.
    NOT_FOLDED = enum.auto()
    # Gives other results each time, without an effect that JAX knows of.
    DRAWS = enum.auto()
    # Cheap to compute where it is used, and large to keep: not moved out of a loop.
    NOT_HOISTED = enum.auto()
    # Says only where, or in which layout, its operand is stored; the result is the operand.
    PLACEMENT = enum.auto()
    # Chooses or repeats jaxprs that are its parameters.
    CONTROL_FLOW = enum.auto()
    # Has state or effects of its own on each device of a mesh.
    PER_DEVICE = enum.auto()
    # A decomposition in primitives that `jax.vmap` knows, of a primitive that it does not know.
    NOT_MAPPED = enum.auto()
    # Becomes a hundred ops or more where TensorFlow has no kernel, or functions are no calls.
    LONG = enum.auto()
    # Returns vectors whose signs or phases are free, so that each algorithm finds others.
    NOT_UNIQUE = enum.auto()


@dataclasses.dataclass(frozen=True)
class Rule:
    """How one primitive is lowered for one target.

    Attributes:
      fun: the function that was decorated.
      is_decomposition: whether `fun` is written in JAX.
      dtypes: the dtypes that the rule covers; None for all.
      keep_constants: whether operands known at lowering time reach `fun` as `np.ndarray`.
      in_storage: whether `fun` takes values of all dtypes in their storage dtypes.
      is_legalization: whether the rule is for targets that lack the dtypes.
    """

    fun: Callable[..., Any]
    is_decomposition: bool = False
    dtypes: frozenset[np.dtype] | None = None
    keep_constants: bool = False
    in_storage: bool = False
    is_legalization: bool = False


@dataclasses.dataclass
class Facts:
    """What is known about a primitive beside its rules.

    Attributes:
      traits: its traits.
      fold: a NumPy function that evaluates it on known operands, instead of its rule.
      called: a function of its operands and parameters that returns the jaxpr that it calls, and
        the operands of that; None if it is no call.
      on_key_data: a function in JAX of the data of PRNG keys, which says what it does with keys.
      on_promoted: by a dtype a function in JAX of numbers in its storage dtype, which says what it
        does with numbers of the dtype.
      refusal: why it is lowered for no target.
    """

    traits: Trait = Trait.NONE
    fold: Callable[..., np.ndarray] | None = None
    called: Callable[..., tuple[Any, Sequence[Any]]] | None = None
    on_key_data: Callable[..., Any] | None = None
    on_promoted: Mapping[np.dtype, Callable[..., Any]] = dataclasses.field(default_factory=dict)
    refusal: str | None = None
