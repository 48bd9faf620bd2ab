"""Groups of equations that TensorFlow has one op for, or that fewer ops can do.

A group is replaced by equations with the same results: of primitives of our own, which have rules
like any other, or of JAX's. To add one, write the program and its replacement as JAX functions.

Rows of the bench that show the gain: resnet50 for batch norms, lstm for sums of splits, transformer
for softmax and transposed products.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import registry
from lowering.passes.fusion.choices import CHOICE_SEARCHES
from lowering.passes.fusion.patterns import Group, Pattern, Uses
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import replace_equations


def primitive_like_operand(name: str) -> jex_core.Primitive:
    """A primitive of our own, with one result like its first operand."""
    primitive = registry.new_primitive(name)
    primitive.def_abstract_eval(lambda x, *_, **__: x)
    return primitive


def is_float(x: Any, *others: Any) -> bool:
    """Whether an array has floats of 16 bits or more."""
    return jnp.issubdtype(x.dtype, jnp.floating) and np.dtype(x.dtype).itemsize > 1


def is_wide(x: Any, *others: Any) -> bool:
    """Whether an array has floats whose sums need no wider dtype."""
    return x.dtype in (np.float32, np.float64)


BATCH_NORM = primitive_like_operand("batch_norm")
SOFTMAX = primitive_like_operand("softmax")

_MATRIX = jax.ShapeDtypeStruct((2, 3), np.float32)
_IMAGES = jax.ShapeDtypeStruct((2, 3, 4, 5), np.float32)
_FEATURES = jax.ShapeDtypeStruct((1, 1, 1, 5), np.float32)
_NUMBER = jax.ShapeDtypeStruct((), np.float32)


def _softmax(x):
    exp = lax.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def _softmax_without_gradient_of_max(x):
    exp = lax.exp(x - lax.stop_gradient(x.max(-1, keepdims=True)))
    return exp / exp.sum(-1, keepdims=True)


def _softmax_of_bounded(x):
    exp = lax.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return exp / exp.sum(-1, keepdims=True)


def batch_norm(x, mean, variance, scale, offset, epsilon):
    """Normalization by known statistics."""
    return (x - mean) * (lax.rsqrt(variance + epsilon) * scale) + offset


def _is_images(x, *features):
    """Whether the operands are float32 images, features last, and values for each feature."""
    *by_feature, epsilon = features
    return (
        x.dtype == np.float32
        and len(x.shape) == 4
        and x.shape[:3] != (1, 1, 1)
        and all(v.shape == (1, 1, 1, x.shape[-1]) for v in by_feature)
        and epsilon.shape == ()
    )


PATTERNS = (
    *(
        Pattern(example, SOFTMAX.bind, args=(_MATRIX,), when=is_wide)
        for example in (
            jax.nn.softmax,
            _softmax,
            _softmax_without_gradient_of_max,
            _softmax_of_bounded,
        )
    ),
    Pattern(
        batch_norm, BATCH_NORM.bind, args=(_IMAGES, *[_FEATURES] * 4, _NUMBER), when=_is_images
    ),
)


def _transposed_product(
    transpose: jex_core.JaxprEqn, group: Group
) -> Sequence[jex_core.JaxprEqn] | None:
    """A `dot_general` whose `permutation` is the order of the axes of its result."""
    product = group.maker(transpose.invars[0], "dot_general")
    if product is None:
        return None
    params = {**product.params, "permutation": transpose.params["permutation"]}
    return [product.replace(outvars=transpose.outvars, params=params)]


def _sum_of_splits(split: jex_core.JaxprEqn, group: Group) -> Sequence[jex_core.JaxprEqn] | None:
    """The sums of the parts of two arrays, as the parts of their sum: gates of a recurrent network.

    The number of parts varies, so that no example will do.
    """
    adds: list[Any] = [group.user(var, "add") for var in split.outvars]
    if not all(adds):
        return None
    others = [
        [atom for atom in add.invars if atom is not var]
        for add, var in zip(adds, split.outvars, strict=True)
    ]
    if any(len(atoms) != 1 for atoms in others):
        return None
    makers = [group.maker(atom, "split") for (atom,) in others]
    first = makers[0]
    if (
        first is None
        or any(maker is not first for maker in makers)
        or [atom for (atom,) in others] != first.outvars
        or first.params != split.params
        or not group.is_last(split, "split")
    ):
        return None
    (x,), (y,) = first.invars, split.invars
    if x.aval.shape != y.aval.shape:
        return None
    total = jex_core.Var(y.aval)
    return [
        adds[0].replace(invars=[x, y], outvars=[total]),
        split.replace(invars=[total], outvars=[add.outvars[0] for add in adds]),
    ]


SEARCHES = {"transpose": _transposed_product, "split": _sum_of_splits, **CHOICE_SEARCHES}


def mark_operands(jaxpr: Jaxpr) -> Jaxpr:
    """Notes in equations what makes their operands, where their rules can use it.

    A batch norm notes the convolution before it, as TensorFlow fuses both. A maximum over windows
    notes that its operand is rectified, as floats without a sign are ordered like their bits.
    """
    uses = Uses(jaxpr)

    def mark_norm(_, norm):
        maker = uses.maker(norm.invars[0], "conv_general_dilated")
        if maker is None:
            return None
        return norm.replace(params={**norm.params, "convolution": maker})

    def mark_pool(_, pool):
        maker = uses.maker(pool.invars[0], "max")
        if maker is None or not any(map(_is_zero, maker.invars)):
            return None
        return pool.replace(params={**pool.params, "of_rectifier": True})

    return replace_equations(jaxpr, {"batch_norm": mark_norm, "reduce_window_max": mark_pool})


def _is_zero(atom):
    """Whether an operand is a positive zero of a floating-point dtype."""
    if not isinstance(atom, jex_core.Literal) or not jnp.issubdtype(atom.aval.dtype, np.floating):
        return False
    return atom.val == 0 and not np.signbit(atom.val)
