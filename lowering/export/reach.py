"""Finds the branches and loop bodies of a program that its samples do not run.

Verification has not compared these. The program runs once more in JAX, with a mark for each branch
of a `cond` and each body of a `while`. The marks are passed through the program, and a branch or
body that runs sets its own.
"""

import functools
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np

from lowering import jax_compat, registry
from lowering.export.entry import Entry
from lowering.passes.jaxprs import Jaxpr

_log = logging.getLogger("lowering.export")

# How many random samples are tried to find some that reach more.
_TRIES = 12


def sampled(name: str, entry: Entry) -> Iterator[Entry]:
    """The entry, and the entry with further samples that reach branches which its own do not.

    Further ones are for samples that are random, and for programs that have no `while`, which might
    not end. The log names the branches that no sample reaches.

    Args:
      name: what was exported.
      entry: the entry, with the samples that come first.
    """
    yield entry
    try:
        program = _Program(entry)
        reached = program.reached(entry.samples)
    except Exception as error:  # A primitive may run in no other way than its own.
        _log.warning("%s: which branches have run is not known: %s", name, error)
        return
    if entry.draw is not None and not program.has_loops:
        for seed in range(1, _TRIES + 1):
            if all(reached):
                return
            samples = entry.inputs(entry.draw(seed))
            found = program.reached(samples)
            if any(now and not before for now, before in zip(found, reached, strict=True)):
                reached = [now or before for now, before in zip(found, reached, strict=True)]
                yield entry.with_samples(samples)
    places = [p for p, is_reached in zip(program.places, reached, strict=True) if not is_reached]
    if places:
        _log.warning(
            "%s is not compared with JAX where no input leads: %s. Give arrays in args that do",
            name,
            ", ".join(places),
        )


class _Program:
    """A program with a mark for each branch and body of a loop, which is set when that runs.

    Attributes:
      places: for each mark, the branch or body, as messages name it.
      has_loops: whether some marks are those of loops.
    """

    def __init__(self, entry: Entry):
        self.places: list[str] = []
        self.has_loops = False
        # The first mark of an equation, by identity; the program keeps its equations.
        self._marks: dict[int, int] = {}
        self._arguments = entry.reference.arguments
        self._jaxpr = jax.make_jaxpr(entry.reference.fun)(*self._arguments(entry.samples))
        self._look(self._jaxpr)

    def reached(self, samples: Sequence[np.ndarray]) -> list[bool]:
        """For each mark, whether the program sets it for some samples."""
        if not self.places:
            return []
        return list(map(bool, self._run(*jax.tree.leaves(self._arguments(samples)))))

    @functools.cached_property
    def _run(self) -> Any:
        marks = np.zeros(len(self.places), bool)
        return jax.jit(lambda *leaves: self.run(self._jaxpr, jnp.asarray(marks), leaves)[0])

    def _look(self, jaxpr: Jaxpr) -> None:
        """Gives marks to the equations of a jaxpr, and to those that these run."""
        for eqn in jaxpr.eqns:
            if id(eqn) in self._marks:
                continue
            name, line = eqn.primitive.name, jax_compat.source_line(eqn)
            where = f"{name} at {line}" if line else name
            self._marks[id(eqn)] = len(self.places)
            if _is_choice(eqn):
                branches = eqn.params["branches"]
                self.places += [f"branch {i} of {where}" for i in range(len(branches))]
            elif name == "while":
                self.has_loops = True
                self.places.append(f"the body of {where}")
            for inner in _run_by(eqn):
                self._look(inner)

    def run(self, jaxpr: Jaxpr, marks: Any, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The marks after a jaxpr has run, and its results."""
        env = dict(zip(jaxpr.constvars, getattr(jaxpr, "consts", ()), strict=True))
        env.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom):
            return atom.val if isinstance(atom, jex_core.Literal) else env[atom]

        for eqn in jaxpr.eqns:
            marks, results = self._equation(eqn, marks, list(map(read, eqn.invars)))
            env.update(zip(eqn.outvars, results, strict=True))
        return marks, list(map(read, jaxpr.outvars))

    def _equation(self, eqn, marks, operands):
        name, params, mark = eqn.primitive.name, eqn.params, self._marks[id(eqn)]
        if registry.is_call(eqn):
            jaxpr, operands = registry.called(eqn, operands)
            return self.run(jaxpr, marks, operands)
        if _is_choice(eqn):
            index, *rest = operands

            def branch(i, jaxpr):
                return lambda marks, *rest: self.run(jaxpr, marks.at[mark + i].set(True), rest)

            branches = [branch(i, jaxpr) for i, jaxpr in enumerate(params["branches"])]
            return jax.lax.switch(index.astype("int32"), branches, marks, *rest)
        if name == "while":
            return self._while(eqn, marks, mark, operands)
        if name == "scan":
            return self._scan(eqn, marks, operands)
        taken = [x for x, atom in zip(operands, eqn.invars, strict=True) if not _is_literal(atom)]
        invars = [atom for atom in eqn.invars if not _is_literal(atom)]
        alone = jax_compat.closed([], [], invars, eqn.outvars, [eqn])
        return marks, jex_core.jaxpr_as_fun(alone)(*taken)

    def _while(self, eqn, marks, mark, operands):
        params = eqn.params
        of_test, of_body = params["cond_nconsts"], params["body_nconsts"]
        test_consts, body_consts = operands[:of_test], operands[of_test : of_test + of_body]

        def goes_on(state):
            return jex_core.jaxpr_as_fun(params["cond_jaxpr"])(*test_consts, *state)[0]

        def body(carry):
            marks, state = carry
            operands = [*body_consts, *state]
            marks, successors = self.run(params["body_jaxpr"], marks.at[mark].set(True), operands)
            if params["cond_jaxpr"].out_avals[0].shape:
                # Mapped by `vmap`: each element is a loop, and keeps its state once it has ended.
                select = functools.partial(_select, goes_on(state))
                successors = list(map(select, successors, state))
            return marks, successors

        init = marks, operands[of_test + of_body :]
        return jax.lax.while_loop(lambda carry: goes_on(carry[1]).any(), body, init)

    def _scan(self, eqn, marks, operands):
        params = eqn.params
        of_consts, of_carry = jax_compat.scan_counts(params)
        consts, xs = operands[:of_consts], operands[of_consts + of_carry :]

        def body(carry, xs):
            marks, results = self.run(params["jaxpr"], carry[0], [*consts, *carry[1], *xs])
            return (marks, results[:of_carry]), results[of_carry:]

        init = marks, operands[of_consts : of_consts + of_carry]
        (marks, carry), ys = jax.lax.scan(
            body, init, xs, length=params["length"], reverse=params["reverse"]
        )
        return marks, [*carry, *ys]


def _select(which: Any, x: Any, y: Any) -> Any:
    """`x` or `y`, for each element of their leading axes, which are those of `which`."""
    return jnp.where(which.reshape(which.shape + (1,) * (jnp.ndim(x) - which.ndim)), x, y)


def _run_by(eqn: jex_core.JaxprEqn) -> list[Jaxpr]:
    """The jaxprs that an equation runs, as far as they are looked at."""
    name, params = eqn.primitive.name, eqn.params
    if registry.is_call(eqn):
        return [registry.called(eqn, list(eqn.invars))[0]]
    if _is_choice(eqn):
        return list(params["branches"])
    inner = {"while": "body_jaxpr", "scan": "jaxpr"}.get(name)
    return [params[inner]] if inner else []


def _is_choice(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation runs one of several branches, and the data decide which."""
    is_of_platforms = eqn.params.get("branches_platforms") is not None
    return eqn.primitive.name == "cond" and not is_of_platforms


def _is_literal(atom: Any) -> bool:
    return isinstance(atom, jex_core.Literal)
