"""Constants, each once per graph.

A lowered program repeats the same shapes, axes and scalars hundreds of times; a node for each
would double the size of the graph. Small constants are told apart by value, large ones by
identity.

Those of a graph are freed with it. Eagerly, the last 4096 small ones are kept (16 MB at most), and
a large one for as long as the array that it was made of.
"""

import contextlib
import contextvars
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.ops import control_flow_v2_func_graphs
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from lowering import targets
from lowering.caches import Bounded
from lowering.errors import UnsupportedError
from lowering.ops import memo, modes

# Constants above this size (in bytes) are not worth hashing.
_BY_VALUE_BYTES = 4096
_EAGER_ENTRIES = 4096
# Above this size (in bytes), what a function closes over is in variables while it is exported.
LARGE_BYTES = 1 << 20
# The most bytes that TensorFlow takes in one node.
_LARGEST_BYTES = 2**31 - 1

# Ops whose result has the elements of their first operand.
_VIEWS = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "Transpose"})
# Ops whose results are parts of their first operand; the others say which.
_PARTS = frozenset({"Slice", "StridedSlice", "Unpack"})
# Ops whose result is a constant once variables are frozen.
_WEIGHTS = frozenset({"Const", "ReadVariableOp"})

# The keys of what is kept with a graph: the scope that constants are made in, the names of
# arguments that are weights in all calls of a function, and the dtypes of eight bits or fewer that
# its programs have and graphs have not.
_SCOPE = "scope of constants"
_ARGUMENTS = "arguments that are weights"
_NARROW = "narrow dtypes"

# The attribute of a constant that is computed, such as a matrix of a Fourier transform.
_COMPUTED = "_computed"

# Whether the constants that are made now come from arrays that the program closes over, or are
# made of these. Exporters quantize such constants, and no others.
OF_PARAMETERS: contextvars.ContextVar[bool] = contextvars.ContextVar("of_parameters", default=True)

# Whether graphs refer to the large constants of eager execution instead of holding copies.
_IS_CAPTURED: contextvars.ContextVar[bool] = contextvars.ContextVar("is_captured", default=False)

# Variables for large arrays, by the memory that these are in and how they are laid out there. The
# arrays stay alive with them, as others may get the memory of one that is freed.
Variables = dict[Any, tuple[np.ndarray, tf.Variable]]

# The variables that are read in the place of large constants, while a model is exported.
_VARIABLES: contextvars.ContextVar[Variables | None] = contextvars.ContextVar(
    "variables", default=None
)

_eager_small = Bounded(_EAGER_ENTRIES)
_eager_large: dict[int, tf.Tensor] = {}


def constant(value: Any, dtype: Any = None) -> tf.Tensor:
    """A tensor with a known value, shared by all that ask for it in the same graph.

    Args:
      value: a scalar or array; it must not be changed later.
      dtype: a NumPy or TensorFlow dtype; that of `value` if None.

    Raises:
      UnsupportedError: in a graph, for more than 2 GB.
    """
    if isinstance(dtype, tf.DType):
        dtype = dtype.as_numpy_dtype
    array = np.asarray(value, dtype)
    by_value = array.nbytes <= _BY_VALUE_BYTES
    key = (array.dtype, array.shape, array.tobytes()) if by_value else id(value)
    if modes.is_eager():
        if by_value:
            return _eager_small.get(key, lambda: tf.constant(array))
        return _eager_by_identity(value, array)
    if _IS_CAPTURED.get() and not by_value:
        return memo.once(("captured", key), lambda: _captured(value, array), value)
    computed = _is_computed(array)
    variables = _VARIABLES.get()
    if variables is not None and array.nbytes > LARGE_BYTES and not computed:
        return memo.once(("variable", key), lambda: _in_variable(variables, array), value)
    scope = memo.of_graph().get(_SCOPE, "")
    place = "constant", scope, computed, key
    return memo.once(place, lambda: _outside(array, scope), value)


@contextlib.contextmanager
def captured() -> Iterator[None]:
    """A context in which graphs refer to the large constants that eager execution has.

    It is for functions that are called eagerly and never saved. Their constants are in memory once.
    """
    token = _IS_CAPTURED.set(True)
    try:
        yield
    finally:
        _IS_CAPTURED.reset(token)


@contextlib.contextmanager
def within_scope() -> Iterator[None]:
    """A context in which the constants of a graph are made in the scope that is entered now.

    They are not made in scopes that are entered later, as ops of several of those share them.
    """
    if modes.is_eager():
        yield
        return
    kept = memo.of_graph()
    before = kept.get(_SCOPE, "")
    kept[_SCOPE] = tf.compat.v1.get_default_graph().get_name_scope()
    try:
        yield
    finally:
        kept[_SCOPE] = before


def _outside(array: np.ndarray, scope: str) -> tf.Tensor:
    """A constant outside of all control flow, so that every later user can reach it."""
    if array.nbytes > _LARGEST_BYTES:
        raise UnsupportedError(
            f"a graph of TensorFlow has no constant of {array.nbytes / 1e9:.1f} GB; give the array "
            "to the function as an argument, or to an exporter in params"
        )
    with tf.control_dependencies(None), tf.name_scope(f"{scope}/" if scope else ""):
        # Other runtimes need no signs of zeros, and have no bitcast.
        if not (targets.current().has_tensorflow_kernels and _loses_signs(array)):
            made: Any = tf.constant(array)
            if _is_computed(array):
                made.op._set_attr(_COMPUTED, attr_value_pb2.AttrValue(b=True))
            return made
        return tf.bitcast(tf.constant(array.view(f"int{8 * array.itemsize}")), array.dtype)


def _is_computed(array: np.ndarray) -> bool:
    """Whether a constant for an array is marked as computed, so that it is not quantized."""
    if array.ndim == 0 or array.dtype.kind != "f":
        return False
    return targets.current().is_consumer and not OF_PARAMETERS.get()


def is_computed(node_def: Any) -> bool:
    """Whether a node of a graph is a constant that holds no parameters of the user's."""
    return _COMPUTED in node_def.attr


def take_computed(node_def: Any) -> bool:
    """Says whether a node is a constant that holds no parameters, and removes the mark of it."""
    found = is_computed(node_def)
    node_def.attr.pop(_COMPUTED, None)
    return found


@contextlib.contextmanager
def read_from(variables: Variables) -> Iterator[None]:
    """A context in which graphs read large constants from variables.

    TensorFlow copies the constants of a graph up to twenty times while it is exported. A variable
    is outside of the graph until the model is written, as the parameters of a model are.

    Args:
      variables: the variables that there are; those that are made are added.
    """
    token = _VARIABLES.set(variables)
    try:
        yield
    finally:
        _VARIABLES.reset(token)


def _in_variable(variables: Variables, array: np.ndarray) -> tf.Tensor:
    """The value of the variable for a large array."""
    key = array.__array_interface__["data"], array.dtype, array.shape, array.strides
    if key not in variables:
        with tf.init_scope():
            # A function of TensorFlow lets nobody make a `tf.Variable` when it is traced again.
            variables[key] = array, ResourceVariable(array, trainable=False)
    with tf.control_dependencies(None):
        return variables[key][1].read_value()


def _captured(value: Any, array: np.ndarray) -> tf.Tensor:
    """The constant of eager execution as an argument of the function that is being made."""
    with tf.init_scope():
        eager = _eager_by_identity(value, array)
    tensor = tf.compat.v1.get_default_graph().capture(eager)
    mark_weights([tensor])
    return tensor


def _loses_signs(array: np.ndarray) -> bool:
    """Whether TensorFlow's optimizer would make 0 of the elements of a constant in a graph.

    See `grappler.quirks.signs_of_constant_zeros`. It keeps the bits as integers, and does not look
    through a bitcast.
    """
    is_real = tf.as_dtype(array.dtype).is_floating and array.size > 1
    return is_real and not array.any() and bool(np.signbit(array).all())


def integers(values: Any) -> tf.Tensor:
    """A vector of axes, sizes or positions as an int32 constant (int64 if one needs it).

    Raises:
      OverflowError: for a number of more than 64 bits.
    """
    array = np.asarray(values, np.int64)
    largest = max(map(abs, array.ravel().tolist()), default=0)
    return constant(array, np.int32 if largest < 2**31 else np.int64)


def vector(numbers: Sequence[int | tf.Tensor]) -> tf.Tensor:
    """Ints, and integer scalars of one dtype, as one vector."""
    dtypes = {x.dtype for x in numbers if isinstance(x, tf.Tensor)}
    if not dtypes:
        return integers(numbers)
    (dtype,) = dtypes
    scalars = [x if isinstance(x, tf.Tensor) else constant(x, dtype) for x in numbers]
    return tf.raw_ops.Pack(values=scalars, axis=0)


def is_weight(x: tf.Tensor) -> bool:
    """Whether a tensor is a constant once the variables of the graph are frozen."""
    while tf.is_symbolic_tensor(x):
        made: Any = x
        if not (_is_view(op := made.op) or _is_part(op)):
            is_known = op.type in _WEIGHTS or op.name in memo.of(op.graph).get(_ARGUMENTS, ())
            # Asking for its value would copy a constant.
            return is_known or tf.get_static_value(x) is not None
        x = op.inputs[0]
    return True


def is_passed_to_branch(x: tf.Tensor) -> bool:
    """Whether a tensor of the graph around it is an argument of the branch that is being made.

    TF Lite's converter puts the weights into loops that have them as arguments, not into branches.
    """
    graph = tf.compat.v1.get_default_graph()
    while tf.is_symbolic_tensor(x) and graph is not None and graph is not x.graph:
        if isinstance(graph, control_flow_v2_func_graphs.CondBranchFuncGraph):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


def mark_weights(arguments: Iterable[tf.Tensor]) -> None:
    """Notes that arguments of the function that is being made are weights wherever it is called."""
    for x in arguments:
        memo.of(x.graph).setdefault(_ARGUMENTS, set()).add(x.op.name)


def note_narrow(dtypes: Iterable[np.dtype]) -> None:
    """Notes dtypes that a program has; the graph that is being made has wider ones instead."""
    memo.of_graph().setdefault(_NARROW, set()).update(dtypes)


def narrow_of(graph: tf.Graph) -> frozenset[np.dtype]:
    """The dtypes that `note_narrow` has noted of a graph."""
    return frozenset(memo.of(graph).get(_NARROW, ()))


def _is_view(op: Any) -> bool:
    """Whether the result of an op has the elements of its first operand."""
    # The maximum of an array and itself keeps a cast of a weight in its place; see `casts`.
    is_itself = op.type == "Maximum" and op.inputs[0].ref() == op.inputs[1].ref()
    return op.type in _VIEWS or is_itself


def _is_part(op: Any) -> bool:
    """Whether the results of an op are known parts of its first operand."""
    return op.type in _PARTS and all(map(is_weight, op.inputs[1:]))


def _eager_by_identity(value: Any, array: np.ndarray) -> tf.Tensor:
    if id(value) not in _eager_large:
        try:
            weakref.finalize(value, _eager_large.pop, id(value), None)
        except TypeError:  # Such as a list, which nobody will ask for again.
            return tf.constant(array)
        _eager_large[id(value)] = tf.constant(array)
    return _eager_large[id(value)]
