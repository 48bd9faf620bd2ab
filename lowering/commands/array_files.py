"""Files of arrays that a command line names."""

import pathlib
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from lowering.commands.mistakes import CommandError

NO_NAMES = '--inputs needs names of the arguments, as in --arg "x=f32[3]"'


def check(path: pathlib.Path) -> None:
    """Raises a CommandError if a file does not begin as one of `np.save` or `np.savez`."""
    start = b""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(6)
    if not start.startswith((b"\x93NUMPY", b"PK")):
        raise CommandError(f"{path} is no file of arrays (np.save, np.savez)")


def arrays(path: pathlib.Path) -> Any:
    """The array of a file of `np.save`, or those of one of `np.savez` by name.

    Raises:
      CommandError: if the file is neither.
    """
    import numpy as np

    try:
        found = np.load(path)
        return found if isinstance(found, np.ndarray) else dict(found)
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        if str(error).startswith("Object arrays"):
            raise CommandError(f"{path} has objects of Python, not numbers") from error
        # NumPy suggests to unpickle whatever it does not know.
        reason = "" if "pickle" in str(error) else f": {getattr(error, 'strerror', None) or error}"
        raise CommandError(f"{path} is no file of arrays (np.save, np.savez){reason}") from error


def inputs(path: pathlib.Path, args: Any, names: Any, is_symbolic: bool = False) -> Any:
    """The arrays of a file in the place of arguments; PRNG keys are made of key data.

    Args:
      path: the file.
      args: the arguments of the function, or of each of several by name.
      names: the names of their leaves; with several functions those of each, which have the name
        of the function and a slash in front in the file.
      is_symbolic: whether sizes of 1 in the arguments may stand for symbolic ones.
    """
    found = arrays(path)
    if not names:
        raise CommandError(NO_NAMES)
    if not isinstance(args, Mapping):
        by_name = found if isinstance(found, dict) else dict.fromkeys(names[:1], found)
        return _replaced(path, by_name, args, names, is_symbolic)
    made = {}
    for function, own in args.items():
        prefix = f"{function}/"
        of_function = {
            name.removeprefix(prefix): x for name, x in found.items() if name.startswith(prefix)
        }
        made[function] = _replaced(path, of_function, own, names.get(function, ()), is_symbolic)
    return made


def _replaced(
    path: pathlib.Path, found: dict[str, Any], args: Any, names: Sequence[str], is_symbolic: bool
) -> Any:
    import jax

    from lowering import jax_compat
    from lowering.avals import is_key
    from lowering.boundary import models

    if set(found) != set(names):
        raise CommandError(
            f"{path} has the arrays {', '.join(sorted(found))}, not {', '.join(names)}"
        )
    leaves, tree = jax.tree.flatten(args)
    for arg, name in zip(leaves, names, strict=True):
        x, expected = found[name], models.key_data(arg)
        if x.dtype != expected.dtype or x.ndim != len(expected.shape):
            raise CommandError(
                f"{name} of {path} is {x.dtype.name} with {x.ndim} dimensions, not "
                f"{expected.dtype.name} with {len(expected.shape)}"
            )
        sizes = zip(expected.shape, x.shape, strict=True)
        if not all(size == given or (is_symbolic and size == 1) for size, given in sizes):
            raise CommandError(
                f"{name} of {path} has the shape {x.shape}, which does not fit --arg"
            )
        if is_key(arg.dtype):
            found[name] = jax.random.wrap_key_data(x, impl=jax_compat.key_impl(arg.dtype))
    return jax.tree.unflatten(tree, [found[name] for name in names])
