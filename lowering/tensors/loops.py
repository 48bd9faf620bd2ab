"""Loops as `tf.while_loop`.

What is the same in all steps is captured by the body of the loop, not carried.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering import avals
from lowering.context import Context
from lowering.ops import constant, dtypes, integers
from lowering.ops.values import Value, tensor


class Carried:
    """The values that a loop carries: those that change, and those that do not."""

    def __init__(self, init: Sequence[Value], avals_: Sequence[Any], fixed: Sequence[bool]):
        """The first values, their abstract values, and which of them the loop does not change."""
        self.values = list(init)
        self._avals = avals_
        self._fixed = fixed
        self.shapes = self.changing([_static_shape(aval) for aval in avals_])

    def __len__(self) -> int:
        return len(self.values)

    @property
    def init(self) -> tuple[tf.Tensor, ...]:
        """The first values of those that change."""
        return self.changing(
            [tensor(x, aval.dtype) for x, aval in zip(self.values, self._avals, strict=True)]
        )

    def changing(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Those of all carried values that change."""
        return tuple(x for x, fixed in zip(values, self._fixed, strict=True) if not fixed)

    def all(self, changing: Sequence[tf.Tensor]) -> list[Value]:
        """All carried values from those that change."""
        rest = iter(changing)
        return [
            x if fixed else next(rest) for x, fixed in zip(self.values, self._fixed, strict=True)
        ]

    def tensors(self, changing: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """All carried values from those that change, as tensors."""
        return [tensor(x, a.dtype) for x, a in zip(self.all(changing), self._avals, strict=True)]


def while_loop(
    cond: Callable[..., tf.Tensor],
    body: Callable[..., Sequence[tf.Tensor]],
    carried: Carried,
    batch: Sequence[Any],
) -> list[Value]:
    """Repeats `body` while `cond` holds.

    Args:
      cond: a function of the carried values.
      body: a function of the carried values that returns their successors.
      carried: the carried values.
      batch: the shape of what `cond` returns. If it is no scalar, the leading dimensions of all
        that is carried are loops of their own, and those that have ended stay as they are.

    Returns:
      Their last values.
    """
    if not carried.shapes:
        return carried.values
    if not batch:
        result = tf.while_loop(
            lambda *values: cond(*carried.all(values)),
            lambda *values: carried.changing(body(*carried.all(values))),
            carried.init,
            shape_invariants=carried.shapes,
        )
        return carried.all(result)

    def step(goes_on, values):
        successors = carried.changing(body(*carried.all(values)))
        values = tuple(_select(goes_on, x, y) for x, y in zip(successors, values, strict=True))
        return cond(*carried.all(values)), values

    every_axis = integers(range(len(batch)))
    _, result = tf.while_loop(
        lambda goes_on, _: tf.raw_ops.Any(input=goes_on, axis=every_axis),
        step,
        (cond(*carried.all(carried.init)), carried.init),
        shape_invariants=(tf.TensorShape(avals.static_shape(batch)), carried.shapes),
    )
    return carried.all(result)


# From the carried values and an element of each array that a scan goes through to the successors of
# the carried values and an element of each stacked result.
Body = Callable[..., Sequence[tf.Tensor]]


def scan(
    ctx: Context,
    body: Body,
    carried: Carried,
    xs: Sequence[Value],
    xs_avals: Sequence[Any],
    ys_avals: Sequence[Any],
    length: Any,
    reverse: bool,
    unroll: int,
) -> list[Value]:
    """Applies `body` to the elements of `xs` along the first axis, one after the other.

    Args:
      ctx: the context of a `scan`.
      body: what is done to each element.
      carried: the carried values.
      xs: the arrays to go through.
      xs_avals: their abstract values.
      ys_avals: the abstract values of the stacked results.
      length: the size of the first axis.
      reverse: whether the last element comes first.
      unroll: how many elements a step of the loop takes.

    Returns:
      The last carried values, and the stacked results.
    """
    sources = [_Stack.of(ctx, x, aval) for x, aval in zip(xs, xs_avals, strict=True)]
    stacks = [_Stack.empty(ctx, aval) for aval in ys_avals]
    size = ctx.size(length)
    whole = size - size % unroll if isinstance(size, int) else size
    unroll = unroll if isinstance(size, int) else 1
    first, stop, step = (size - 1, size - 1 - whole, -1) if reverse else (0, whole, 1)

    def advance(i, values, handles):
        results = body(*carried.all(values), *(source.get(i) for source in sources))
        outputs = results[len(carried) :]
        handles = [
            stack.set(handle, i, y)
            for stack, handle, y in zip(stacks, handles, outputs, strict=True)
        ]
        return carried.changing(results[: len(carried)]), tuple(handles)

    def loop_body(i, values, handles):
        for _ in range(unroll):
            values, handles = advance(i, values, handles)
            i = i + step
        return i, values, handles

    i, values, handles = tf.while_loop(
        (lambda i, *_: i > stop) if reverse else (lambda i, *_: i < stop),
        loop_body,
        (
            constant(first, np.int32) if isinstance(first, int) else first,
            carried.init,
            tuple(stack.handle for stack in stacks),
        ),
        shape_invariants=(tf.TensorShape(()), carried.shapes, (tf.TensorShape(()),) * len(stacks)),
    )
    if isinstance(size, int):
        for position in range(whole, size):
            i = constant(size - 1 - position if reverse else position, np.int32)
            values, handles = advance(i, values, handles)
    stacked = [stack.stacked(handle) for stack, handle in zip(stacks, handles, strict=True)]
    return [*carried.tensors(values), *stacked]


def unrolled_scan(
    ctx: Context,
    body: Body,
    carried: Carried,
    xs: Sequence[Value],
    ys_avals: Sequence[Any],
    length: int,
    reverse: bool,
) -> list[Value]:
    """Like `scan`, without a loop."""
    if not length:
        return empty_scan(ctx, carried, ys_avals)
    elements = [list(x) if isinstance(x, np.ndarray) else tf.unstack(x, length) for x in xs]
    carry = carried.values
    outputs = []
    for i in reversed(range(length)) if reverse else range(length):
        results = body(*carry, *(x[i] for x in elements))
        carry = results[: len(carried)]
        outputs.append(results[len(carried) :])
    if reverse:
        outputs.reverse()
    return [*carry, *(tf.stack(ys) for ys in zip(*outputs, strict=True))]


def empty_scan(ctx: Context, carried: Carried, ys_avals: Sequence[Any]) -> list[tf.Tensor]:
    """What `scan` returns for arrays without elements."""
    shapes = [(0, *avals.physical_shape(aval)[1:]) for aval in ys_avals]
    return [
        *carried.tensors(carried.init),
        *(
            tf.zeros(ctx.shape(shape), dtypes.to_tf(aval.dtype))
            for shape, aval in zip(shapes, ys_avals, strict=True)
        ),
    ]


class _Stack:
    """The elements along the first axis of an array, in a TensorList.

    TensorFlow's kernels share the elements with the array; XLA makes slices of an array of them.
    """

    def __init__(self, ctx: Context, aval: Any, handle: tf.Tensor | None):
        shape = avals.physical_shape(aval)[1:]
        self.handle = handle
        self._size = ctx.size(aval.shape[0])
        self._dtype = dtypes.to_tf(aval.dtype)
        self._dims = shape
        self._shape = lambda: ctx.shape(shape)

    @classmethod
    def of(cls, ctx: Context, x: Value, aval: Any) -> "_Stack":
        """The elements of `x`."""
        stack = cls(ctx, aval, None)
        stack.handle = tf.raw_ops.TensorListFromTensor(
            tensor=tensor(x, aval.dtype), element_shape=stack._shape()
        )
        return stack

    @classmethod
    def empty(cls, ctx: Context, aval: Any) -> "_Stack":
        """Room for the elements of an array of the abstract value `aval`."""
        stack = cls(ctx, aval, None)
        size = stack._size
        stack.handle = tf.raw_ops.TensorListReserve(
            element_shape=stack._shape(),
            num_elements=constant(size, np.int32) if isinstance(size, int) else size,
            element_dtype=stack._dtype,
        )
        return stack

    def get(self, i: tf.Tensor) -> tf.Tensor:
        """Element `i`."""
        element = tf.raw_ops.TensorListGetItem(
            input_handle=self.handle,
            index=i,
            element_shape=self._shape(),
            element_dtype=self._dtype,
        )
        element.set_shape(avals.static_shape(self._dims))
        return element

    def set(self, handle: tf.Tensor, i: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """The list `handle` with `x` in place of element `i`."""
        return tf.raw_ops.TensorListSetItem(input_handle=handle, index=i, item=x)

    def stacked(self, handle: tf.Tensor) -> tf.Tensor:
        """The array of the elements of the list `handle`."""
        return tf.raw_ops.TensorListStack(
            input_handle=handle,
            element_shape=self._shape(),
            element_dtype=self._dtype,
            num_elements=self._size if isinstance(self._size, int) else -1,
        )


def _select(which: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Where `which` holds `x`, else `y`, whose leading dimensions are those of `which`."""
    for _ in range(x.shape.rank - which.shape.rank):
        which = tf.raw_ops.ExpandDims(input=which, axis=integers(-1))
    return tf.raw_ops.SelectV2(condition=which, t=x, e=y)


def _static_shape(aval: Any) -> tf.TensorShape:
    return tf.TensorShape(avals.static_shape(avals.physical_shape(aval)))
