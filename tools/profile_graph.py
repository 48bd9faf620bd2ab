"""Prints where the time of a graph goes: in kernels, by op, and between them.

    python -m tools.profile_graph --model random_normal lstm --target portable

Graphs are those of `tools.bench`, without XLA, on one thread. The first number is CPU time without
a profile; TensorFlow measures the kernels in other runs. All are medians over runs.
"""

import argparse
import collections
import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from harnesses import models
from tools import bench
from tools.terminal import run

_MOST_PRINTED = 6
# Programs beside the models.
_OTHERS: Mapping[str, Callable[[], bench.Program]] = {
    "random_normal": bench.random_program,
    "cnn_gradient": functools.partial(bench.gradient_program, "cnn", 1),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = (*models.NAMES, *_OTHERS)
    parser.add_argument("--model", nargs="+", choices=names, default=["random_normal", "lstm"])
    parser.add_argument("--target", nargs="+", default=["portable"])
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args(argv)
    for name in args.model:
        for target in args.target:
            _report(name, target, args.runs)
    return 0


def _report(name: str, target: str, runs: int) -> None:
    program = _OTHERS[name]() if name in _OTHERS else bench.model_program(name, 1)
    frozen = convert_variables_to_constants_v2(bench.concrete(program, target))
    arrays = map(np.asarray, jax.tree.leaves(program.args))
    feeds = {x.name: array for x, array in zip(frozen.inputs, arrays, strict=True)}
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
    )
    with tf.compat.v1.Session(graph=frozen.graph, config=config) as session:
        session_run = functools.partial(session.run, [x.name for x in frozen.outputs], feeds)
        alone = statistics.median([_seconds(session_run) for _ in range(runs + 2)][2:])
        profiles = [_profile(session_run) for _ in range(runs + 2)][2:]
    kernels = {
        op: statistics.median(sum(profile.get(op, ())) for profile in profiles)
        for op in profiles[0]
    }
    counts = {op: len(seconds) for op, seconds in profiles[0].items()}
    total = sum(kernels.values())
    print(
        f"{program.name}, {target}: {alone * 1e3:.2f} ms, {sum(counts.values())} ops run, "
        f"{total * 1e3:.2f} ms in kernels"
    )
    for op in sorted(kernels, key=kernels.__getitem__, reverse=True)[:_MOST_PRINTED]:
        print(
            f"  {op:24}{counts[op]:6} times {kernels[op] * 1e3:8.3f} ms {kernels[op] / total:6.0%}"
        )


def _seconds(session_run: Callable[..., Any]) -> float:
    start = time.process_time()
    session_run()
    return time.process_time() - start


def _profile(session_run: Callable[..., Any]) -> Mapping[str, Sequence[float]]:
    """The seconds in the kernel of each op that runs, by the type of the op."""
    metadata = tf.compat.v1.RunMetadata()
    options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    session_run(options=options, run_metadata=metadata)
    found: dict[str, list[float]] = collections.defaultdict(list)
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            kind = node.timeline_label.partition(" = ")[2].partition("(")[0]
            found[kind or "others"].append((node.op_end_rel_nanos - node.op_start_rel_nanos) * 1e-9)
    return found


if __name__ == "__main__":
    run(main)
