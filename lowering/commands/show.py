"""`show`: the ops of a function's graph, or what each pass makes of its program."""

import argparse
import functools
from collections.abc import Sequence
from typing import Any

from lowering.commands import named
from lowering.commands.mistakes import CommandError, did_you_mean
from lowering.commands.parser import check_target

# The names of passes, whose modules take seconds to import. Tests compare them with the pipeline.
NEEDED = (
    "replace references",
    "expand primitives",
    "make plain",
    "split keys",
    "promote 16-bit floats",
    "split complex numbers",
    "split uint32",
    "bitcast uint32",
    "promote narrow numbers",
)
SKIPPABLE = (
    "fuse functions",
    "eliminate dead code",
    "fuse in 16 bits",
    "fuse uint32 quotients",
    "flatten calls",
    "inline calls",
    "hoist invariants",
    "unroll short scans",
    "contract ahead",
    "widen steps",
    "convert literals",
    "drop unit axes",
    "lift transposes",
    "flush literals",
    "fuse natural ops",
    "fuse ops",
    "tidy",
    "fold norms",
    "keep reduced axes",
    "fuse index ops",
    "fuse mirror pads",
    "fuse moves",
    "fuse late ops",
    "mark operands",
)


def run_show(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    check_target(args.target)
    _check_passes(args.without)
    call = named.call(args)
    from lowering.export.without_64_bits import in_bits_of
    from lowering.passes import pipeline
    from lowering.targets import TARGETS

    with pipeline.without(*args.without):
        if args.passes:
            with in_bits_of(TARGETS[args.target]):
                _show_passes(args, call)
        else:
            _show_ops(args, call)
    return 0


def _check_passes(names: Sequence[str]) -> None:
    """Raises a CommandError for the first name of no pass that can be skipped."""
    for name in names:
        if name in NEEDED:
            raise CommandError(f"{name!r} cannot be skipped: programs need it")
        if name not in SKIPPABLE:
            hint = did_you_mean(name, SKIPPABLE)
            raise CommandError(
                f"no pass is called {name!r}; --without takes {', '.join(SKIPPABLE)}{hint}"
            )


def _show_passes(args: argparse.Namespace, call: Any) -> None:
    import jax

    from lowering.avals import is_key
    from lowering.export.entries import entry
    from lowering.export.samples import symbolic_shapes
    from lowering.passes import changes
    from lowering.passes.program import trace
    from lowering.targets import TARGETS

    fun, inputs, options = call
    target = TARGETS[args.target]
    entry(fun, inputs, target, **options)  # Finds mistakes in the command.
    leaves, tree = jax.tree.flatten(inputs)
    specs, constraints = map(options.get, ("polymorphic_shapes", "polymorphic_constraints"))
    shapes, _ = symbolic_shapes(leaves, tree, specs, constraints or ())
    dtypes = [
        x.dtype if is_key(x.dtype) else jax.dtypes.canonicalize_dtype(x.dtype) for x in leaves
    ]
    structs = map(jax.ShapeDtypeStruct, shapes, dtypes)
    first = [jax.eval_shape(lambda: options["params"])] if "params" in options else []
    avals, tree = jax.tree.flatten(((*first, *jax.tree.unflatten(tree, structs)), {}))
    for line in changes.lines(trace(fun, tree, avals, target).traced, target):
        print(line)


def _show_ops(args: argparse.Namespace, call: Any) -> None:
    from lowering.export import listing, saved_model
    from lowering.export.entries import entry
    from lowering.export.without_64_bits import in_bits_of
    from lowering.targets import CONSUMERS, TARGETS

    fun, inputs, options = call

    def make(target: str) -> Any:
        return entry(fun, inputs, TARGETS[target], **options)

    with in_bits_of(TARGETS[args.target]):
        rows = listing.lines(make(args.target))
    titles = ("op", "dtype", "count", "primitive", "line")
    table = [titles] + [(r.op, r.dtype, str(r.count), r.primitive, r.source) for r in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(titles))]
    for row in table:
        cells = zip(row, widths, strict=True)
        print("  ".join(text.ljust(width) for text, width in cells).rstrip())
    count = sum(row.count for row in rows)
    print(f"{count} op" + ("s" if count != 1 else ""))
    print()
    _show_refusals("saved_model", saved_model.refusals(make("xla")))
    for consumer in CONSUMERS:
        with in_bits_of(TARGETS[consumer]):
            refused = listing.refusals(functools.partial(make, consumer), TARGETS[consumer])
        _show_refusals(consumer, refused)


def _show_refusals(runtime: str, refused: Sequence[str]) -> None:
    print(f"{runtime}: " + ("would refuse" if refused else "no known obstacle"))
    for message in refused:
        print(f"  {message}")
