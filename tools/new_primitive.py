"""Writes skeletons of the files of a primitive: its rule, harnesses and limitations.

    python -m tools.new_primitive population_count

They can be run, but the rule refuses and the harnesses fail until they are filled in, as
CONTRIBUTING.md describes.
"""

import argparse
import difflib
import keyword
import pathlib
import sys
from collections.abc import Sequence

import jax

from lowering import jax_compat, registry, rules  # noqa: F401  Registers the rules.
from lowering.targets import TF

ROOT = pathlib.Path(__file__).parents[1]

_RULE = '''"""What {name} does, in a phrase."""

from lowering.registry import rule


@rule("{name}")
def {identifier}(ctx, *operands, **params):
    """How TensorFlow differs from JAX here, and how the rule makes up for it."""
    ctx.unsupported("its rule has not been written")
'''

_HARNESSES = '''"""What {name} does, in a phrase."""

from harnesses.arguments import NUMBER, name, random
from harnesses.compare import exact
from harnesses.harness import Harness, harnesses


def _fun(x):
    raise NotImplementedError("a JAX function of x that binds {name}")


@harnesses
def {identifier}():
    for dtype in NUMBER:
        yield Harness("{name}", name(dtype), _fun, (random((4, 3), dtype),), exact)
'''

_LIMITATIONS = '''"""Limitations of {name}; without any, delete this file."""

from collections.abc import Sequence

from limitations import Limitation

LIMITATIONS: dict[str, Sequence[Limitation]] = {{"{name}": ()}}
'''

# The text of each skeleton, by room.
FILES = {
    "lowering/rules": _RULE,
    "harnesses/primitives": _HARNESSES,
    "limitations/primitives": _LIMITATIONS,
}


def write_skeletons(name: str, root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Writes the files of a primitive and returns their paths.

    Args:
      name: the name of a JAX primitive, such as "scatter-add".
      root: the checkout.

    Raises:
      ValueError: if JAX has no such primitive, it is lowered already, or one of the files exists.
    """
    known = jax_compat.cpu_primitives()
    if name not in known:
        similar = difflib.get_close_matches(name, known)
        hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
        raise ValueError(f"JAX {jax.__version__} lowers no primitive {name!r} for the CPU{hint}")
    if name in registry.primitives(TF):
        raise ValueError(
            f"{name} has a rule already; see @rule or @decomposition in lowering/rules"
        )
    stem = name.replace("-", "_")
    paths = {root / room / f"{stem}.py": text for room, text in FILES.items()}
    for path in paths:
        if path.exists():
            raise ValueError(f"{path.relative_to(root)} exists already")
    identifier = f"{stem}_" if keyword.iskeyword(stem) else stem
    for path, text in paths.items():
        path.write_text(text.format(name=name, identifier=identifier))
    return list(paths)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.new_primitive",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="name of a JAX primitive, as jax.make_jaxpr prints it")
    args = parser.parse_args(argv)
    try:
        paths = write_skeletons(args.name)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path in paths:
        print(path.relative_to(ROOT))
    print(f"next: fill them in, then `make sweep ARGS='--primitive {args.name}'`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
