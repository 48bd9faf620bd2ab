"""TensorFlow gradients of converted functions, through `jax.vjp`.

TensorFlow asks for the gradient lazily; only then does JAX differentiate the function, and the
result is lowered like any other function. JAX thus does all differentiation, so custom
derivatives are respected, and gradients of gradients work.
"""

import contextlib
import contextvars
import dataclasses
import functools
import itertools
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.saved_model import save_context

from lowering import avals, callables, jax_compat
from lowering.errors import LoweringError
from lowering.frontend import callee_transforms, callee_variables, polymorphic
from lowering.ops import modes, names
from lowering.ops.registration import attach, captured

# The gradients that cannot be computed, of functions that are saved: why, and what was raised.
_FAILURES: contextvars.ContextVar[list[tuple[str, Exception]]] = contextvars.ContextVar("failures")

# A lowered function, on flat tensors.
Lower = Callable[..., list[tf.Tensor]]


@dataclasses.dataclass
class Vjp:
    """The vector-Jacobian product of a JAX function, converted when it is first asked for.

    Attributes:
      fun_jax: the function, by which errors name what cannot be differentiated.
      jaxpr: the function as it was traced. It is not traced again, as it may find other numbers in
        what it reads by then.
      avals: the abstract values of the arguments, flat.
      out_avals: the abstract values of the results, flat.
      has_specifications: whether TensorFlow may not know the shapes of arguments.
      convert: converts a function with shape specifications, on arguments of given shapes,
        as the function was converted.
      settings: the settings of JAX under which the function was traced. TensorFlow may ask for the
        gradient when they are others.
    """

    fun_jax: Callable[..., Any]
    jaxpr: jex_core.ClosedJaxpr
    avals: Sequence[Any]
    out_avals: Sequence[Any]
    has_specifications: bool
    convert: Callable[..., Callable[..., Any]]
    settings: Mapping[str, Any]

    def __post_init__(self):
        # The positions of the arguments that have a gradient, and of the results.
        self._active = _differentiable(self.avals)
        self._active_out = _differentiable(self.out_avals)
        self._by_variables: dict[Any, tuple[Sequence[tf.Variable], Vjp]] = {}

    @property
    def is_zero(self) -> bool:
        """Whether nothing has a gradient."""
        return not (self._active and self._active_out)

    def __call__(
        self, operands: Sequence[tf.Tensor], cotangents: Sequence[tf.Tensor]
    ) -> list[tf.Tensor | None]:
        """The gradient of each argument, or None; operands and cotangents are flat.

        Raises:
          LoweringError: if JAX cannot differentiate the function, or we cannot lower the
            derivative.
        """
        # TensorFlow's gradient of a complex value is the conjugate of JAX's.
        active_cotangents = [callee_transforms.conjugate(cotangents[i]) for i in self._active_out]
        try:
            with jax_compat.under(self.settings):
                pulled_back = self._converted(list(operands), active_cotangents)
        except Exception as error:
            name = callables.name(self.fun_jax)
            reason = f"JAX cannot compute the gradient of {name}: {_described(error)}"
            if isinstance(error, LoweringError):
                reason = f"the gradient of {name} cannot be lowered: {error.reason}"
            if not save_context.in_save_context():
                raise LoweringError(reason) from error
            # Saving asks for all gradients. Nobody may ever want this one.
            _FAILURES.get([]).append((reason, error))
            pulled_back = failing([operands[i] for i in self._active], reason)
        gradients: list[tf.Tensor | None] = [None] * len(operands)
        for i, gradient in zip(self._active, pulled_back, strict=True):
            gradients[i] = callee_transforms.conjugate(gradient)
        return gradients

    @functools.cached_property
    def _converted(self) -> Callable[..., Any]:
        def vjp(operands, cotangents):
            return self._vjp(operands, cotangents)

        vjp = callables.standing_for(vjp, self.fun_jax, takes_its_arguments=False)
        out_avals = [self.out_avals[i] for i in self._active_out]
        # The shapes of the tensors that hold the values.
        shapes = [avals.physical_shape(aval) for aval in (*self.avals, *out_avals)]
        if not self.has_specifications:
            return self.convert(vjp, None, shapes=shapes)
        specs = list(map(polymorphic.specification, shapes))
        count = len(self.avals)
        return self.convert(vjp, (specs[:count], specs[count:]), shapes=shapes)

    def by_variables(self, variables: Sequence[tf.Variable]) -> tuple[Sequence[tf.Variable], "Vjp"]:
        """The same by the values of variables, too, which are the first operands.

        Returns:
          The variables of those given that have a gradient, and the vector-Jacobian product.
        """
        references = tuple(v.ref() for v in variables)
        if references not in self._by_variables:
            with jax_compat.under({**self.settings, "jax_disable_jit": False}):
                chosen, jaxpr = callee_variables.with_values(self.jaxpr, self.avals, variables)
            values = [jax.ShapeDtypeStruct(v.shape, v.dtype.as_numpy_dtype) for v in chosen]
            vjp = dataclasses.replace(
                self,
                jaxpr=jaxpr,
                avals=[*values, *self.avals],
                convert=functools.partial(
                    self.convert, variables_given=frozenset(v.ref() for v in chosen)
                ),
            )
            self._by_variables[references] = chosen, vjp
        return self._by_variables[references]

    def _vjp(self, operands: Sequence[jax.Array], cotangents: Sequence[jax.Array]) -> Any:
        def fun(*active_operands):
            full = list(map(_as_given, operands, self.avals))
            for i, operand in zip(self._active, active_operands, strict=True):
                full[i] = operand
            results = jex_core.jaxpr_as_fun(self.jaxpr)(*full)
            return [results[i] for i in self._active_out]

        _, pullback = jax.vjp(fun, *(operands[i] for i in self._active))
        return pullback(list(cotangents))


def differentiable(lower: Lower, vjp: Vjp, given: Collection[Any] = ()) -> Lower:
    """`lower` with the TensorFlow gradient `vjp`.

    Args:
      lower: the function.
      vjp: its gradient.
      given: references of the variables whose values are among its arguments.
    """
    if vjp.is_zero:
        return lower

    # AutoGraph, which would rewrite what saving asks for, hides the types of errors.
    @tf.autograph.experimental.do_not_convert
    def pull_back(tensors, variables, values, *cotangents):
        if not variables:
            return vjp(tensors, cotangents)
        # What `call_tf` calls reads variables.
        chosen, by_all = vjp.by_variables(variables)
        of_chosen = {v.ref() for v in chosen}
        without = [v for v in variables if v.ref() not in of_chosen]
        if without:
            name, read = callables.name(vjp.fun_jax), ", ".join(v.name for v in without)
            warnings.warn(
                f"The gradient of {name} by {read} is None: call_tf calls a function that reads "
                "them in a while loop, or inside of what has a derivative of its own, such as "
                "jax.custom_vjp, or TensorFlow cannot trace a function. Pass them as arguments",
                stacklevel=2,
            )
        value_of = {v.ref(): x for v, x in zip(variables, values, strict=True)}
        pulled_back = by_all([*(value_of[v.ref()] for v in chosen), *tensors], cotangents)
        by_variable = dict(zip((v.ref() for v in chosen), pulled_back, strict=False))
        return [*pulled_back[len(chosen) :], *(by_variable.get(v.ref()) for v in variables)]

    def flat(*tensors):
        if modes.is_eager() and not record.could_possibly_record():
            return lower(*tensors)
        tensors = captured(tensors)
        # Tapes go on with the operands alone. A tape that records an op of control flow may
        # differentiate it at once.
        with record.VariableWatcher() as watcher, record.stop_recording():
            results = lower(*tensors)
        watched = [v for v in watcher.watched_variables() if v.ref() not in given]
        variables = sorted(watched, key=lambda v: v.name)
        values = list(map(tf.convert_to_tensor, variables))
        return attach(
            results,
            [*tensors, *values],
            functools.partial(pull_back, tensors, variables, values),
        )

    return flat


def prevent(
    results: Sequence[tf.Tensor],
    operands: Sequence[tf.Tensor],
    name: str,
    op_names: Sequence[str],
    is_natural: bool,
) -> list[tf.Tensor]:
    """Results of which TensorFlow refuses to compute a gradient.

    Args:
      results: results of a conversion.
      operands: what they are results of.
      name: the name of the function that was converted.
      op_names: the names of ops of the results, or none at all.
      is_natural: whether only ops are to be used that all runtimes of graphs know.
    """
    message = (
        f"The conversion of {name} was made with with_gradient=False, so that TensorFlow cannot "
        "differentiate it. Use with_gradient=True."
    )

    def keep(y, op_name):
        if is_natural:
            return tf.identity(y, name=op_name)
        return tf.raw_ops.PreventGradient(input=y, message=message, name=op_name)

    def refuse(*cotangents):
        raise LookupError(message)

    # For an op of a graph, TensorFlow looks for the gradient of this name, and finds none.
    without = tf.compat.v1.get_default_graph().gradient_override_map({"Identity": message})
    with record.stop_recording(), without:
        kept = [keep(*pair) for pair in itertools.zip_longest(results, op_names)]
    # Tapes ask what is recorded for them.
    record.record_operation("WithoutGradient", kept, list(operands), refuse)
    return kept


def failing(tensors: Sequence[tf.Tensor], reason: str) -> list[tf.Tensor]:
    """Tensors of the same shapes and dtypes, in a graph that fails with a reason when it runs.

    XLA leaves assertions out, but has no strings, so it refuses to compile their messages. The
    message depends on an element of a tensor, so that it cannot be folded.
    """
    element = tf.cast(tf.reshape(tensors[0], [-1])[:1], tf.float32)
    text = tf.strings.as_string(element, name=names.for_op(reason))
    holds = tf.reduce_any(tf.strings.length(text) < 0)
    with tf.control_dependencies([tf.raw_ops.Assert(condition=holds, data=[reason])]):
        return [tf.zeros_like(tensor) for tensor in tensors]


@contextlib.contextmanager
def required() -> Iterator[None]:
    """A context in which functions are saved, all of whose gradients have to be computed.

    Raises:
      LoweringError: at its end, if one cannot be computed.
    """
    token = _FAILURES.set([])
    try:
        yield
        # Not earlier, as TensorFlow prints what is raised while it saves.
        for reason, error in _FAILURES.get():
            raise LoweringError(reason) from error
    finally:
        _FAILURES.reset(token)


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}{callables.place(error)}"


def _differentiable(values: Sequence[Any]) -> list[int]:
    return [i for i, aval in enumerate(values) if jnp.issubdtype(aval.dtype, jnp.inexact)]


def _as_given(operand: jax.Array, aval: Any) -> jax.Array:
    """An operand as the function takes it: in place of keys, tensors have their key data."""
    if not avals.is_key(aval.dtype):
        return operand
    return jax.random.wrap_key_data(operand, impl=jax_compat.key_impl(aval.dtype))
