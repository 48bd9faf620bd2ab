"""Finds the functions and values that a command line names."""

import argparse
import importlib
import importlib.util
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lowering import callables
from lowering.commands import dimensions, specifications
from lowering.commands.mistakes import CommandError, FaultError, did_you_mean
from lowering.commands.specifications import KEYS, Argument, Array

_NAMED = re.compile(r"(?:(?P<name>\w+)=)?(?P<path>[\w.-]+:[\w.]+)")
_FILE = re.compile(r"(?:\w+=)?(?P<path>.+\.py)(?::(?P<name>[\w.]+))?")


def _split(text: str) -> tuple[str, str]:
    """The name in front of a `module:name`, by default its last part, and the `module:name`."""
    match = _NAMED.fullmatch(text)
    if match is None:
        raise CommandError(_no_name(text))
    return match["name"] or re.split(r"[.:]", match["path"])[-1], match["path"]


def _no_name(text: str) -> str:
    """What is wrong with a text that is no `module:name`."""
    file = _FILE.fullmatch(text)
    if file is not None:
        return f"{text!r} is a file; {_naming(file['path'])}:{file['name'] or 'name'}"
    if pathlib.Path(text).exists():
        return f"{text!r} is a file; write module:name, where a function of that name reads it"
    if "[" in text:
        return f"{text!r} is an argument; give it by --arg"
    if re.fullmatch(r"[\w.]+:?", text):
        return f"{text!r} has no function name; write module:name"
    return f"{text!r} names nothing; write it as module:name"


def _naming(file: str) -> str:
    """What to do and write in place of the path of a module."""
    path = pathlib.Path(os.path.abspath(file)).with_suffix("")
    here = pathlib.Path.cwd()
    parts = path.relative_to(here).parts if path.is_relative_to(here) else ()
    if parts and all(re.fullmatch(r"[\w-]+", part) for part in parts):
        return f"write its module: {'.'.join(parts)}"
    return f"go to {path.parent} and write its module: {path.name}"


def check_module(text: str) -> None:
    """Raises a CommandError if a `module:name` is none, or its module is in no known place."""
    module, _, name = _split(text)[1].partition(":")
    if module.endswith(".py"):
        raise CommandError(f"write the module without .py: {module.removesuffix('.py')}:{name}")
    top = module.split(".")[0]
    if not top or importlib.util.find_spec(top) is None:
        near = [path.stem for path in pathlib.Path().glob("*.py")]
        raise CommandError(f"there is no module {module!r}{did_you_mean(top, near)}")


def value_of(text: str) -> Any:
    """The object that a `module:name` names.

    Raises:
      CommandError: if there is no such module or name.
      FaultError: if the module cannot be imported.
    """
    check_module(text)
    module_name, _, path = _split(text)[1].partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            raise CommandError(f"there is no module {error.name!r}") from error
        raise FaultError(f"{module_name} cannot be imported: {error}") from error
    except (Exception, SystemExit) as error:
        is_relative = "relative import" in str(error)
        hint = "; write package.module:name, above the directory of the package"
        raise FaultError(
            f"{module_name} cannot be imported: {callables.summary(error)}{hint * is_relative}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            known = [name for name in dir(found) if not name.startswith("_")]
            raise CommandError(f"{module_name} has no {path!r}{did_you_mean(part, known)}")
        found = getattr(found, part)
    return found


def value(text: str) -> Any:
    """The value that a `module:name` names, or that the function of this name returns."""
    found = value_of(text)
    if not callable(found):
        return found
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise FaultError(f"{text} fails: {callables.summary(error)}") from error


def _paths(texts: Sequence[str]) -> dict[str, str]:
    """Each `module:name` of functions that a command names, by the name of the function."""
    found: dict[str, str] = {}
    for text in texts:
        name, path = _split(text)
        if name in found:
            raise CommandError(f"two functions are called {name!r}; write one as other={path}")
        found[name] = path
    return found


def functions(texts: Sequence[str]) -> dict[str, Any]:
    """The functions that `module:name` or `name=module:name` name, by name."""
    found = {}
    for name, path in _paths(texts).items():
        found[name] = value_of(path)
        if callables.is_class(found[name]):
            raise CommandError(f"{path} is a class; name an instance, or a function")
        if not callable(found[name]):
            kind = type(found[name]).__name__
            article = "an" if kind[0].lower() in "aeiou" else "a"
            raise CommandError(f"{path} is {article} {kind}, not a function")
    return found


def check(args: argparse.Namespace) -> None:
    """Raises a CommandError for what is wrong without a look into any module."""
    names = list(_paths(args.functions))
    for text in (*args.functions, *filter(None, (args.params, args.args))):
        check_module(text)
    specified = list(map(specifications.parsed, args.arg))
    for argument in specified:
        if argument.function is not None and argument.function not in names:
            hint = did_you_mean(argument.function, names)
            raise CommandError(
                f"no function is called {argument.function!r}; there is {', '.join(names)}{hint}"
            )
    for function in names:
        _check_names([x.name for x in specified if x.function in (None, function)])
    if args.arg and args.args is not None:
        raise CommandError("--arg and --args both give the arguments; use one of them")
    known = frozenset().union(*(specifications.symbols(x.value) for x in specified))
    dimensions.check_constraints(args.constraint, known if args.args is None else None)


def _check_names(names: Sequence[str | None]) -> None:
    """Raises a CommandError if not all arguments of a function have names, or two the same."""
    if not any(names):
        return
    if not all(names):
        raise CommandError("some arguments have names; give names to all or to none")
    for name in names:
        if names.count(name) > 1:
            raise CommandError(f"two arguments are called {name!r}")


def call(args: argparse.Namespace) -> tuple[Any, Any, dict[str, Any]]:
    """The function, its arguments, and the options of exporters that follow from them.

    For several functions, each of the first two is a dictionary by their names.
    """
    check(args)
    found = functions(args.functions)
    for text in filter(None, (args.params, args.args)):
        value_of(text)  # What is no name at all is said before anything else.
    specified = list(map(specifications.parsed, args.arg))
    in_order = _specified(found, specified, args.params is not None) if args.args is None else {}
    options: dict[str, Any] = {}
    if args.params is not None:
        options["params"] = value(args.params)
        if options["params"] is None:
            raise FaultError(f"{args.params} gives None in place of parameters")
    of_each: dict[str, dict[str, Any]] = {}
    given = {}
    returned: Any = None if args.args is None else value(args.args)
    for name in found:
        if name in in_order:
            given[name], of_each[name] = _of_specifications(in_order[name])
        else:
            several = len(found) > 1 and isinstance(returned, Mapping)
            given[name], of_each[name] = _of_value(
                args.args, returned[name] if several else returned
            )
    if args.constraint:
        symbolic = [name for name, more in of_each.items() if "polymorphic_shapes" in more]
        if not symbolic:
            raise CommandError("--constraint is for symbolic dimensions, and no argument has one")
        for name in symbolic:
            own = args.constraint
            if returned is None:
                values = [x.value for x in specified if x.function in (None, name)]
                sizes = frozenset().union(*map(specifications.symbols, values))
                own = dimensions.constraints_on(sizes, own)
            known = of_each[name].get("polymorphic_constraints", ())
            of_each[name]["polymorphic_constraints"] = [*known, *own]
    for option in ("polymorphic_shapes", "polymorphic_constraints", "input_names"):
        by_name = {name: more[option] for name, more in of_each.items() if option in more}
        if by_name:
            options[option] = by_name if len(found) > 1 else by_name.popitem()[1]
    if len(found) > 1:
        return found, given, options
    return next(iter(found.values())), next(iter(given.values())), options


def _specified(
    found: Mapping[str, Any], specified: Sequence[Argument], has_params: bool
) -> dict[str, list[Argument]]:
    """The arguments of each function in the order of its parameters.

    Raises:
      CommandError: if a function takes others.
    """
    from lowering.export import calls

    of_each = {}
    for name, fun in found.items():
        chosen = [x for x in specified if x.function in (None, name)]
        of_each[name] = _in_order(chosen, name, callables.positional(fun)[has_params:], has_params)
        try:
            calls.check(fun, [None] * has_params + [x.value for x in of_each[name]], has_params)
        except TypeError as error:
            raise CommandError(str(error)) from error
    return of_each


def _in_order(
    specified: Sequence[Argument], function: str, parameters: Sequence[str], has_params: bool
) -> list[Argument]:
    """The arguments in the order of the parameters that their names choose.

    An argument with another name, or without one, belongs to the parameter at its place; such a
    name becomes the name of the input.
    """
    names = [x.name for x in specified]
    known = [name for name in names if name in parameters]
    if len(known) == len(names):
        found = {x.name: x for x in specified}
        lacking = [x for x in parameters[: len(names)] if x not in found]
        if lacking:
            is_first = not has_params and lacking[0] == parameters[0]
            hint = ", or by --params if the model keeps it" if is_first else ""
            raise CommandError(
                f"{function} takes {lacking[0]!r} in front of {known[-1]!r}; give it, too{hint}"
            )
        return [found[name] for name in parameters[: len(names)]]
    for i, name in enumerate(names):
        if name in parameters and parameters.index(name) != i:
            raise CommandError(
                f"{name!r} is parameter {parameters.index(name) + 1} of {function}, and argument "
                f"{i + 1} of the command; give all arguments by the names of parameters, or in "
                "their order"
            )
    return list(specified)


def _of_specifications(specified: Sequence[Argument]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a function, and the options that follow from them."""
    import jax

    trees = [x.value for x in specified]
    options: dict[str, Any] = {}
    leaves = jax.tree.leaves(trees)
    if not all(dim.isdigit() for leaf in leaves for dim in leaf.dims):
        options["polymorphic_shapes"] = [jax.tree.map(_shape, tree) for tree in trees]
    if any(x.name is not None for x in specified):
        options["input_names"] = [name for x in specified for name in _leaf_names(x)]
    return tuple(jax.tree.map(_struct, tree) for tree in trees), options


def _of_value(text: str, value: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same for arguments from a module, whose shapes may have symbolic dimensions of JAX."""
    from lowering.frontend import polymorphic

    if not isinstance(value, tuple | list):
        raise CommandError(f"{text} is no tuple of arguments but {type(value).__name__}")

    inputs, shapes, constraints = polymorphic.of_structs(tuple(value))
    if shapes is None:
        return inputs, {}
    return inputs, {"polymorphic_shapes": shapes, "polymorphic_constraints": constraints}


def _shape(array: Array) -> str | None:
    """The specification of a shape that has symbolic dimensions."""
    from lowering.frontend import polymorphic

    is_known = all(map(str.isdigit, array.dims))
    return None if is_known else polymorphic.specification(array.dims)


def _struct(array: Array) -> Any:
    import jax

    sizes = [int(dim) if dim.isdigit() else 1 for dim in array.dims]
    if array.dtype in KEYS:
        made = jax.eval_shape(lambda: jax.random.key(0, impl=KEYS[array.dtype]))
        return jax.ShapeDtypeStruct(sizes, made.dtype)
    return jax.ShapeDtypeStruct(sizes, jax.numpy.dtype(array.dtype))


def _leaf_names(argument: Argument) -> list[str]:
    """The names of the arrays of an argument: its own, and the keys to them."""
    import jax

    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(argument.value)[0]]
    return [
        re.sub(
            r"\W+",
            "_",
            "_".join(
                [str(argument.name), *(jax.tree_util.keystr((k,), simple=True) for k in path)]
            ),
            flags=re.ASCII,
        ).strip("_")
        for path in paths
    ]
