"""`show`: the ops of a function's graph, or what each pass makes of its program."""

import argparse
import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from lowering.commands import named
from lowering.commands.mistakes import CommandError, did_you_mean
from lowering.commands.parser import check_target


def run_show(args: argparse.Namespace) -> int:
    """Runs the command; returns the exit code."""
    check_target(args.target)
    named.check(args)
    from lowering.export.without_64_bits import in_bits_of
    from lowering.passes import pipeline
    from lowering.targets import TARGETS

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(pipeline.without(*args.without))
        except ValueError as error:
            known = [each.name for each in (*pipeline.WHOLE_PROGRAM, *pipeline.PASSES)]
            unknown = [name for name in args.without if name not in known]
            hint = did_you_mean(unknown[0], known) if unknown else ""
            raise CommandError(f"{error}{hint}") from error
        if args.passes:
            stack.enter_context(in_bits_of(TARGETS[args.target]))
            _show_passes(args)
        else:
            _show_ops(args)
    return 0


def _show_passes(args: argparse.Namespace) -> None:
    import jax

    from lowering.avals import is_key
    from lowering.export.entries import entry
    from lowering.export.samples import symbolic_shapes
    from lowering.passes import changes
    from lowering.passes.program import trace
    from lowering.targets import TARGETS

    fun, inputs, options = named.call(args)
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


def _show_ops(args: argparse.Namespace) -> None:
    from lowering.export import listing, saved_model
    from lowering.export.entries import entry
    from lowering.export.without_64_bits import in_bits_of
    from lowering.targets import CONSUMERS, TARGETS

    fun, inputs, options = named.call(args)

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
