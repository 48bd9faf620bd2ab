"""Constant folding: an equation on known values is run once, at lowering time, by its own rule.

PRNG keys, masks and tables thus reach the graph as constants. TensorFlow runs the rule eagerly: a
kernel takes microseconds where JAX would compile each equation for tens of milliseconds.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import avals, registry
from lowering.arrays.scaling import is_scaled
from lowering.ops import dtypes, values
from lowering.ops.values import Value
from lowering.passes.jaxprs import called_jaxprs
from lowering.registry import Trait, has_trait

# Larger results cost more as constants in the graph than they save.
BUDGET_BYTES = 1 << 18


def is_foldable(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation may be evaluated at lowering time if its operands are known."""
    if has_trait(eqn.primitive.name, Trait.NOT_FOLDED) or eqn.effects:
        return False
    variables = [var.aval for var in (*eqn.invars, *eqn.outvars)]
    if not all(hasattr(aval, "dtype") and avals.is_static(aval.shape) for aval in variables):
        return False
    if sum(_nbytes(var.aval) for var in eqn.outvars) > BUDGET_BYTES:
        return False
    return all(is_foldable(inner) for called in called_jaxprs(eqn) for inner in called.eqns)


class Folder:
    """Evaluates equations whose operands are known, each once.

    Equations, literals and operands are compared by identity. They are kept alive, as another
    object may get the identity of one that is freed.
    """

    def __init__(self, parameters: Iterable[Any] = ()):
        """
        Args:
          parameters: the arrays that the program closes over; they are kept alive elsewhere.
        """
        self._parameters = set(map(_address, parameters))
        self._results: dict[Any, tuple[Any, list[np.ndarray]]] = {}
        self._literals: dict[int, tuple[jex_core.Literal, Value]] = {}

    def literal(self, literal: jex_core.Literal) -> Value:
        """The value of a literal as an array of its dtype."""
        if id(literal) not in self._literals:
            value = np.asarray(literal.val, literal.aval.dtype)
            self._literals[id(literal)] = (literal, value)
        return self._literals[id(literal)][1]

    def are_of_parameters(self, operands: Sequence[Value]) -> bool:
        """Whether one of some operands is a parameter, or has been folded of one."""
        return bool(self._parameters) and not self._parameters.isdisjoint(
            _address(x) for x in operands if values.is_known(x)
        )

    def note_parameters(self, operands: Sequence[Value], results: Iterable[Value]) -> None:
        """Notes that results are parameters if one of the operands that they are made of is."""
        if self.are_of_parameters(operands):
            self._parameters.update(map(_address, results))

    def note_scaled(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Notes the constants of a jaxpr that are parameters whose channels a pass has scaled."""
        if not self.are_of_parameters(before):
            return
        parameters = [np.asarray(x) for x in before if self.are_of_parameters([x])]
        for x in after:
            if avals.is_key(x.dtype) or self.are_of_parameters([x]):
                continue
            array = np.asarray(x)
            if any(is_scaled(array, each) for each in parameters):
                self._parameters.add(_address(x))

    def folds(self, eqn: jex_core.JaxprEqn, operands: Sequence[Value]) -> bool:
        """Whether an equation on known operands is folded, rather than left in the program."""
        if _key(eqn, operands) in self._results:
            return True
        with tf.init_scope():  # Inside of a graph of TensorFlow 1 nothing runs eagerly.
            return tf.executing_eagerly() and is_foldable(eqn)

    def fold(
        self, eqn: jex_core.JaxprEqn, operands: Sequence[Value], run: Callable[[], Iterable[Any]]
    ) -> list[np.ndarray]:
        """The results of an equation on known operands.

        Args:
          eqn: the equation.
          operands: its operands, all known.
          run: runs its rule on them.
        """
        key = _key(eqn, operands)
        if key not in self._results:
            fold = registry.facts(eqn.primitive.name).fold
            if fold is not None:
                results = [fold(*operands, **eqn.params)]
            else:
                with tf.init_scope():
                    results = [_array(result) for result in run()]
            self.note_parameters(operands, results)
            self._results[key] = (eqn, list(operands)), results
        return self._results[key][1]


def _key(eqn: jex_core.JaxprEqn, operands: Sequence[Value]) -> Any:
    return (id(eqn), *map(id, operands))


def _address(x: Any) -> int:
    """Where the numbers of an array begin, or those of the array that it is a view of.

    What is no array of numbers, such as a key, stands for itself.
    """
    if not isinstance(x, np.ndarray | np.generic | jax.Array) or avals.is_key(x.dtype):
        return id(x)
    array = np.asarray(x)
    while isinstance(array.base, np.ndarray):
        array = array.base
    address: int = array.__array_interface__["data"][0]
    return address


def _nbytes(aval: Any) -> int:
    return dtypes.to_tf(aval.dtype).size * int(np.prod(aval.shape))


def _array(result: Any) -> np.ndarray:
    # NumPy cannot make an array of a tensor of a single bfloat16.
    return np.asarray(result.numpy() if isinstance(result, tf.Tensor) else result)
