"""Checks that sizes of arguments fit `polymorphic_shapes`, and computes the variables in it.

The JAX function is traced once for all sizes, so what the trace assumes of them has to be checked
each time. A size that is known when ops are made is checked at once, others by ops; see
`statements`.
"""

import contextlib
from collections.abc import Iterator, Sequence

import tensorflow as tf

from lowering import boundary, jax_compat
from lowering.errors import ShapeError
from lowering.frontend import solving
from lowering.frontend.plans import Argument, Dim, Plan
from lowering.frontend.statements import COMPARISONS, Check, sentence
from lowering.ops import constant, integers, names
from lowering.ops.dims import OPERATIONS, Size


class Sizes:
    """The sizes of arguments: ints where they are known, else int32 scalars.

    Making one checks all that is known; the rest is checked by the ops of `assertions`.
    """

    def __init__(self, plan: Plan, tensors: Sequence[tf.Tensor]):
        """
        Args:
          plan: how the sizes are checked.
          tensors: the arguments. Their ranks are those of the plan.

        Raises:
          ShapeError: if sizes are known not to fit.
        """
        self._plan = plan
        self._tensors = tensors
        self._shapes: dict[int, tf.Tensor] = {}
        self._open: list[Check] = []
        self._found: dict[str, Size] = {}
        self._fixed_sizes()
        sizes = [self._size(*place) for place in plan.places]
        for step in plan.steps:
            self._find(step, sizes)
        for i in plan.equations:
            self._equation(i, sizes[i])
        for text, is_equality, difference in plan.constraints:
            self._constraint(text, is_equality, difference)

    @property
    def variables(self) -> dict[str, tf.Tensor]:
        """The value of each dimension variable, as an int32 scalar."""
        return {
            name: constant(value, "int32") if isinstance(value, int) else value
            for name, value in self._found.items()
        }

    def assertions(self) -> list[tf.Operation]:
        """Ops that fail if the sizes, which are not known yet, do not fit."""
        with tf.name_scope("check_shapes"):
            return [check.assertion() for check in self._open]

    def _size(self, argument: int, axis: int) -> Size:
        tensor = self._tensors[argument]
        size = tensor.shape[axis]
        if size is not None:
            return size
        if argument not in self._shapes:
            self._shapes[argument] = tf.shape(boundary.shaped_alike(tensor))
        return _axis_size(self._shapes[argument], axis)

    def _fixed_sizes(self) -> None:
        for i, argument in enumerate(self._plan.arguments):
            for axis, dim in enumerate(argument.shape):
                if isinstance(dim, int):
                    size = self._size(i, axis)
                    pieces = f"{argument.name}.shape[{axis}] has size", size, f", not {dim}"
                    self._check(size, "==", dim, pieces, argument)

    def _find(self, step: solving.Step, sizes: Sequence[Size]) -> None:
        """Finds a variable."""
        places = [i for _, i, _ in step.terms]
        argument = self._plan.argument(places[0])
        verb = "has size" if len(places) == 1 else "have sizes"
        has = f"{' and '.join(map(self._place, places))} {verb}", *(sizes[i] for i in places)
        total: Size = 0
        for weight, i, rest in step.terms:
            size = _sum(sizes[i], -1, self._value(rest))
            total = _sum(total, weight, size)
        divisor = self._value(step.divisor)
        if not isinstance(step.divisor, int):
            pieces = *has, f"where {step.divisor} is zero, so that {step.name} may be anything"
            self._check(divisor, "!=", 0, pieces, argument)
            divisor = divisor if isinstance(divisor, int) else tf.where(divisor == 0, 1, divisor)
        if isinstance(divisor, int) and divisor == 1:
            value = total
        else:
            remainder = OPERATIONS["mod"](total, divisor)
            no_integer = f"which no integer {step.name} gives; divided by {step.divisor} it leaves"
            self._check(remainder, "==", 0, (*has, no_integer, remainder), argument)
            value = OPERATIONS["floordiv"](total, divisor)
        self._found[step.name] = value
        # JAX takes for granted that no variable is zero, and so does the trace.
        pieces = *has, f"so that {step.name} is", value, ", not at least 1"
        self._check(value, ">=", 1, pieces, argument)

    def _equation(self, place: int, size: Size) -> None:
        """Checks that a dimension has the size that the variables give."""
        expected = self._value(self._plan.dim(place))
        pieces = f"{self._place(place)} has size", size, ", not", expected
        self._check(size, "==", expected, pieces, self._plan.argument(place))

    def _constraint(self, text: str, is_equality: bool, difference: Dim) -> None:
        value, sign = self._value(difference), "==" if is_equality else ">="
        pieces = f"polymorphic_constraints has {text!r}, but {difference} is", value
        self._check(value, sign, 0, (*pieces, f", not {sign} 0"), None)

    def _place(self, place: int) -> str:
        return self._plan.text(place)

    def _value(self, dim: Dim) -> Size:
        """The value of a dimension in the variables that have been found."""
        variables = dict(self._found)
        try:
            if not jax_compat.dim_variables(dim) <= variables.keys():
                for name, alias in self._plan.aliases.items():
                    variables[name] = jax_compat.evaluate_dim(alias, self._found, OPERATIONS)
            return jax_compat.evaluate_dim(dim, variables, OPERATIONS)
        except ZeroDivisionError:
            pieces = f"a divisor in {dim} is zero", *self._context(None)
            raise ShapeError.because(sentence(pieces)) from None

    def _check(
        self,
        left: Size,
        sign: str,
        right: Size,
        pieces: Sequence[str | Size],
        argument: Argument | None,
    ) -> None:
        """Checks a comparison at once, or leaves it to an assertion.

        Args:
          left: a size.
          sign: "==", ">=" or "!=".
          right: a size.
          pieces: what is wrong if the comparison is not true. The sizes in it are not negative if
            it is.
          argument: the argument that is to blame, if one is.
        """
        pieces = [*pieces, *self._context(argument)]
        if not (isinstance(left, int) and isinstance(right, int)):
            self._open.append(Check(left, sign, right, pieces))
        elif not COMPARISONS[sign](left, right):
            raise ShapeError.because(sentence(pieces))

    def _context(self, argument: Argument | None) -> list[str | Size]:
        """The specification, and the variables that have been found."""
        pieces: list[str | Size] = []
        if argument is not None and argument.specification is not None:
            pieces.append(f"; polymorphic_shapes {argument.specification!r} for {argument.name}")
        for name, value in self._found.items():
            pieces += [f"; {name} =", value]
        return pieces


def with_rank(tensor: tf.Tensor, argument: Argument, check: bool) -> tf.Tensor:
    """A tensor of the rank that its specification has, if TensorFlow does not know its rank.

    Args:
      tensor: the tensor.
      argument: what is said of its shape.
      check: whether an op is to fail if it has another rank.
    """
    if tensor.shape.rank is not None:
        return tensor
    assertions, rank = [], len(argument.shape)
    if check:
        found = tf.rank(tensor)
        context = f"; polymorphic_shapes {argument.specification!r} for {argument.name}"
        pieces = f"{argument.name} has", found, f"dimensions, not {rank}{context}"
        assertions.append(Check(found, "==", rank, pieces).assertion())
    with tf.control_dependencies(assertions):
        tensor = tf.identity(tensor)
    tensor.set_shape([None] * rank)
    return tensor


@contextlib.contextmanager
def checked(sizes: Sizes | None, check: bool) -> Iterator[tuple[dict[str, tf.Tensor], bool]]:
    """A context in which ops are made that do not run unless the sizes fit.

    It gives the values of dimension variables, and whether there are ops that check. If so,
    arguments have to be made results of ops of the context, such as `Identity`: what uses those
    depends on the checks, without an edge for each op, which would keep TensorFlow from fusing it.

    Args:
      sizes: the sizes of arguments; None if none is symbolic.
      check: whether they are checked, as far as they are not known yet.
    """
    if sizes is None:
        yield {}, False
        return
    assertions = sizes.assertions() if check else []
    if not assertions:
        yield sizes.variables, False
        return
    with tf.control_dependencies(assertions):
        given = sizes.variables
        yield {v: tf.identity(x, name=names.for_op(v) or None) for v, x in given.items()}, True


def _sum(x: Size, weight: int, y: Size) -> Size:
    """`x + weight * y`, without ops that change nothing."""
    if isinstance(y, int) or abs(weight) != 1:
        y = weight * y
    elif weight == -1:
        return x - y if not (isinstance(x, int) and x == 0) else -y
    if isinstance(x, int) and x == 0:
        return y
    return x if isinstance(y, int) and y == 0 else x + y


def _axis_size(shape: tf.Tensor, axis: int) -> tf.Tensor:
    return tf.raw_ops.StridedSlice(
        input=shape,
        begin=integers([axis]),
        end=integers([axis + 1]),
        strides=integers([1]),
        shrink_axis_mask=1,
    )
