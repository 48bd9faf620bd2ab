"""Functions that tests in several directories use."""

import collections
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf

import lowering

ROOT = pathlib.Path(lowering.__file__).parents[1]
MODES = ("eager", "graph", "compiled")


def in_mode(fun_tf: Callable[..., Any], mode: str, **options: Any) -> Callable[..., Any]:
    """A function of tensors that runs in a mode; options are those of `tf.function`."""
    if mode == "eager":
        return fun_tf
    return tf.function(fun_tf, autograph=False, jit_compile=mode == "compiled", **options)


def graph_of(
    fun_jax: Callable[..., Any],
    *args: Any,
    compiled: bool = False,
    with_gradient: bool = False,
    **options: Any,
) -> Any:
    """The graph of the conversion of a JAX function.

    Args:
      fun_jax: a JAX function.
      args: arrays, of which only the shapes and dtypes matter, or instances of `tf.TensorSpec`.
      compiled: whether the graph is compiled by XLA.
      with_gradient: an argument of `convert`.
      options: further arguments of `convert`.
    """
    fun_tf = lowering.convert(fun_jax, with_gradient=with_gradient, **options)
    specs = [
        a if isinstance(a, tf.TensorSpec) else tf.TensorSpec(np.shape(a), np.asarray(a).dtype)
        for a in args
    ]
    function = tf.function(fun_tf, autograph=False, jit_compile=compiled)
    return function.get_concrete_function(*specs).graph


def op_types(graph: Any) -> list[str]:
    """The types of the ops that compute something in a graph, not in its functions."""
    ignored = {"Placeholder", "Identity", "NoOp", "PreventGradient"}
    return [op.type for op in graph.get_operations() if op.type not in ignored]


def op_counts(graph: Any) -> collections.Counter[str]:
    """How many ops of each type a graph and its functions have."""
    graph_def = graph.as_graph_def()
    nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
    return collections.Counter(node.op for node in nodes)


def assert_same(actual: Any, expected: Any) -> None:
    """Compares a pytree of tensors with one of arrays: structure, dtypes and values."""
    actual = jax.tree.map(lambda x: x.numpy(), actual)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=1e-6)


def run_alone(module: str, *args: str, **environment: str) -> str:
    """What a module prints in a process of its own; it must not fail.

    Args:
      module: the name of the module.
      args: its arguments.
      environment: variables of the environment that the process sees besides those of this one.
    """
    result = subprocess.run(
        [sys.executable, "-m", module, *args],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout


def run_tests_alone(path: pathlib.Path, name: str = "", **environment: str) -> None:
    """Runs the tests of a file, or those of a name, in a process of their own."""
    printed = run_alone("pytest", "-q", "-n", "0", str(path), "-k", name, **environment)
    summary = printed.strip().splitlines()[-1]
    if "skipped" in summary and "passed" not in summary:
        pytest.skip(summary)


def code_blocks(page: pathlib.Path, language: str = "python") -> list[str]:
    """The blocks of code in a language of a Markdown page, in order."""
    pattern = rf"^( *)```{language}\n(.*?)^ *```"
    found = re.findall(pattern, page.read_text(), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


def run_as_program(
    page: pathlib.Path, directory: pathlib.Path, python: pathlib.Path | None = None
) -> str:
    """Runs the code of a page as one program, as its blocks use names of the former ones.

    Args:
      page: the page.
      directory: the current directory of the program.
      python: the interpreter of an environment with an installed package; by default this one
        runs, with the package of the checkout.

    Returns:
      What it prints.
    """
    result = subprocess.run(
        [python or sys.executable, "-c", "\n".join(code_blocks(page))],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": "" if python else str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def counts(cells: int, equal: int = 0, failed: int = 0, bad: int = 0, passed: int = 0) -> str:
    """The last line of a sweep: `failed` as expected, `bad` and `passed` unexpectedly."""
    return (
        f"{cells} cells: {equal} equal, {failed} expected failures, {bad} unexpected failures, "
        f"{passed} unexpected passes"
    )
