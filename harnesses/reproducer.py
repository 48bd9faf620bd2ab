"""Writes a program that fails as a script that needs only JAX, NumPy, TensorFlow and lowering."""

import contextlib
import enum
import functools
import inspect
import io
import itertools
import keyword
import string
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.extend.core.primitives
import jax.numpy as jnp
import numpy as np

from harnesses.cell import MODES, Cell, Outcome
from harnesses.variants import Trial, is_array, on_arrays
from lowering import jax_compat, registry, rules  # noqa: F401  Registers the rules.

_SCRIPT = '''"""{about}"""

{imports}

{settings}


{functions}


# The arguments of each run.
runs = [
{runs}]


def run(args):
    converted = lowering.convert(
        program, target={target!r}, polymorphic_shapes={shapes!r}, with_gradient=False
    )
{run}

def comparable(x):
    """A result as an array: keys as their data, and all NaNs the same."""
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    x = np.asarray(x)
    return np.where(x != x, np.nan, x).astype(x.dtype) if (x != x).any() else x


is_same = True
for args in runs:
    expected = jax.tree.leaves(jax.jit(program)(*args))
    for results in run(args):
        for i, (e, a) in enumerate(zip(expected, tf.nest.flatten(results), strict=True)):
            e, a = comparable(e), comparable(a)
            if (e.dtype, e.shape, e.tobytes()) != (a.dtype, a.shape, a.tobytes()):
                is_same = False
                print(f"result {{i}} of JAX:\\n{{e!r}}\\nand of TensorFlow:\\n{{a!r}}")
print("the results are the same" if is_same else "the results are different")
raise SystemExit(0 if is_same else 1)
'''

_FUNCTION = "    function = tf.function(converted, autograph=False, jit_compile={jit_compile})\n"
_CALL = "    return [{function}(*map(tf.constant, args))]\n"
# How a program is run in each mode.
_RUNS = {
    "eager": _CALL.format(function="converted"),
    "graph": _FUNCTION.format(jit_compile=False) + _CALL.format(function="function"),
    "compiled": _FUNCTION.format(jit_compile=True) + _CALL.format(function="function"),
    "runtime": """\
    entry = flat_entry(converted, args, for_consumer=True)
    return [
        [as_logical(x, entry.dtypes[name]) for name, x in zip(entry.outputs, results, strict=True)]
        for results in runtimes.run(TARGET, entry).values()
    ]
""",
}
_OF_RUNTIMES = (
    "from lowering.export import runtimes",
    "from lowering.export.flat import flat_entry",
    "from lowering.boundary.models import as_logical",
)

# The names that a script has already, besides those of Python.
_TAKEN = {"jax", "jnp", "np", "tf", "lowering", "program", "run", "runs", "args"}


class NotWritableError(ValueError):
    """A value in a program has no expression in Python."""


def script(cell: Cell, trial: Trial, about: str) -> str:
    """A script that shows how a program fails.

    It prints results that are different, and its exit code is 1 as long as there are any. An error
    ends the script as it ended the program.

    Args:
      cell: the mode and target in which the program fails.
      trial: the program.
      about: what the script says at its beginning.

    Raises:
      NotWritableError: if something in the program has no expression in Python.
    """
    writer = _Writer()
    writer.function("program", _traced(trial))
    runs = [[writer.value(x) for x in run if is_array(x)] for run in trial.runs]
    settings = [
        f"jax.config.update({name!r}, {writer.value(value)})"
        for name, value in {"jax_enable_x64": True, **trial.settings}.items()
    ]
    if writer.has_devices:
        settings.append(f"jax.config.update('jax_num_cpu_devices', {len(jax.devices('cpu'))})")
    imports = [f"import {name}" for name in sorted({"jax", *writer.modules})]
    imports += ["import jax.numpy as jnp", "import numpy as np", "import tensorflow as tf", ""]
    imports += ["import lowering", *(() if cell.mode in MODES else _OF_RUNTIMES)]
    arrays = map(is_array, trial.runs[0])
    return _SCRIPT.format(
        about=about.replace("\\", "/").replace('"', "'"),
        imports="\n".join(imports),
        settings="\n".join(settings),
        functions="\n\n\n".join(writer.functions),
        runs="".join(
            "".join(["    [\n", *(f"        {x},\n" for x in run), "    ],\n"]) for run in runs
        ),
        target=cell.target,
        shapes=trial.shapes and list(itertools.compress(trial.shapes, arrays)),
        run=_RUNS[cell.mode].replace("TARGET", repr(cell.target)),
    )


def _traced(trial: Trial) -> jex_core.ClosedJaxpr:
    """The program as a function of its arrays; PRNG keys are constants of it."""
    fun, arrays = on_arrays(trial.fun, trial.runs[0])
    shapes = trial.shapes or [None] * len(trial.runs[0])
    scope = jax.export.SymbolicScope()
    structs = [
        jax.ShapeDtypeStruct(
            x.shape if spec is None else jax.export.symbolic_shape(spec, like=x.shape, scope=scope),
            x.dtype,
        )
        for x, spec in zip(
            arrays, itertools.compress(shapes, map(is_array, trial.runs[0])), strict=True
        )
    ]
    with jax_compat.under(trial.settings):
        return jax.make_jaxpr(fun)(*structs)


class _Writer:
    """Writes functions in Python that bind the same primitives as jaxprs.

    Attributes:
      functions: the sources of functions, those that others call before these.
      modules: the modules that they need.
      has_devices: whether they name devices, as those of a mesh.
    """

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.modules: set[str] = set()
        self.has_devices = False
        self._bodies = itertools.count(1)

    def function(self, name: str, jaxpr: Any) -> str:
        """Writes a function with the equations of a jaxpr; returns its name."""
        names = _names()
        known: dict[Any, str] = {}
        parameters = [known.setdefault(v, next(names)) for v in jaxpr.invars]
        lines = []
        for v, x in zip(jaxpr.constvars, getattr(jaxpr, "consts", ()), strict=True):
            known[v] = next(names)
            lines.append(f"{known[v]} = {self.value(x)}")

        def read(atom: Any) -> str:
            if isinstance(atom, jex_core.Literal):
                return self.value(np.asarray(atom.val, atom.aval.dtype))
            return known[atom]

        for eqn in jaxpr.eqns:
            known.update((v, next(names)) for v in eqn.outvars)
            results = ", ".join(known[v] for v in eqn.outvars)
            call, is_list = self._call(eqn, read)
            # A list of one result, or of none, is taken apart, too.
            target = f"[{results}]" if is_list else results
            lines.append(f"{target} = {call}" if eqn.outvars else call)
        lines.append(f"return [{', '.join(map(read, jaxpr.outvars))}]")
        body = "".join(f"    {line}\n" for line in lines).rstrip()
        self.functions.append(f"def {name}({', '.join(parameters)}):\n{body}")
        return name

    def _call(self, eqn: jex_core.JaxprEqn, read: Callable[[Any], str]) -> tuple[str, bool]:
        """An equation as an expression, and whether that gives a list of results."""
        if registry.is_call(eqn):
            called, operands = registry.called(eqn, eqn.invars)
            body = self._body(called)
            function = f"jax.jit({body})" if eqn.primitive.name == "jit" else body
            return f"{function}({', '.join(map(read, operands))})", True
        if eqn.primitive.name == "shard_map":
            return f"{self._mapped(eqn)}({', '.join(map(read, eqn.invars))})", True
        params = [f"{key}={self.value(x)}" for key, x in eqn.params.items()]
        arguments = ", ".join([*map(read, eqn.invars), *params])
        return f"{self.value(eqn.primitive)}.bind({arguments})", eqn.primitive.multiple_results

    def _mapped(self, eqn: jex_core.JaxprEqn) -> str:
        """The function that an equation of `shard_map` calls; only in it are there named axes."""
        params = eqn.params
        options = {
            "mesh": params["mesh"],
            "in_specs": tuple(params["in_specs"]),
            "out_specs": list(params["out_specs"]),
            "axis_names": set(params["newly_manual_axes"]),
            "check_vma": params["check_vma"],
        }
        body = self._body(params["jaxpr"])
        return f"jax.shard_map({body}, {', '.join(self._keywords(options))})"

    def _body(self, jaxpr: Any) -> str:
        return self.function(f"body_{next(self._bodies)}", jaxpr)

    def value(self, x: Any) -> str:
        """An expression for a value.

        Raises:
          NotWritableError: if there is none.
        """
        if x is None or (isinstance(x, bool | int | str) and not isinstance(x, enum.Enum)):
            return repr(x)
        if isinstance(x, float | complex) and not isinstance(x, np.generic):
            return _number(x)
        if isinstance(x, jex_core.ClosedJaxpr | jex_core.Jaxpr):
            return self._jaxpr(x)
        if isinstance(x, np.dtype):
            return f"np.dtype({_dtype(x)})"
        if isinstance(x, type) and issubclass(x, np.generic):
            return _dtype(np.dtype(x))
        if isinstance(x, np.generic):
            return f"{self._array(x)}[()]"
        if isinstance(x, np.ndarray | jax.Array):
            return self._array(x)
        if isinstance(x, jax.Device):
            self.has_devices = True
            return f"jax.devices({x.platform!r})[{jax.devices(x.platform).index(x)}]"
        if isinstance(x, enum.Enum):
            return f"{self.value(type(x))}.{x.name}"
        if (path := _paths().get(id(x))) is not None:
            self.modules.add(path.rpartition(".")[0])
            return path
        if getattr(x, "type", None) is jax.dtypes.prng_key:
            return f"{self._key(jax.random.key(0, impl=jax_compat.key_impl(x).name))}.dtype"
        if isinstance(x, tuple) and hasattr(x, "_asdict"):
            return f"{self.value(type(x))}({', '.join(self._keywords(x._asdict()))})"
        if isinstance(x, set):
            return f"{{{', '.join(sorted(map(self.value, x)))}}}" if x else "set()"
        if isinstance(x, jax.sharding.PartitionSpec):
            kinds = {name: set(getattr(x, name)) for name in ("unreduced", "reduced")}
            some = self._keywords({name: axes for name, axes in kinds.items() if axes})
            return f"jax.sharding.PartitionSpec({', '.join([*map(self.value, x), *some])})"
        if isinstance(x, tuple | list | frozenset):
            inner = ", ".join(map(self.value, x))
            if isinstance(x, tuple):
                return f"({inner},)" if x else "()"
            return f"[{inner}]" if isinstance(x, list) else f"frozenset([{inner}])"
        if isinstance(x, Mapping):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in x.items()) + "}"
        if isinstance(x, jax.tree_util.PyTreeDef):
            skeleton = jax.tree.unflatten(x, [0] * x.num_leaves)
            return f"jax.tree.structure({self.value(skeleton)})"
        if (arguments := _constructed_from(x)) is not None:
            positional, named = arguments
            inner = ", ".join([*map(self.value, positional), *self._keywords(named)])
            return f"{self.value(type(x))}({inner})"
        raise NotWritableError(f"there is no expression for {x!r:.200} ({type(x).__name__})")

    def _keywords(self, values: Mapping[str, Any]) -> list[str]:
        return [f"{key}={self.value(x)}" for key, x in values.items()]

    def _jaxpr(self, jaxpr: Any) -> str:
        specs = ", ".join(self._spec(v.aval) for v in jaxpr.invars)
        made = f"jax.make_jaxpr({self._body(jaxpr)})({specs})"
        return made if isinstance(jaxpr, jex_core.ClosedJaxpr) else f"{made}.jaxpr"

    def _spec(self, aval: Any) -> str:
        if not isinstance(aval, jax.core.ShapedArray):
            raise NotWritableError(f"there is no expression for {aval}")
        dtype = self.value(aval.dtype)
        return f"jax.ShapeDtypeStruct({self.value(tuple(aval.shape))}, {dtype})"

    def _array(self, x: Any) -> str:
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            return self._key(x)
        x = np.asarray(x)
        if x.dtype == object:
            return f"np.array({self.value(x.tolist())}, object)"
        dtype = _dtype(x.dtype)
        if x.size == 0:
            return f"np.zeros({x.shape}, {dtype})"
        text = f"np.array({_elements(_plain(x))}, {dtype})"
        if eval(text, {"np": np, "jnp": jnp}).tobytes() == np.ascontiguousarray(x).tobytes():
            return text
        # There are several NaNs, and numbers that others are rounded to.
        return f"np.frombuffer(bytes.fromhex({x.tobytes().hex()!r}), {dtype}).reshape({x.shape})"

    def _key(self, key: Any) -> str:
        words, impl = np.asarray(jax.random.key_data(key)), str(jax.random.key_impl(key))
        return f"jax.random.wrap_key_data({self._array(words)}, impl={impl!r})"


def _constructed_from(x: Any) -> tuple[Sequence[Any], Mapping[str, Any]] | None:
    """The arguments from which the class of a value makes an equal one, if it has them all.

    They are attributes of the names of the parameters, as dataclasses have them.
    """
    positional: Sequence[Any] = ()
    named = {}
    try:
        for parameter in inspect.signature(type(x)).parameters.values():
            value = getattr(x, parameter.name)
            if parameter.kind == parameter.VAR_POSITIONAL:
                positional = value
            elif parameter.kind != parameter.VAR_KEYWORD:
                named[parameter.name] = value
        is_equal = bool(type(x)(*positional, **named) == x)
    except Exception:  # Whatever a constructor raises, there is no such expression.
        return None
    return (positional, named) if is_equal else None


def _names() -> Iterator[str]:
    """Names for variables: a, b, ..., z, aa, ab, ..."""
    for length in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            name = "".join(letters)
            if name not in _TAKEN and not keyword.iskeyword(name):
                yield name


def _dtype(dtype: np.dtype) -> str:
    """An expression for a dtype."""
    return f"{'np' if hasattr(np, f'{dtype.name}_') or _is_numpy(dtype) else 'jnp'}.{dtype.name}"


def _is_numpy(dtype: np.dtype) -> bool:
    return getattr(np, dtype.name, None) is dtype.type


def _plain(x: np.ndarray) -> Any:
    """The elements of an array as numbers of Python, in lists."""
    if x.dtype.kind != "V":
        return x.tolist()
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64 if jnp.issubdtype(x.dtype, jnp.floating) else np.int64).tolist()


def _elements(x: Any) -> str:
    if isinstance(x, list):
        return f"[{', '.join(map(_elements, x))}]"
    return _number(x) if isinstance(x, float | complex) else repr(x)


def _number(x: float | complex) -> str:
    """An expression for a number, which may be infinite or NaN."""
    if isinstance(x, complex):
        return f"complex({_number(x.real)}, {_number(x.imag)})"
    text = repr(float(x))
    return text.replace("nan", "np.nan").replace("inf", "np.inf")


@functools.cache
def _paths() -> Mapping[int, str]:
    """Where the modules of JAX have an object, by its identity; public names are preferred."""
    found: dict[int, tuple[tuple[bool, int, str], str]] = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "jax" or not _is_at(name, module):
            continue
        for attribute, x in list(vars(module).items()):
            path = f"{name}.{attribute}"
            rank = ("._" in path, len(path), path)
            if id(x) not in found or rank < found[id(x)][0]:
                found[id(x)] = rank, path
    return {key: path for key, (_, path) in found.items()}


def _is_at(name: str, module: Any) -> bool:
    """Whether an expression finds a module, and not a function of its name."""
    found: Any = jax
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found is module


def run(text: str) -> Outcome:
    """Runs a script in this process; returns the outcome, which is a TF error for any error.

    What it prints is dropped, and settings of JAX are put back.
    """
    # In a thread that is under none of the settings of this one, as in a process of its own; there
    # the settings that are read are those that a script changes.
    with contextlib.redirect_stdout(io.StringIO()), futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(_run, text).result()


def _run(text: str) -> Outcome:
    before = dict(jax.config.values)
    try:
        exec(compile(text, "<reproducer>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return Outcome.DIFFERENT if end.code else Outcome.EQUAL
    except Exception:
        return Outcome.TF_ERROR
    finally:
        for name, value in before.items():
            if jax.config.values[name] != value:
                jax.config.update(name, value)
    return Outcome.EQUAL
