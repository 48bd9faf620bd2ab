"""The passes in their order: from the jaxpr that JAX traces to the jaxpr that is lowered."""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.caches import PerJaxpr
from lowering.passes.expansion import expand
from lowering.passes.flattening import flatten_calls
from lowering.passes.fusion.exact import PATTERNS, SEARCHES, mark_operands
from lowering.passes.fusion.functions import fuse_functions
from lowering.passes.fusion.half_floats import fuse_half_floats
from lowering.passes.fusion.index_ops import with_index_ops
from lowering.passes.fusion.means import LATE_SEARCHES, NATURAL_SEARCHES
from lowering.passes.fusion.moves import fuse_moves, with_mirror_pads
from lowering.passes.fusion.natural import LATE_PATTERNS, NATURAL_PATTERNS
from lowering.passes.fusion.norms import fold_norms
from lowering.passes.fusion.patterns import Pattern, Search, fuse
from lowering.passes.fusion.spreading import SPREADING_SEARCHES
from lowering.passes.fusion.uint32_quotients import fuse_uint32_quotients
from lowering.passes.hoisting import contract_ahead, hoist_invariants
from lowering.passes.inlining import FUNCTION_EQUATIONS, inline_calls, outlined
from lowering.passes.jaxprs import Jaxpr, count_calls, is_long
from lowering.passes.legalize.bitcast_uint32 import bitcast_uint32
from lowering.passes.legalize.complex_numbers import split_complex
from lowering.passes.legalize.floats import promote_floats
from lowering.passes.legalize.keys import split_keys
from lowering.passes.legalize.narrow_numbers import promote_narrow
from lowering.passes.legalize.split_uint32 import split_uint32
from lowering.passes.legalize.splitting import Legalization
from lowering.passes.literals import convert_literals, flush_literals
from lowering.passes.plain import plain
from lowering.passes.references import without_references
from lowering.passes.simplify.keepdims import keep_axes
from lowering.passes.simplify.redundant import tidy
from lowering.passes.simplify.transposes import lift_transposes
from lowering.passes.simplify.unit_axes import drop_unit_axes
from lowering.passes.unrolling import unroll_short_scans, widen_steps
from lowering.targets import TF, Mode, Target

_SKIPPED: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar(
    "skipped", default=frozenset()
)


def skipped() -> frozenset[str]:
    """The names of the passes that are skipped now."""
    return _SKIPPED.get()


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a jaxpr is lowered for.

    Attributes:
      mode: how TensorFlow executes the ops that the jaxpr becomes.
      target: who runs them.
      functions: the identities of the jaxprs of which calls stay calls.
      skipped: the names of the passes that are skipped; those that are now by default.
    """

    mode: Mode = Mode.GRAPH
    target: Target = TF
    functions: frozenset[int] = frozenset()
    skipped: frozenset[str] = dataclasses.field(default_factory=skipped)


@dataclasses.dataclass(frozen=True)
class Pass:
    """A step from jaxpr to jaxpr.

    Attributes:
      name: what it does; no other pass has this name.
      run: a function of a jaxpr, and of what `given` names. It returns the jaxpr itself if nothing
        changes.
      given: the attributes of the setting that `run` takes.
      when: whether it is for such a mode and target.
      is_required: whether programs are lowered wrongly, or not at all, without it.
      legal_avals: of an argument or result, and a target, the abstract values of what stands for it
        afterwards; None if the pass leaves them as they are.
    """

    name: str
    run: Callable[..., Any]
    given: tuple[str, ...] = ()
    when: Callable[[Mode, Target], bool] = lambda mode, target: True
    is_required: bool = False
    legal_avals: Callable[[Any, Target], Sequence[Any]] | None = None

    def __call__(self, jaxpr: Jaxpr, setting: Setting) -> Any:
        return self.run(jaxpr, *(getattr(setting, name) for name in self.given))


def _fuse(patterns: Sequence[Pattern], searches: Mapping[str, Search]) -> Callable[[Jaxpr], Jaxpr]:
    return lambda jaxpr: fuse(jaxpr, patterns, searches)


def _in_graph(mode: Mode, target: Target) -> bool:
    return mode is not Mode.EAGER


def _is_natural(mode: Mode, target: Target) -> bool:
    return target.is_natural


def _folds_norms(mode: Mode, target: Target) -> bool:
    return target.is_natural and mode is not Mode.EAGER


def _promotes_half_floats(mode: Mode, target: Target) -> bool:
    return target.emulates("bfloat16")


def _splits_complex(mode: Mode, target: Target) -> bool:
    return target.splits("complex64")


def _splits_uint32(mode: Mode, target: Target) -> bool:
    return target.splits("uint32")


def _lacks_uint32(mode: Mode, target: Target) -> bool:
    return target.emulates("uint32")


def _bitcasts_uint32(mode: Mode, target: Target) -> bool:
    return target.emulates("uint32") and not target.splits("uint32")


def _legalize(
    name: str, run: Legalization, when: Callable[[Mode, Target], bool] = Pass.when
) -> Pass:
    """A pass that gives a program other dtypes."""
    legal_avals = run.legal_avals
    return Pass(name, run, ("target",), when, is_required=True, legal_avals=legal_avals)


# The passes that run once, on a traced function and all jaxprs in it.
WHOLE_PROGRAM = (
    # Calls are found by what JAX traces, so nothing may have changed it.
    Pass("fuse functions", fuse_functions, given=("target",), when=_is_natural),
    Pass("replace references", without_references, is_required=True),
    Pass("eliminate dead code", jax_compat.eliminate_dead_code),
    Pass("expand primitives", expand, is_required=True),
    Pass("make plain", plain, is_required=True),
    _legalize("split keys", split_keys),
    # Functions with constants are found in the dtype to which these are rounded.
    Pass("fuse in 16 bits", fuse_half_floats, when=_promotes_half_floats),
    _legalize("promote 16-bit floats", promote_floats, when=_promotes_half_floats),
    _legalize("split complex numbers", split_complex, when=_splits_complex),
    Pass("fuse uint32 quotients", fuse_uint32_quotients, when=_lacks_uint32),
    _legalize("split uint32", split_uint32, when=_splits_uint32),
    _legalize("bitcast uint32", bitcast_uint32, when=_bitcasts_uint32),
    _legalize("promote narrow numbers", promote_narrow),
)

# The passes that run on each jaxpr before it is lowered: a program, a body, a branch. Some of
# the last ones introduce primitives of our own, which earlier passes do not know.
PASSES = (
    Pass("flatten calls", flatten_calls, when=_in_graph),
    Pass("inline calls", inline_calls, given=("functions",)),
    Pass("hoist invariants", hoist_invariants),
    Pass("unroll short scans", unroll_short_scans, given=("target",)),
    Pass("contract ahead", contract_ahead, given=("mode",)),
    Pass("widen steps", widen_steps, given=("mode", "target")),
    Pass("convert literals", convert_literals),
    Pass("drop unit axes", drop_unit_axes),
    Pass("lift transposes", lift_transposes),
    Pass("flush literals", flush_literals, when=_is_natural),
    Pass(
        "fuse natural ops",
        _fuse(NATURAL_PATTERNS, {**NATURAL_SEARCHES, **SPREADING_SEARCHES}),
        when=_is_natural,
    ),
    Pass("fuse ops", _fuse(PATTERNS, SEARCHES)),
    Pass("tidy", tidy, when=_is_natural),
    Pass("fold norms", fold_norms, when=_folds_norms),
    Pass("keep reduced axes", keep_axes, when=_is_natural),
    Pass("fuse index ops", with_index_ops, when=_is_natural),
    Pass("fuse mirror pads", with_mirror_pads, given=("target",), when=_is_natural),
    Pass("fuse moves", fuse_moves, given=("target",), when=_is_natural),
    Pass("fuse late ops", _fuse(LATE_PATTERNS, LATE_SEARCHES), when=_is_natural),
    Pass("mark operands", mark_operands),
)


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """A context in which the passes of some names are skipped.

    What is lowered in it and outside of it is cached apart.

    Raises:
      ValueError: for a name that no pass has, and for a pass that programs need.
    """
    passes = {each.name: each for each in (*WHOLE_PROGRAM, *PASSES)}
    for name in names:
        if name not in passes:
            raise ValueError(f"no pass is called {name!r}; the passes are {', '.join(passes)}")
        if passes[name].is_required:
            raise ValueError(f"{name!r} cannot be skipped: programs need it")
    token = _SKIPPED.set(_SKIPPED.get() | frozenset(names))
    try:
        yield
    finally:
        _SKIPPED.reset(token)


def steps(passes: Sequence[Pass], jaxpr: Jaxpr, setting: Setting) -> Iterator[tuple[Pass, Any]]:
    """Runs passes one after the other; yields each that is run, and the jaxpr that it returns."""
    for each in passes:
        if each.name not in setting.skipped and each.when(setting.mode, setting.target):
            jaxpr = each(jaxpr, setting)
            yield each, jaxpr


def whole_program(
    jaxpr: jex_core.ClosedJaxpr, target: Target = TF
) -> tuple[jex_core.ClosedJaxpr, frozenset[int]]:
    """Runs the passes for a whole program, and all jaxprs in it, for a target.

    Returns:
      The jaxpr, without references and dead code, plain, in primitives that have rules where
      possible, and in dtypes that the target has; and the identities of the jaxprs that become
      functions.
    """
    jaxpr = _last(WHOLE_PROGRAM, jaxpr, Setting(target=target))
    return jaxpr, functions(jaxpr, target)


def functions(jaxpr: Jaxpr, target: Target) -> frozenset[int]:
    """The identities of the jaxprs in a program that become functions of the graph."""
    return outlined(jaxpr, lambda called: _is_op(called, target))


# A jaxpr with more equations is never an op: no pass fuses so many.
_MOST_FUSED = 40


def _is_op(jaxpr: Jaxpr, target: Target) -> bool:
    """Whether passes reduce a jaxpr to few equations, such as an activation, which is inlined."""
    if not target.is_natural or is_long(jaxpr, _MOST_FUSED):
        return False
    return not is_long(_optimized(jaxpr, Setting(Mode.GRAPH, target)), FUNCTION_EQUATIONS)


def legalized(jaxpr: jex_core.ClosedJaxpr, target: Target) -> jex_core.ClosedJaxpr:
    """Runs the passes that give a traced decomposition the dtypes of the target."""
    legalizing = [each for each in WHOLE_PROGRAM if each.legal_avals is not None]
    return _last(legalizing, jaxpr, Setting(target=target))


def optimized(jaxpr: Jaxpr, mode: Mode, functions: frozenset[int], target: Target = TF) -> Jaxpr:
    """Runs the passes for one jaxpr before it is lowered: a program, a body or a branch.

    The result is kept for as long as the jaxpr lives.

    Args:
      jaxpr: a jaxpr. Those among the parameters of its equations stay as they are; they are
        optimized when they are lowered.
      mode: how TensorFlow executes the ops that the jaxpr becomes.
      functions: the identities of the jaxprs of which calls stay calls, to be functions of the
        graph.
      target: what the jaxpr is lowered for.

    Returns:
      A jaxpr with the same results, of the same primitives and of those that passes introduce.
    """
    # Jaxprs of this package outlive programs, and have nothing to do with the functions of these.
    functions = functions & _called(jaxpr) if functions else functions
    in_graph = mode is not Mode.EAGER
    return _optimized(jaxpr, Setting(mode, target, functions if in_graph else frozenset()))


def forget() -> None:
    """Clears the cache of optimized jaxprs, so that passes that have changed are run."""
    _optimized.clear()


@PerJaxpr
def _called(jaxpr: Jaxpr) -> frozenset[int]:
    """The identities of all jaxprs that a jaxpr calls."""
    return frozenset(count_calls(jaxpr))


@PerJaxpr
def _optimized(jaxpr: Jaxpr, setting: Setting) -> Jaxpr:
    return _last(PASSES, jaxpr, setting)


def _last(passes: Sequence[Pass], jaxpr: Jaxpr, setting: Setting) -> Any:
    for _, after in steps(passes, jaxpr, setting):
        jaxpr = after
    return jaxpr
