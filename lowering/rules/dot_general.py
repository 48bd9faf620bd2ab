"""Contractions of two operands."""

import dataclasses
import functools
import math
import string
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays import complex_math, contractions, small_integers
from lowering.avals import real_dtype
from lowering.narrow_formats import SHORT
from lowering.ops import bitcast, cast, constant, dtypes
from lowering.registry import Trait, decomposition, rule
from lowering.targets import CONSUMER
from lowering.tensors import movement, products
from lowering.tensors.contractions import compute_dtypes, consumer_dtypes


@rule("dot_general", traits=Trait.CONTRACTION)
def dot_general(ctx, lhs, rhs, *, dimension_numbers, precision, permutation=None, **_):
    """One MatMul or BatchMatMul, whose flags take the place of transposes where they can.

    Sums of low precision are accumulated in float32 and rounded once; booleans are or-ed. The axes
    of the result are in the order `permutation`; see `passes.fusion.exact`.
    """
    (lhs_aval, rhs_aval), out_aval = ctx.in_avals, ctx.out_aval
    choose = consumer_dtypes if ctx.target.is_consumer else compute_dtypes
    lhs_dtype, rhs_dtype, dtype = choose(lhs_aval.dtype, rhs_aval.dtype, out_aval.dtype, precision)
    is_of_vectors = ctx.target.is_natural and len(lhs_aval.shape) == len(rhs_aval.shape) == 1
    if is_of_vectors or contractions.is_of_elements(
        lhs_aval.shape, rhs_aval.shape, dimension_numbers
    ):
        return ctx.lower(
            contractions.product_of_elements,
            lhs,
            rhs,
            avals=ctx.in_avals,
            dimension_numbers=dimension_numbers,
            permutation=permutation,
            dtypes=(lhs_dtype, rhs_dtype, dtype, out_aval.dtype),
        )
    lhs = _convert(ctx, lhs, lhs_aval.shape, lhs_dtype)
    rhs = _convert(ctx, rhs, rhs_aval.shape, rhs_dtype)
    shapes = lhs_aval.shape, rhs_aval.shape
    cheapest = _cheapest_of_static if all(map(avals.is_static, shapes)) else _cheapest
    axes = tuple(tuple(map(tuple, pair)) for pair in dimension_numbers)
    product = cheapest(*shapes, axes, permutation and tuple(permutation))
    result = product.emit(ctx, lhs, rhs, dtype)
    result = _convert(ctx, result, out_aval.shape, dtype)
    return _convert(ctx, result, out_aval.shape, out_aval.dtype)


def _cheapest(lhs_shape, rhs_shape, dimension_numbers, permutation):
    """The way to write a contraction as a product of matrices that moves the least.

    Each axis is named by a letter.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    letters = string.ascii_letters
    lhs = list(letters[: len(lhs_shape)])
    rhs = list(letters[len(lhs_shape) : len(lhs_shape) + len(rhs_shape)])
    for i, j in zip((*lhs_contract, *lhs_batch), (*rhs_contract, *rhs_batch), strict=True):
        rhs[j] = lhs[i]
    batch, contract = [lhs[i] for i in lhs_batch], [lhs[i] for i in lhs_contract]
    out = batch + [x for x in lhs if x not in rhs] + [y for y in rhs if y not in lhs]
    out = out if permutation is None else [out[i] for i in permutation]
    sizes = dict(zip(lhs + rhs, (*lhs_shape, *rhs_shape), strict=True))
    products = [
        _Product(is_swapped, x, y, out, batch, order, sizes)
        for is_swapped, x, y in ((False, lhs, rhs), (True, rhs, lhs))
        for order in (contract, sorted(contract, key=lhs.index), sorted(contract, key=rhs.index))
    ]
    return min(products, key=lambda product: product.cost)


# Not for symbolic sizes: a cache would keep the scopes of their variables alive.
_cheapest_of_static = functools.lru_cache(maxsize=1024)(_cheapest)


@decomposition(
    "dot_general",
    target=CONSUMER,
    dtypes=(*SHORT, *dtypes.UNSIGNED_32, *dtypes.COMPLEX),
)
def dot_general_on_consumers(
    lhs,
    rhs,
    *,
    dimension_numbers,
    precision=None,
    preferred_element_type=None,
    permutation=None,
    **params,
):
    """A product in a dtype that runtimes multiply in, rounded or wrapped around once."""
    dot_general = functools.partial(
        lax.dot_general_p.bind, dimension_numbers=dimension_numbers, precision=None, **params
    )
    of_program = functools.partial(dot_general, preferred_element_type=preferred_element_type)
    out = jax.eval_shape(of_program, lhs, rhs).dtype
    if jnp.iscomplexobj(lhs) or jnp.iscomplexobj(rhs):
        kind = jnp.result_type(lhs, rhs, np.complex64)
        of_parts = functools.partial(dot_general, preferred_element_type=real_dtype(kind))
        product = complex_math.bilinear(of_parts, lhs.astype(kind), rhs.astype(kind), out)
    else:
        of_floats = functools.partial(dot_general, preferred_element_type=np.dtype(np.float32))
        axes = list(zip(*dimension_numbers[0], strict=True))
        terms = math.prod(lhs.shape[axis] for axis, _ in axes)
        product = small_integers.contraction(of_floats, lhs, rhs, axes=axes, terms=terms, out=out)
        if product is None:
            product = _converted_product(dot_general, lhs, rhs, out, precision)
    return product if permutation is None else lax.transpose(product, permutation)


def _converted_product(dot_general, lhs, rhs, out, precision):
    """A product in int32 or float32, converted to `out`."""
    *operands, accumulator = consumer_dtypes(lhs.dtype, rhs.dtype, out, precision)
    is_integer = all(jnp.issubdtype(dtype, np.integer) for dtype in operands)
    dtype = np.dtype(np.int32 if is_integer else np.float32)
    lhs, rhs = (x.astype(d).astype(dtype) for x, d in zip((lhs, rhs), operands, strict=True))
    return dot_general(lhs, rhs, preferred_element_type=dtype).astype(accumulator).astype(out)


@dataclasses.dataclass(frozen=True)
class _Product:
    """A way to write a contraction as one product of matrices per batch element."""

    is_swapped: bool  # The right operand of the contraction is the left one here.
    x: Sequence[str]  # The axes of the left operand,
    y: Sequence[str]  # of the right one,
    out: Sequence[str]  # and of the result of the contraction.
    batch: Sequence[str]  # The axes of both operands, in the order that they take here,
    contract: Sequence[str]  # and those that are contracted.
    sizes: Mapping[str, Any]  # The size of each axis.

    def _free(self, labels):
        return [label for label in labels if label not in (*self.batch, *self.contract)]

    @functools.cached_property
    def _natural(self):
        """The axes of the product."""
        return [*self.batch, *self._free(self.x), *self._free(self.y)]

    def _is_in_order(self, labels, order):
        """Whether a reshape brings axes into an order: only axes of size one may move."""
        ones = [x for x in labels if isinstance(self.sizes[x], int) and self.sizes[x] == 1]
        return [x for x in labels if x not in ones] == [x for x in order if x not in ones]

    def _layout(self, labels):
        """The layout of an operand as matrices without a transpose, None if it needs one.

        It is "fc" if the columns are contracted and the rows are free axes, "cf" if the rows are.
        """
        free = self._free(labels)
        if self._is_in_order(labels, [*self.batch, *free, *self.contract]):
            return "fc"
        return "cf" if self._is_in_order(labels, [*self.batch, *self.contract, *free]) else None

    @property
    def cost(self):
        """How much is transposed: one point for an array, two if its last axis moves."""
        operands = [labels for labels in (self.x, self.y) if self._layout(labels) is None]
        points = sum(1 + (labels[-1] in self.batch) for labels in operands)
        if self._is_in_order(self.out, self._natural):
            return points
        return points + 1 + (self.out[-1] != self._natural[-1])

    def emit(self, ctx, lhs, rhs, dtype):
        """The product, in a dtype that can be converted to `dtype`."""
        x, y = (rhs, lhs) if self.is_swapped else (lhs, rhs)
        rows, columns = self._free(self.x), self._free(self.y)
        unknown = [label for label in self._natural if not isinstance(self.sizes[label], int)]
        is_stacked = not self.batch and self._layout(self.x) == "fc" and len(unknown) > 1
        if is_stacked and len(rows) < products.most_axes(ctx):
            # BatchMatMulV2 with one matrix for all rows needs no shape.
            if len(self.contract) != 1:
                x = self._shaped(ctx, x, (*rows, self.contract))
            adj_x, is_shaped = False, len(columns) == 1
        else:
            x, adj_x = self._matrices(ctx, x, self.x)
            is_shaped = len(rows) == len(columns) == 1 and not self._is_flat(ctx)
        y, adj_y = self._matrices(ctx, y, self.y)
        matmul = functools.partial(products.matmul, ctx, adj_x=adj_x, adj_y=not adj_y)
        result = _multiply(x, y, matmul, dtype)
        result = result if is_shaped else self._shaped(ctx, result, self._natural)
        if list(self.out) == self._natural:
            return result
        if self._is_in_order(self.out, self._natural):
            return self._shaped(ctx, result, self.out)
        return movement.transpose(ctx, result, [self._natural.index(x) for x in self.out])

    def _matrices(self, ctx, x, labels):
        """An operand as matrices, and whether their rows are what is contracted."""
        layout, free = self._layout(labels), self._free(labels)
        if layout is None:
            # Transposes are faster if the last axis stays last.
            layout = "cf" if labels[-1] in free else "fc"
            inner = (*self.contract, *free) if layout == "cf" else (*free, *self.contract)
            order = [*self.batch, *inner]
            x = movement.transpose(ctx, x, [labels.index(label) for label in order])
            labels = order
        matrix = (self.contract, free) if layout == "cf" else (free, self.contract)
        batch = [self.batch] if self._is_flat(ctx) else [[label] for label in self.batch]
        axes = [*batch, *map(list, matrix)]
        # An operand that has these axes one by one is not reshaped: sizes may be symbolic.
        is_shaped = axes == [[label] for label in labels]
        return x if is_shaped else self._shaped(ctx, x, axes), layout == "cf"

    def _is_flat(self, ctx):
        """Whether all batch axes are one, as the kernel takes no more."""
        return len(self.batch) + 2 > products.most_axes(ctx)

    def _shaped(self, ctx, x, axes):
        """`x` with an axis for each label, or for several labels together."""
        return movement.reshape(ctx, x, [math.prod(self.sizes[x] for x in axis) for axis in axes])


def _convert(ctx, x, shape, dtype):
    to = dtypes.to_tf(dtype)
    if x.dtype == to or (x.dtype.is_floating and to.is_floating):
        return cast(x, to)
    aval = jax.ShapeDtypeStruct(shape, x.dtype.as_numpy_dtype)
    return ctx.lower(contractions.converted, x, avals=[aval], dtype=np.dtype(dtype))


def _multiply(x, y, matmul, dtype):
    """The product of tensors of one dtype, in a dtype that can be converted to `dtype`.

    `matmul` multiplies tensors of a dtype that TensorFlow has a kernel for.
    """
    out = dtypes.to_tf(dtype)
    if x.dtype == tf.bool:
        counts = matmul(cast(x, tf.float32), cast(y, tf.float32))
        return tf.raw_ops.NotEqual(x=counts, y=constant(0, tf.float32))
    if x.dtype in (tf.float16, tf.bfloat16):
        product = matmul(cast(x, tf.float32), cast(y, tf.float32))
        return cast(product, out) if out.is_floating else product
    if x.dtype.is_integer and x.dtype.size < 4:
        return cast(matmul(cast(x, tf.int32), cast(y, tf.int32)), x.dtype)
    if x.dtype.is_unsigned:
        carrier = dtypes.carrier(x.dtype)
        return bitcast(matmul(bitcast(x, carrier), bitcast(y, carrier)), x.dtype)
    return matmul(x, y)
