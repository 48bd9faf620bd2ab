"""PRNG keys become their key data: uint32 with one more dimension (`jax.random.key_data`).

The primitives that compute with keys have a function in JAX of the key data
(`registry.on_key_data`). Random bits stay one equation, `random`, so that equal draws are one
function of the graph. A primitive that moves keys moves integers in the shape of the keys: one
uint64 for a key of two uint32, two for a key of four. Runtimes other than TensorFlow cannot read
two uint32 as one uint64, so there each uint32 is moved by itself.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import avals, jax_compat, registry
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.legalize.splitting import Legalization, Splitting, Walk, selects
from lowering.passes.trace import trace_ours_once
from lowering.registry import Trait
from lowering.targets import Target

_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)

# Computes on key data what the primitive `name` of JAX does with keys. The result is of the dtype
# `storage`, if it is given.
RANDOM = registry.new_primitive("random")
# The same where `count` values stand for each uint32, as the target lacks that dtype. `split` says
# which operands these are. A result of uint32 is `count` values, too.
RANDOM_OF_PARTS = registry.new_primitive("random_of_parts")
RANDOM_OF_PARTS.multiple_results = True


@RANDOM.def_abstract_eval
def _(*operands: Any, name: str, storage: Any = None, **params: Any) -> Any:
    structs = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands)
    fun = registry.facts(name).on_key_data
    (aval,) = trace_ours_once(fun, structs, tuple(sorted(params.items())))[0].out_avals
    return aval if storage is None else aval.update(dtype=storage)


@RANDOM_OF_PARTS.def_abstract_eval
def _(*operands: Any, split: Any, count: int, **params: Any) -> Any:
    rest = iter(operands)
    logical = []
    for is_split in split:
        aval, *_ = itertools.islice(rest, count if is_split else 1)
        logical.append(aval.update(dtype=_UINT32) if is_split else aval)
    aval = RANDOM.abstract_eval(*logical, **params)[0]
    return [aval.update(dtype=np.dtype(np.int32))] * count if aval.dtype == _UINT32 else [aval]


class _Keys(Walk):
    """A jaxpr whose keys become key data, and integers where they are moved."""

    def __init__(self, splitting: Splitting, jaxpr: Jaxpr):
        # The integers that stand for keys that are moved, and the equations that have moved keys
        # whose data no equation has used yet.
        self._integers: dict[jex_core.Var, Sequence[Any]] = {}
        self._made_by: dict[jex_core.Var, jex_core.JaxprEqn] = {}
        super().__init__(splitting, jaxpr)

    @staticmethod
    def is_illegal(aval: Any, target: Target) -> bool:
        return _is_key(aval)

    @staticmethod
    def legal_avals(aval: Any, target: Target) -> Sequence[Any]:
        return (avals.physical_aval(aval) if _is_key(aval) else aval,)

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        return (np.asarray(jax.random.key_data(x)) if _is_key(aval) else x,)

    def values_of(self, atom: Any) -> Sequence[Any]:
        if not isinstance(atom, jex_core.Literal) and atom in self._made_by:
            eqn = self._made_by.pop(atom)
            self.values[atom] = self._inline(_key_data_of, self._integers[atom], eqn)
        return super().values_of(atom)

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        facts, dtype = registry.facts(eqn.primitive.name), self._key_dtype(eqn)
        rule = registry.rule_of(eqn, self.target)
        if (fun := facts.on_key_data) is not None and dtype is not None:
            self._apply_to_key_data(eqn, fun, dtype)
        elif rule is not None and rule.is_decomposition:
            self.decompose(eqn, rule.fun)
        elif rule is None or dtype is None or (rule.in_storage and not selects(eqn)):
            self.add_unsplit(eqn)
        elif rule.in_storage:
            self.add(eqn)
        else:
            self._move(eqn, dtype)

    def _apply_to_key_data(
        self, eqn: jex_core.JaxprEqn, fun: Callable[..., Any], dtype: Any
    ) -> None:
        """Adds the function of key data that says what an equation computes."""
        params = {
            "impl": jax_compat.key_impl(dtype),
            "partitionable": jax_compat.threefry_partitionable(eqn),
            **eqn.params,
        }
        if registry.has_trait(eqn.primitive.name, Trait.LONG):
            params["name"] = eqn.primitive.name
            self.add(eqn.replace(primitive=RANDOM, params=params))
        else:
            self.replace(eqn, self._inline(fun, self.read(eqn.invars), eqn, params))

    def _key_dtype(self, eqn: jex_core.JaxprEqn) -> Any:
        """The dtype of the keys of an equation, which are of one implementation; None if none."""
        found = {x.aval.dtype for x in (*eqn.invars, *eqn.outvars) if _is_key(x.aval)}
        return next(iter(found), None)

    def _move(self, eqn: jex_core.JaxprEqn, dtype: Any) -> None:
        """Adds the equation on integers for each part of the keys."""
        size = self._size_of_integers(dtype)
        integer = _UINT64 if size == 2 else _UINT32
        params = dict(eqn.params)
        if params.get("fill_value") is not None and size == 2:
            params["fill_value"] *= 1 + (1 << 32)  # It fills each uint32.
        operands = [self._integers_of(x, eqn) if _is_key(x.aval) else None for x in eqn.invars]
        results: list[list[Any]] = [[] for _ in eqn.outvars]
        (length,) = jax_compat.key_shape(dtype)
        for i in range(length // size):
            invars = [
                self.values_of(x)[0] if parts is None else parts[i]
                for x, parts in zip(eqn.invars, operands, strict=True)
            ]
            for var, parts in zip(eqn.outvars, results, strict=True):
                aval = jax.core.ShapedArray(var.aval.shape, integer)
                # Other results are those of the first equation.
                other = var if not i else jex_core.Var(var.aval)
                parts.append(jex_core.Var(aval) if _is_key(var.aval) else other)
            outvars = [parts[-1] for parts in results]
            self.new.add(eqn.replace(invars=invars, outvars=outvars, params=params))
        for var, parts in zip(eqn.outvars, results, strict=True):
            if _is_key(var.aval):
                self._integers[var], self._made_by[var] = parts, eqn

    def _size_of_integers(self, dtype: Any) -> int:
        """How many uint32 of a key are moved as one integer."""
        (length,) = jax_compat.key_shape(dtype)
        return 1 if self.target.is_consumer else min(length, 2)

    def _integers_of(self, atom: Any, eqn: jex_core.JaxprEqn) -> Sequence[Any]:
        """The integers that stand for keys, made where the first equation moves them."""
        size = self._size_of_integers(atom.aval.dtype)
        if isinstance(atom, jex_core.Literal):
            return self._inline(_integers_of, self.read([atom]), eqn, {"size": size})
        if atom not in self._integers:
            made = self._inline(_integers_of, self.read([atom]), eqn, {"size": size})
            self._integers[atom] = made
        return self._integers[atom]

    def _inline(
        self,
        fun: Callable[..., Any],
        operands: Sequence[Any],
        scope: jex_core.JaxprEqn,
        params: dict[str, Any] | None = None,
    ) -> list[Any]:
        """Adds what a function of JAX computes; returns the atoms of its results."""
        structs = tuple(jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in operands)
        jaxpr, _ = trace_ours_once(fun, structs, tuple(sorted((params or {}).items())))
        return self.new.inline(jaxpr, operands, scope)


# Key data in place of keys.
split_keys = Legalization(_Keys)


def _is_key(aval: Any) -> bool:
    return hasattr(aval, "dtype") and avals.is_key(aval.dtype)


def _integers_of(data: jax.Array, *, size: int) -> Sequence[jax.Array]:
    """Key data as arrays of integers that have `size` of its uint32 each."""
    count = data.shape[-1]
    if size == 1:
        return lax.unstack(data, axis=-1) if count > 1 else [lax.squeeze(data, [data.ndim - 1])]
    if count == size:
        return [lax.bitcast_convert_type(data, _UINT64)]
    pairs = lax.reshape(data, (*data.shape[:-1], count // size, size))
    return lax.unstack(lax.bitcast_convert_type(pairs, _UINT64), axis=-1)


def _key_data_of(*integers: jax.Array) -> jax.Array:
    """The inverse of `_integers_of`."""
    if integers[0].dtype == _UINT64:
        parts = [lax.bitcast_convert_type(x, _UINT32) for x in integers]
        return jnp.concatenate(parts, -1) if len(parts) > 1 else parts[0]
    if len(integers) > 1:
        return lax.stack(integers, axis=-1)
    return lax.expand_dims(integers[0], [integers[0].ndim])
