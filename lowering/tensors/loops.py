"""Loops as `tf.while_loop`.

A loop that runs eagerly is a `tf.function`, traced once: its steps are too many to be run op by
op. What is the same in all steps is captured by the body, not carried.
"""

import collections
from collections.abc import Callable, Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering.core.context import Context
from lowering.core.interpreter import to_tensor
from lowering.formats import keys
from lowering.ops import constant, dims, dtypes, integers
from lowering.ops.modes import is_compiled
from lowering.passes.trace import is_long

Value = tf.Tensor | np.ndarray

# How many loops are kept that were traced for eager execution.
_EAGER_LOOPS = 512

# A loop whose steps have no more equations than this, all together, is no loop.
_UNROLLED_EQUATIONS = 64

# A step of a scan's loop takes as many elements as have no more equations than this, all together;
# what a loop does itself, beside its body, costs as much as about thirty ops.
_STEP_EQUATIONS = 48
_STEP_ELEMENTS = 8

# A known operand of an eager loop is part of the loop if it has no more bytes than this.
_KNOWN_BYTES = 256

_eager_loops: collections.OrderedDict[Any, Any] = collections.OrderedDict()


def loop(ctx: Context, lower: Callable[..., Sequence[Value]], operands: Sequence[Value]) -> Any:
    """`lower(ctx, *operands)`, inside of a function if TensorFlow executes eagerly.

    Args:
      ctx: the context of an equation.
      lower: lowers the equation to a loop.
      operands: its operands.
    """
    if not tf.executing_eagerly():
        return lower(ctx, *operands)
    operands = [
        x if isinstance(x, np.ndarray) and x.nbytes <= _KNOWN_BYTES else to_tensor(x, aval.dtype)
        for x, aval in zip(operands, ctx.in_avals, strict=True)
    ]
    variables = ctx.interpreter.dimensions.variables
    is_known = [isinstance(x, np.ndarray) for x in operands]
    key = (
        id(ctx.eqn),
        ctx.target,
        tuple(variables),
        *(x.tobytes() if k else x.shape for x, k in zip(operands, is_known, strict=True)),
    )
    tensors = [x for x, k in zip(operands, is_known, strict=True) if not k]
    inputs = [*variables.values(), *tensors]
    if key not in _eager_loops:

        @tf.function(autograph=False)
        def function(*inputs):
            rest = iter(inputs)
            dimensions = dims.Dimensions({name: next(rest) for name in variables})
            inner = Context(ctx.eqn, ctx.interpreter.with_dimensions(dimensions))
            return lower(
                inner, *(x if k else next(rest) for x, k in zip(operands, is_known, strict=True))
            )

        specs = [tf.TensorSpec(x.shape, x.dtype) for x in inputs]
        # The equation is kept so that its identity stays its own.
        _eager_loops[key] = function.get_concrete_function(*specs), ctx.eqn
        if len(_eager_loops) > _EAGER_LOOPS:
            _eager_loops.popitem(last=False)
    _eager_loops.move_to_end(key)
    return list(_eager_loops[key][0](*inputs))


def unchanged(body: jex_core.ClosedJaxpr, num_consts: int, num_carry: int) -> list[bool]:
    """Which of the carried values are the same in all steps.

    Args:
      body: the body of a loop. Its inputs are constants, carried values, and others.
      num_consts: the number of constants.
      num_carry: the number of carried values; the first outputs of `body` are their successors.
    """
    carried = body.invars[num_consts : num_consts + num_carry]
    return [x is y for x, y in zip(carried, body.outvars[:num_carry], strict=True)]


def while_loop(
    cond: Callable[..., tf.Tensor],
    body: Callable[..., Sequence[tf.Tensor]],
    init: Sequence[Value],
    avals: Sequence[Any],
    fixed: Sequence[bool],
    batch: Sequence[Any],
) -> list[Value]:
    """Repeats `body` while `cond` holds.

    Args:
      cond: a function of the carried values.
      body: a function of the carried values that returns their successors.
      init: their first values.
      avals: their abstract values.
      fixed: which of them `body` does not change.
      batch: the shape of what `cond` returns. If it is no scalar, the leading dimensions of all
        that is carried are loops of their own, and those that have ended stay as they are.

    Returns:
      Their last values.
    """
    if all(fixed):
        return list(init)
    carried = _Carried(init, avals, fixed)
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
        shape_invariants=(tf.TensorShape(dims.static_shape(batch)), carried.shapes),
    )
    return carried.all(result)


def scan(
    ctx: Context,
    body: Callable[..., Sequence[tf.Tensor]],
    init: Sequence[Value],
    xs: Sequence[Value],
    xs_avals: Sequence[Any],
    fixed: Sequence[bool],
    length: Any,
    reverse: bool,
    unroll: int,
) -> list[Value]:
    """Applies `body` to the elements of `xs` along the first axis, one after the other.

    Args:
      ctx: the context of a `scan`.
      body: a function of the carried values and of an element of each of `xs`. It returns the
        successors of the carried values, and an element of each of the stacked results.
      init: the first carried values.
      xs: the arrays to go through.
      xs_avals: their abstract values.
      fixed: which of the carried values `body` does not change.
      length: the size of the first axis.
      reverse: whether the last element comes first.
      unroll: how many elements a step of the loop takes.

    Returns:
      The last carried values, and the stacked results.
    """
    carry_avals, ys_avals = ctx.out_avals[: len(init)], ctx.out_avals[len(init) :]
    carried = _Carried(init, carry_avals, fixed)
    sources = [_Stack.of(ctx, x, aval) for x, aval in zip(xs, xs_avals, strict=True)]
    stacks = [_Stack.empty(ctx, aval) for aval in ys_avals]
    size = ctx.size(length)
    whole = size - size % unroll if isinstance(size, int) else size
    unroll = unroll if isinstance(size, int) else 1
    first, stop, step = (size - 1, size - 1 - whole, -1) if reverse else (0, whole, 1)

    def advance(i, values, handles):
        results = body(*carried.all(values), *(source.get(i) for source in sources))
        outputs = results[len(init) :]
        handles = [
            stack.set(handle, i, y)
            for stack, handle, y in zip(stacks, handles, outputs, strict=True)
        ]
        return carried.changing(results[: len(init)]), tuple(handles)

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
    carry = [
        to_tensor(x, aval.dtype) for x, aval in zip(carried.all(values), carry_avals, strict=True)
    ]
    return [*carry, *stacked]


def is_short(body: jex_core.ClosedJaxpr, length: Any) -> bool:
    """Whether a scan over `length` elements is better done without a loop."""
    return isinstance(length, int) and (
        length <= 1 or length * len(body.eqns) <= _UNROLLED_EQUATIONS
    )


def elements_per_step(body: jex_core.ClosedJaxpr, length: Any, unroll: int) -> int:
    """How many elements a step of a scan's loop takes: as asked for, or more if little is done.

    XLA's loops cost little themselves, and run no faster for it.

    Args:
      body: what is done for each element.
      length: how many elements there are.
      unroll: how many the step should take.
    """
    if unroll > 1 or not isinstance(length, int) or is_compiled():
        return unroll
    counts = (n for n in range(_STEP_ELEMENTS, 1, -1) if length % n == 0)
    return next((n for n in counts if not is_long(body, _STEP_EQUATIONS // n)), 1)


def scan_in_place(
    ctx: Context,
    body: Callable[..., Sequence[tf.Tensor]],
    init: Sequence[Value],
    xs: Sequence[Value],
    length: int,
    reverse: bool,
) -> list[Value]:
    """Like `scan`, without a loop."""
    if not length:
        return scan_nothing(ctx, init)
    elements = [list(x) if isinstance(x, np.ndarray) else tf.unstack(x, length) for x in xs]
    carry = list(init)
    outputs = []
    for i in reversed(range(length)) if reverse else range(length):
        results = body(*carry, *(x[i] for x in elements))
        carry = results[: len(init)]
        outputs.append(results[len(init) :])
    if reverse:
        outputs.reverse()
    return [*carry, *(tf.stack(ys) for ys in zip(*outputs, strict=True))]


def scan_nothing(ctx: Context, init: Sequence[Value]) -> list[tf.Tensor]:
    """What `scan` returns for arrays without elements."""
    carry_avals, ys_avals = ctx.out_avals[: len(init)], ctx.out_avals[len(init) :]
    carry = [to_tensor(x, aval.dtype) for x, aval in zip(init, carry_avals, strict=True)]
    shapes = [(0, *keys.physical_shape(aval)[1:]) for aval in ys_avals]
    return [
        *carry,
        *(
            tf.zeros(ctx.shape(shape), dtypes.to_tf(aval.dtype))
            for shape, aval in zip(shapes, ys_avals, strict=True)
        ),
    ]


class _Carried:
    """The values that a loop carries: those that change, and those that do not."""

    def __init__(self, init: Sequence[Value], avals: Sequence[Any], fixed: Sequence[bool]):
        self._fixed = fixed
        self._values = list(init)
        self.init = self.changing(
            [to_tensor(x, aval.dtype) for x, aval in zip(init, avals, strict=True)]
        )
        self.shapes = self.changing([_static_shape(aval) for aval in avals])

    def changing(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Those of all carried values that change."""
        return tuple(x for x, fixed in zip(values, self._fixed, strict=True) if not fixed)

    def all(self, changing: Sequence[tf.Tensor]) -> list[Value]:
        """All carried values from those that change."""
        rest = iter(changing)
        return [
            x if fixed else next(rest) for x, fixed in zip(self._values, self._fixed, strict=True)
        ]


class _Stack:
    """The elements along the first axis of an array, in a TensorList.

    TensorFlow's kernels share the elements with the array; XLA makes slices of an array of them.
    """

    def __init__(self, ctx: Context, aval: Any, handle: tf.Tensor | None):
        shape = keys.physical_shape(aval)[1:]
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
            tensor=to_tensor(x, aval.dtype), element_shape=stack._shape()
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
        element.set_shape(dims.static_shape(self._dims))
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
    return tf.TensorShape(dims.static_shape(keys.physical_shape(aval)))
