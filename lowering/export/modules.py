"""Modules of nnx, Equinox and other libraries, which are functions and hold their parameters.

The arrays of floats of a module are the parameters of the model, like `params` of a function; the
rest of it is constant. A module of nnx is made anew in each call, so that it may change its state,
such as statistics of training; the model forgets the change.
"""

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from lowering import callables

# The parameter of a module's function that comes before those of the module.
_PARAMS = "params_of_module"


def taken_apart(fun: Any, params: Any) -> tuple[Any, Any]:
    """A function of parameters and the parameters, of a module; others are returned as they are.

    Args:
      fun: a function or module, or several by name.
      params: the parameters that the caller gives; a module that is given some keeps its own.

    Raises:
      TypeError: for a class, a module of linen without its variables, and parameters for a module
        of nnx.
    """
    for each in fun.values() if isinstance(fun, Mapping) else (fun,):
        _check(each, params)
    if params is not None or isinstance(fun, Mapping) or not callable(fun):
        return fun, params
    found = _parts(fun)
    if found is None:
        return fun, None
    tree, put_together = found
    leaves, structure = jax.tree.flatten(tree)
    # Other arrays, such as sizes, have to stay known.
    is_parameter = [_is_float_array(leaf) for leaf in leaves]
    if not any(is_parameter) and not _is_of_nnx(fun):
        return fun, None

    def call(params: Any, *args: Any) -> Any:
        rest = iter(params)
        all_leaves = [next(rest) if p else x for x, p in zip(leaves, is_parameter, strict=True)]
        return put_together(jax.tree.unflatten(structure, all_leaves))(*args)

    call.__name__ = callables.name(fun)
    own = callables.signature(fun)
    if own is not None:
        first = inspect.Parameter(_PARAMS, inspect.Parameter.POSITIONAL_ONLY)
        signature = inspect.Signature([first, *own.parameters.values()])
        setattr(call, "__signature__", signature)  # noqa: B010
    return call, [leaf for leaf, p in zip(leaves, is_parameter, strict=True) if p]


def _check(fun: Any, params: Any) -> None:
    """Raises a TypeError for what cannot be called, though Python says that it can."""
    name = callables.name(fun)
    if callables.is_class(fun):
        raise TypeError(f"expected a JAX function, not the class {name}; give an instance of one")
    linen = sys.modules.get("flax.linen")
    if linen is not None and isinstance(fun, linen.Module) and fun.scope is None:
        raise TypeError(
            f"{name} is a module of linen, which does not hold its variables; export its apply, "
            "with the variables as params"
        )
    if params is not None and _is_of_nnx(fun):
        raise TypeError(f"{name} is a module of nnx, which holds its parameters; leave out params")


def _parts(fun: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """The pytree of a module, and what makes the module of it; None for other functions."""
    if _is_of_nnx(fun):
        nnx = sys.modules["flax.nnx"]
        _warn_of_training(nnx, fun)
        graph, state = nnx.split(fun)
        return state, lambda state: nnx.merge(graph, state)
    if jax.tree_util.all_leaves([fun]):
        return None
    return fun, lambda module: module


def _is_of_nnx(fun: Any) -> bool:
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(fun, nnx.Module)


def _warn_of_training(nnx: Any, module: Any) -> None:
    """Warns of layers that behave as in training; a mask would be the same in each call."""
    modules = [type(x).__name__ for _, x in nnx.iter_modules(module) if _is_in_training(x)]
    if modules:
        warnings.warn(
            f"{type(module).__name__} has {', '.join(dict.fromkeys(modules))} in training mode. "
            "The model forgets changed statistics, and drops the same elements in each call; "
            "module.eval() ends the training mode",
            stacklevel=2,
        )


def _is_in_training(module: Any) -> bool:
    is_dropped = getattr(module, "rate", 0) and getattr(module, "deterministic", None) is False
    return bool(is_dropped) or getattr(module, "use_running_average", None) is False


def _is_float_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.inexact)
