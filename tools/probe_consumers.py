"""Finds out which TensorFlow ops LiteRT, ONNX Runtime and TF.js run, by running them.

    python -m tools.probe_consumers
    python -m tools.probe_consumers --consumer onnx --check
    python -m tools.probe_consumers --consumer onnx --op 'Cum*' --dtype '*int64*'
    python -m tools.probe_consumers --consumer onnx --op Bitcast --primitive bitcast_convert_type
    python -m tools.probe_consumers --ranks

Harnesses are run on the target `portable`, and each op that they need is kept with its operands,
for each dtype. A program of that op alone is then converted and run for each consumer; the op is
accepted if the results are those of TensorFlow: for TF.js in Node and, where integers are no larger
than it holds, by webgl in Chromium, which has to be installed. Then ops on tensors of up to eight
axes are run likewise, to find the highest rank that each takes; with --ranks nothing else is. The
tables are written to the folders of the targets; ops and dtypes that are not chosen, or that the
harnesses of --primitive do not have, stay as they are. For ONNX, onnxruntime is asked for its
kernels; with --kernels nothing else is done. With --check nothing is written: the differences from
the tables are printed, and the exit code is 1 if there are any.
"""

import argparse
import collections
import concurrent.futures
import functools
import importlib.metadata
import json
import logging
import multiprocessing
import os
import pathlib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pebble
import tensorflow as tf
import tqdm

from harnesses.browser import Browser
from harnesses.harness import all_harnesses
from harnesses.selection import matches
from lowering.export import runtimes
from lowering.export.entry import Entry
from lowering.export.flat import flat_entry
from lowering.export.tfjs import node
from lowering.targets import TARGETS, Target
from tools import onnx_kernels, rank_examples
from tools.op_examples import Example, examples, of_64_bits

# The packages that decide what a consumer runs.
CONSUMERS = {
    "tflite": ("tensorflow", "tensorflow-cpu", "ai-edge-litert"),
    "onnx": ("onnxruntime",),
    "tfjs": (),
}

# How long one op may take.
_SECONDS = 60

# The dtypes with which the highest rank of an op is looked for; the lowest of these ranks counts.
_OF_RANKS = ("float32", "int32", "bool")
# An op that fails on so many axes fails for another reason.
_FEW_AXES = 3

WRONG = "wrong"
# Functions of numbers of such sizes have nearly all digits.
_MODERATE = (1e-3, 1e3)


def own_ranks(target: Target) -> Mapping[str, int]:
    """The highest ranks of a target itself, without what its parents take."""
    return json.loads((target.folder / "ops.json").read_text())["ranks"]


def write_ops(
    target: Target,
    versions: Mapping[str, str],
    ops: Mapping[str, Sequence[str]],
    refused: Mapping[str, Sequence[str]],
    ranks: Mapping[str, int],
) -> None:
    """Writes which ops a target runs; `versions` are those of its converter and runtime."""
    data = {
        "versions": versions,
        "ops": _sorted(ops),
        "refused": _sorted(refused),
        "ranks": dict(sorted(ranks.items())),
    }
    _write(target.folder / "ops.json", data)


def _write(path: pathlib.Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n")


def _sorted(ops: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {op: sorted(ops[op]) for op in sorted(ops)}


def is_any_accepted(consumer: str, tried: Sequence[Example]) -> bool | None:
    """Whether a consumer accepts one of several examples, and computes no other integers.

    None if it takes none of them.
    """
    answers = [is_accepted(consumer, example) for example in tried]
    return None if set(answers) == {None} else True in answers and WRONG not in answers


def is_accepted(consumer: str, example: Example) -> bool | str | None:
    """Whether a consumer computes what TensorFlow does, in all of its runtimes that have the op.

    `WRONG` if no other example may be accepted: integers differ, or functions of moderate numbers.
    None if it does not take the op.
    """
    pairs = _results(consumer, example)
    if pairs is None or not all(_has_digits(e, a) for e, a in pairs):
        return None
    if not all(_are_near(example, e, a) for e, a in pairs):
        return WRONG
    return all(_are_close(e, a, example.atol) for e, a in pairs)


def _results(consumer: str, example: Example) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Each result of TensorFlow with that of a runtime of a consumer, for all runtimes.

    None if the consumer does not take the op.
    """
    expected = example.results()
    try:
        entry = flat_entry(example.apply, example.inputs)
        results = runtimes.run(consumer, entry)
        if consumer == "tfjs" and not example.has_large_integers:
            results = {**results, "webgl": _by_webgl(entry)}
    except Exception as error:
        logging.getLogger(__name__).debug("%s: %s", example.op, error)
        return None
    return [pair for found in results.values() for pair in zip(expected, found, strict=True)]


def _by_webgl(entry: Entry) -> list[np.ndarray]:
    """The results of TF.js in a browser, whose integers are exact to 24 bits."""
    outputs = _browser().run_entry("tfjs-webgl", entry).outputs
    return [outputs[name] for name in entry.outputs]


@functools.cache
def _browser() -> Browser:
    return Browser()


def _are_close(expected: np.ndarray, actual: np.ndarray, atol: float) -> bool:
    if expected.shape != actual.shape:
        return False
    if expected.dtype.kind in "biu":
        return bool(np.array_equal(expected, actual.astype(expected.dtype)))
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    e, a = expected.astype(wide), actual.astype(wide)
    is_number = ~np.isnan(e)
    return bool(np.allclose(e[is_number], a[is_number], rtol=1e-3, atol=atol))


def _has_digits(expected: np.ndarray, actual: np.ndarray) -> bool:
    """Whether float64 numbers have all of their digits; converters may round them to float32."""
    if expected.dtype != np.float64 or expected.shape != actual.shape:
        return True
    counts = np.isfinite(expected)
    return bool(np.allclose(actual[counts], expected[counts], rtol=1e-12, atol=1e-12))


def _are_near(example: Example, expected: np.ndarray, actual: np.ndarray) -> bool:
    """Whether functions of one array of moderate float32 are near; all other dtypes have to be."""
    if not example.result.is_floating:
        return _are_close(expected, actual, example.atol)
    x = example.operands[0]
    is_function = len(example.operands) == 1 and x.dtype == expected.dtype == np.float32
    if not is_function or not x.shape == expected.shape == actual.shape:
        return True
    least, largest = _MODERATE
    counts = (np.abs(x) >= least) & (np.abs(x) <= largest) & np.isfinite(expected)
    return bool(np.allclose(actual[counts], expected[counts], rtol=2e-5, atol=1e-5))


def probe(
    consumer: str, tried: Sequence[Sequence[Example]], workers: int
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The dtypes that a consumer accepts for each op, and those that it does not take."""
    accepted: dict[str, set[str]] = collections.defaultdict(set)
    refused: dict[str, set[str]] = collections.defaultdict(set)
    wrong: dict[str, set[str]] = collections.defaultdict(set)
    with _pool(workers) as pool:
        futures = {
            pool.schedule(is_any_accepted, (consumer, group), timeout=_SECONDS): group[0]
            for group in tried
        }
        for future in tqdm.tqdm(
            concurrent.futures.as_completed(futures), total=len(futures), desc=consumer
        ):
            example, error = futures[future], future.exception()
            answer = None if error is not None else future.result()
            # One that ends the process or takes too long may have done so for its operands.
            found = wrong if error is not None or answer is False else refused
            (accepted if answer else found)[example.name].add(example.dtype)
    taken = {op: sorted(dtypes - wrong[op]) for op, dtypes in accepted.items()}
    others = {op: sorted(dtypes - accepted[op]) for op, dtypes in refused.items()}
    return {k: v for k, v in taken.items() if v}, {k: v for k, v in others.items() if v}


def _pool(workers: int) -> pebble.ProcessPool:
    # A fork of this process would inherit locks of TensorFlow's threads.
    context = multiprocessing.get_context("spawn")
    return pebble.ProcessPool(workers, 200, _start_worker, context=context)


def probe_ranks(consumer: str, ops: Sequence[str], workers: int) -> dict[str, int]:
    """The highest ranks that a consumer takes, of those of `ops` that do not take all."""
    jobs = [(consumer, op, dtype) for op in ops for dtype in _OF_RANKS]
    with _pool(workers) as pool:
        futures = [pool.schedule(highest_rank, job, timeout=_SECONDS) for job in jobs]
        for _ in tqdm.tqdm(
            concurrent.futures.as_completed(futures), total=len(futures), desc=f"{consumer}: ranks"
        ):
            pass
    found: dict[str, int] = {}
    for (_, op, _), future in zip(jobs, futures, strict=True):
        rank = future.result() if future.exception() is None else None
        if rank is not None and rank < rank_examples.MOST:
            found[op] = min(rank, found.get(op, rank))
    return found


def highest_rank(consumer: str, op: str, dtype: str) -> int | None:
    """The highest rank that a consumer takes in all forms of an op of a dtype.

    None if it does not take the op. Precision does not matter: programs may ask for less.
    """
    for rank in range(rank_examples.MOST, _FEW_AXES - 1, -1):
        if all(_is_taken(consumer, e) for e in rank_examples.rank_examples(op, dtype, rank)):
            return rank
    return None


def _is_taken(consumer: str, example: Example) -> bool:
    """Whether TensorFlow computes an example, and a consumer the same."""
    try:
        pairs = _results(consumer, example)
    except (ValueError, TypeError, tf.errors.OpError):
        return False
    return pairs is not None and all(_are_close(e, a, example.atol) for e, a in pairs)


def _start_worker() -> None:
    logging.disable(logging.CRITICAL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def versions(consumer: str) -> dict[str, str]:
    """The versions of the packages that decide what a consumer runs."""
    found = {}
    for package in CONSUMERS[consumer]:
        try:
            found[package.removesuffix("-cpu")] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if consumer == "tfjs":
        found = json.loads((node.SOURCES / "package.json").read_text())["dependencies"]
    return found


def known_by_tfjs() -> list[str]:
    """The names of the ops that TF.js, installed for Node, has been written for."""
    lists = node.directory() / "node_modules/@tensorflow/tfjs-converter/dist/operations/op_list"
    sources = "".join(path.read_text() for path in lists.glob("*.js"))
    return re.findall(r"'tfOpName': '(\w+)'", sources)


def _update_kernels(is_check: bool) -> int:
    """Writes the table of onnxruntime's kernels, or counts the ops that are different there."""
    found = onnx_kernels.kernels()
    if not is_check:
        onnx_kernels.write(found)
        return 0
    changed = onnx_kernels.differences(found)
    for op in changed:
        print(f"onnx: other kernels of {op}")
    return len(changed)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.probe_consumers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--consumer", nargs="+", choices=CONSUMERS, default=list(CONSUMERS))
    parser.add_argument("--op", action="append", metavar="PATTERN", help="of these ops only")
    parser.add_argument("--dtype", action="append", metavar="PATTERN", help="of these dtypes only")
    parser.add_argument(
        "--primitive", action="append", metavar="PATTERN", help="by these harnesses"
    )
    parser.add_argument("--ranks", action="store_true", help="find the highest ranks alone")
    parser.add_argument("--kernels", action="store_true", help="find the kernels of ONNX alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true", help="print differences, write nothing")
    args = parser.parse_args(argv)
    tf.get_logger().setLevel("ERROR")
    differences = _update_kernels(args.check) if "onnx" in args.consumer else 0
    if args.kernels:
        return 1 if differences else 0
    tried = []
    if not args.ranks:
        with jax.enable_x64(True):
            patterns = args.primitive or ["*"]
            harnesses = [h for h in all_harnesses().values() if matches(h.primitive, patterns)]
            tried = examples(harnesses)

    def is_chosen(op: str, dtype: str) -> bool:
        return matches(op, args.op or ["*"]) and matches(dtype, args.dtype or ["*"])

    if "tfjs" in args.consumer:
        Browser().close()  # Without a browser, TF.js would seem to refuse what runs there.
    for consumer in args.consumer:
        target = TARGETS[consumer]
        wide = of_64_bits(tried) if target.has_64_bits else []
        chosen = [group for group in (*tried, *wide) if is_chosen(group[0].name, group[0].dtype)]
        found, refused = probe(consumer, chosen, args.workers) if chosen else ({}, {})
        of_examples = {(group[0].name, group[0].dtype) for group in chosen}
        of_ranks = [op for op in sorted(rank_examples.OPS) if matches(op, args.op or ["*"])]
        ranks = probe_ranks(consumer, of_ranks, args.workers)
        known_ranks = own_ranks(target)
        ranks |= {op: n for op, n in known_ranks.items() if op not in of_ranks}
        for new, old in ((found, target.ops), (refused, target.refused)):
            for op, dtypes in old.items():
                for dtype in sorted(dtypes):
                    is_left = bool(args.primitive) and (op, dtype) not in of_examples
                    if args.ranks or is_left or not is_chosen(op, dtype):
                        new.setdefault(op, []).append(dtype)
        if not args.check:
            write_ops(target, versions(consumer), found, refused, ranks)
            if consumer == "tfjs" and not args.ranks:
                _write(target.folder / "known.json", sorted(set(known_by_tfjs())))
            continue
        before = {(op, d) for op, dtypes in target.ops.items() for d in dtypes}
        now = {(op, d) for op, dtypes in found.items() for d in dtypes}
        for sign, pairs in (("+", now - before), ("-", before - now)):
            for op, dtype in sorted(pairs):
                print(f"{consumer}: {sign} {op} of {dtype}")
                differences += 1
        for op in sorted(ranks.keys() | known_ranks.keys()):
            old_rank, new_rank = known_ranks.get(op), ranks.get(op)
            if old_rank != new_rank:
                print(f"{consumer}: the highest rank of {op} is {new_rank}, not {old_rank}")
                differences += 1
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
