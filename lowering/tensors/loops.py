"""Loops as `tf.while_loop`.

A carried value that the body of a loop does not change is captured by the body, not carried.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering import avals
from lowering.context import Context
from lowering.ops import constant, dtypes, emit, integers, memo, move
from lowering.ops.values import Value, tensor
from lowering.targets import Target
from lowering.targets.tflite import quirks
from lowering.tensors import movement


class Carried:
    """The values that a loop carries, some of which it does not change."""

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
        return self.changing(self._tensors(self.values))

    def changing(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Those of all carried values that change."""
        return tuple(x for x, fixed in zip(values, self._fixed, strict=True) if not fixed)

    def all(self, changing: Sequence[tf.Tensor]) -> list[Value]:
        """All carried values from those that change."""
        rest = iter(changing)
        pairs = zip(self.values, self._fixed, strict=True)
        return [x if fixed else next(rest) for x, fixed in pairs]

    def tensors(self, changing: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """All carried values from those that change, as tensors."""
        return self._tensors(self.all(changing))

    def _tensors(self, values):
        return [tensor(x, aval.dtype) for x, aval in zip(values, self._avals, strict=True)]


def while_loop(
    cond: Callable[..., tf.Tensor],
    body: Callable[..., Sequence[tf.Tensor]],
    carried: Carried,
    batch: Sequence[Any],
    target: Target,
) -> list[Value]:
    """The last values of a loop that repeats `body` while `cond` holds.

    Args:
      cond: a function of the carried values.
      body: a function of the carried values that returns their successors.
      carried: the carried values.
      batch: the shape of what `cond` returns. If it is no scalar, the carried values have these
        leading dimensions, and each element is a loop of its own. One that has ended stays as it
        is.
      target: who runs the loop.
    """
    if not carried.shapes:
        return carried.values
    if not batch:
        result = tf.while_loop(
            lambda *values: cond(*carried.all(values)),
            lambda *values: _copied(carried.changing(body(*carried.all(values))), values, target),
            carried.init,
            shape_invariants=carried.shapes,
        )
        return carried.all(result)

    def step(goes_on, before):
        successors = carried.changing(body(*carried.all(before)))
        values = tuple(_select(goes_on, x, y) for x, y in zip(successors, before, strict=True))
        return cond(*carried.all(values)), values

    every_axis = integers(range(len(batch)))
    _, result = tf.while_loop(
        lambda goes_on, _: tf.raw_ops.Any(input=goes_on, axis=every_axis),
        step,
        (cond(*carried.all(carried.init)), carried.init),
        shape_invariants=(tf.TensorShape(avals.static_shape(batch)), carried.shapes),
    )
    return carried.all(result)


@dataclasses.dataclass(frozen=True)
class Scan:
    """Applies a function to the elements of arrays along their first axes, one after the other.

    Its three methods return the last carried values and the stacked results.

    Attributes:
      ctx: the context of the rule.
      body: a function of the carried values and an element of each array. It returns the successors
        of the carried values and an element of each stacked result.
      carried: the carried values.
      xs: the arrays.
      xs_avals: their abstract values.
      ys_avals: the abstract values of the stacked results.
      length: the size of the first axes: a dimension.
      reverse: whether the last element comes first.
    """

    ctx: Context
    body: Callable[..., Sequence[tf.Tensor]]
    carried: Carried
    xs: Sequence[Value]
    xs_avals: Sequence[Any]
    ys_avals: Sequence[Any]
    length: Any
    reverse: bool

    def loop(self, unroll: int) -> list[tf.Tensor]:
        """The results, by a loop. If the length is known, a step takes `unroll` elements."""
        # Other runtimes have no lists, or lose them in nested loops.
        elements_of = _ElementArray if self.ctx.target.is_consumer else _ElementList
        sources = [
            elements_of(self.ctx, aval, x) for x, aval in zip(self.xs, self.xs_avals, strict=True)
        ]
        stacks = [elements_of(self.ctx, aval) for aval in self.ys_avals]
        size = self.ctx.size(self.length)
        unroll = unroll if isinstance(size, int) else 1
        rounded = size - size % unroll if isinstance(size, int) else size
        first, stop, step = (size - 1, size - 1 - rounded, -1) if self.reverse else (0, rounded, 1)

        def advance(i, before, handles):
            elements = [source.get(i) for source in sources]
            values, outputs = self._step(self.carried.all(before), elements)
            handles = tuple(
                stack.put(handle, i, y)
                for stack, handle, y in zip(stacks, handles, outputs, strict=True)
            )
            return _copied(self.carried.changing(values), before, self.ctx.target), handles

        def loop_body(i, values, handles):
            for _ in range(unroll):
                values, handles = advance(i, values, handles)
                i = i + step
            return i, values, handles

        handle_shapes = tuple(stack.handle.shape for stack in stacks)
        shapes = (tf.TensorShape(()), self.carried.shapes, handle_shapes)
        i, values, handles = tf.while_loop(
            (lambda i, *_: i > stop) if self.reverse else (lambda i, *_: i < stop),
            loop_body,
            (movement.scalar(first, tf.int32), self.carried.init, tuple(s.handle for s in stacks)),
            shape_invariants=shapes,
        )
        if isinstance(size, int):
            for position in range(rounded, size):
                i = constant(size - 1 - position if self.reverse else position, np.int32)
                values, handles = advance(i, values, handles)
        stacked = [stack.stacked(handle) for stack, handle in zip(stacks, handles, strict=True)]
        return [*self.carried.tensors(values), *stacked]

    def unrolled(self) -> list[Value]:
        """The results, without a loop. The length has to be known."""
        if not self.length:
            return self.empty()
        elements = [
            [x[i, ...] for i in range(self.length)]
            if isinstance(x, np.ndarray)
            else tf.unstack(x, self.length)
            for x in self.xs
        ]
        steps = zip(*elements, strict=True) if elements else [()] * self.length
        carry, outputs = self.carried.values, []
        for step in reversed([*steps]) if self.reverse else steps:
            carry, output = self._step(carry, step)
            outputs.append(output)
        if self.reverse:
            outputs.reverse()
        stacks = [list(map(tensor, ys)) for ys in zip(*outputs, strict=True)]
        return [*carry, *(move("Pack", ys, axis=0) for ys in stacks)]

    def empty(self) -> list[tf.Tensor]:
        """The results for a length of zero."""

        def empty(aval):
            shape = (0, *avals.physical_shape(aval)[1:])
            return tf.zeros(self.ctx.shape(shape), dtypes.to_tf(aval.dtype))

        return [*self.carried.tensors(self.carried.init), *map(empty, self.ys_avals)]

    def _step(self, carry: Sequence[Value], elements: Sequence[Value]) -> tuple[Any, Any]:
        """The successors of the carried values, and an element of each stacked result."""
        results = self.body(*carry, *elements)
        return results[: len(self.carried)], results[len(self.carried) :]


class _ElementList:
    """The elements of an array along its first axis, in a TensorList.

    TensorFlow's kernels share the memory of the elements with the array; XLA makes the list one
    array, and slices it.
    """

    def __init__(self, ctx: Context, aval: Any, x: Value | None = None):
        """The elements of `x`, which has the abstract value `aval`; room for them if it is None."""
        self._ctx = ctx
        self._shape = avals.physical_shape(aval)[1:]
        self._dtype = dtypes.to_tf(aval.dtype)
        self._size = ctx.size(aval.shape[0])
        if x is None:
            self.handle = tf.raw_ops.TensorListReserve(
                element_shape=ctx.shape(self._shape),
                num_elements=movement.scalar(self._size, tf.int32),
                element_dtype=self._dtype,
            )
        else:
            self.handle = tf.raw_ops.TensorListFromTensor(
                tensor=tensor(x, aval.dtype), element_shape=ctx.shape(self._shape)
            )

    def get(self, i: tf.Tensor) -> tf.Tensor:
        """Element `i`."""
        element = tf.raw_ops.TensorListGetItem(
            input_handle=self.handle,
            index=i,
            element_shape=self._ctx.shape(self._shape),
            element_dtype=self._dtype,
        )
        element.set_shape(avals.static_shape(self._shape))
        return element

    def put(self, handle: tf.Tensor, i: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """A list like this one with another element `i`."""
        return tf.raw_ops.TensorListSetItem(input_handle=handle, index=i, item=x)

    def stacked(self, handle: tf.Tensor) -> tf.Tensor:
        """The array of the elements of a list like this one."""
        return tf.raw_ops.TensorListStack(
            input_handle=handle,
            element_shape=self._ctx.shape(self._shape),
            element_dtype=self._dtype,
            num_elements=self._size if isinstance(self._size, int) else -1,
        )


class _ElementArray:
    """The elements of an array along its first axis; see `_ElementList`."""

    def __init__(self, ctx: Context, aval: Any, x: Value | None = None):
        if x is None:
            shape = ctx.shape(avals.physical_shape(aval))
            self.handle = tf.zeros(shape, dtypes.to_tf(aval.dtype))
            self.handle.set_shape(_static_shape(aval))
        else:
            self.handle = tensor(x, aval.dtype)

    def get(self, i: tf.Tensor) -> tf.Tensor:
        return move("GatherV2", self.handle, i, constant(0, np.int32))

    def put(self, handle: tf.Tensor, i: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        index = memo.once(("index", id(i)), lambda: tf.reshape(i, integers([1, 1])), i)
        row = tf.expand_dims(x, constant(0, np.int32))
        return move("TensorScatterUpdate", handle, index, row)

    def stacked(self, handle: tf.Tensor) -> tf.Tensor:
        return handle


def _copied(
    successors: Sequence[tf.Tensor], values: Sequence[tf.Tensor], target: Target
) -> tuple[tf.Tensor, ...]:
    """The values of the next step of a loop.

    With `quirks.overwritten_values_of_loops`, each successor that was a value is made by an op,
    which no converter removes.
    """
    if not target.has(quirks.overwritten_values_of_loops):
        return tuple(successors)
    before = {id(x) for x in values}
    return tuple(copy(x) if id(x) in before else x for x in successors)


def copy(x: tf.Tensor) -> tf.Tensor:
    """The same values, by an op that no converter removes."""
    return emit("LogicalOr" if x.dtype == tf.bool else "Maximum", x, x)


def _select(which: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """`x` where `which` is true, else `y`; their leading dimensions are those of `which`."""
    for _ in range(x.shape.rank - which.shape.rank):
        which = tf.raw_ops.ExpandDims(input=which, axis=integers(-1))
    return move("SelectV2", which, x, y)


def _static_shape(aval: Any) -> tf.TensorShape:
    return tf.TensorShape(avals.static_shape(avals.physical_shape(aval)))
