"""Compares what LiteRT-LM writes with what JAX writes, the most probable token each time."""

import itertools
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lowering.errors import UnsupportedError
from lowering.export import language_models, litert, litertlm_signatures, precision
from lowering.export.descriptions import DECODE
from lowering.export.entry import Entry
from lowering.export.language_models import LOGITS, MASK, POSITIONS, PREFILL, TOKENS
from lowering.export.verification import VerificationError

_PROCESS = pathlib.Path(__file__).with_name("litertlm_process.py")

# How many tokens are written in a verification, and those of the short prompt.
_WRITTEN = 16
_SHORT = 3

# If the two largest logits differ by no more than this part of the largest, either may be chosen.
_TIE = 1e-4

# The results of decode by name, of its inputs by name.
Step = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


class Runner:
    """A file that runs in LiteRT-LM, in a process of its own, until the end of a `with`.

    Args:
      path: the file.
      task: what LiteRT-LM has to do, for the error if it fails.
    """

    def __init__(self, path: pathlib.Path, task: str = "run the file"):
        self._task = task
        self._process = subprocess.Popen(
            [sys.executable, str(_PROCESS), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.communicate()

    def call(self, name: str, **arguments: Any) -> Any:
        """The reply to a request; see `litertlm_process`.

        Raises:
          UnsupportedError: with what LiteRT-LM says, if there is none.
        """
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps([name, arguments]) + "\n")
            self._process.stdin.flush()
            reply = self._process.stdout.readline()
        except BrokenPipeError:
            reply = ""
        if reply:
            return json.loads(reply)
        _, said = self._process.communicate()
        raise UnsupportedError(f"LiteRT-LM failed to {self._task}: {_cause(said)}")


def _cause(said: str) -> str:
    """The lines of a process that has failed which say why."""
    lines = said.splitlines()
    # A panic of code in Rust says why in the line after the one that says where.
    causes = [why for where, why in itertools.pairwise(lines) if " panicked at " in where]
    causes = causes or [line for line in lines if line.startswith("E0")] or lines
    return " ".join(causes[-3:])[-600:]


def verify(
    path: pathlib.Path,
    model: bytes,
    made: Mapping[str, Entry],
    start: int | None,
    stop: Sequence[int],
    *,
    capacity: int,
    vocabulary: int,
    is_quantized: bool,
    has_templates: bool,
) -> None:
    """Compares the texts that follow a short prompt, and one that is longer than a prefill.

    Args:
      path: the file.
      model: the TF Lite model in it.
      made: its entries.
      start: the token that comes before a prompt.
      stop: tokens that end an answer.
      capacity: how many tokens the cache has room for.
      vocabulary: how many tokens there are.
      is_quantized: whether the model is quantized. Its texts differ from JAX's, as those of a model
        in 16 bits do, which JAX rounds more often. Both are compared with the texts of the same
        model in LiteRT's interpreter.
      has_templates: whether the file has templates; then a user says something, too.

    Raises:
      VerificationError: if they differ.
      UnsupportedError: if LiteRT-LM does not run the file.
    """
    entry = made[DECODE]
    is_exact = not is_quantized and not _is_coarse(entry)
    step, by = (_of_jax(entry), "JAX") if is_exact else (_of_model(model), "LiteRT")
    shortest = min(
        litertlm_signatures.inputs(e)[TOKENS].shape[1]
        for name, e in made.items()
        if name.startswith(PREFILL)
    )
    rng = np.random.default_rng(0)
    first = [] if start is None else [start]
    with Runner(path) as runner:
        if has_templates:
            runner.call("converse", text="a")
        for length in {_SHORT, shortest + _SHORT}:
            prompt = rng.integers(vocabulary, size=length).tolist()
            prompt = runner.call("detokenize", token_ids=prompt)
            read = [*first, *runner.call("tokenize", text=prompt)]
            count = min(_WRITTEN, capacity - len(read))
            if count < 1:
                continue
            text = runner.call("generate", prompt=prompt, count=count)
            written, tie = greedy(entry, step, capacity, read, count, stop)
            expected = runner.call("detokenize", token_ids=written)
            certain = runner.call("detokenize", token_ids=written[:tie]).rstrip("\ufffd")
            if text != expected and not (tie < len(written) and text.startswith(certain)):
                raise VerificationError(
                    f"after {prompt!r} LiteRT-LM writes {text!r}, and {by} {expected!r}"
                )


def greedy(
    entry: Entry,
    step: Step,
    capacity: int,
    prompt: Sequence[int],
    count: int,
    stop: Sequence[int] = (),
) -> tuple[list[int], int]:
    """The most probable tokens after a prompt, one after the other, by decode steps alone.

    Args:
      entry: decode.
      step: who runs it.
      capacity: how many tokens the cache has room for.
      prompt: the tokens before.
      count: how many at most.
      stop: tokens that end it; they are left out.

    Returns:
      The tokens, and how many are certain: at the next one, two were about as probable.
    """
    specs = litertlm_signatures.inputs(entry)
    state = {
        name: np.zeros(spec.shape, spec.dtype.as_numpy_dtype)
        for name, spec in specs.items()
        if name.startswith(language_models.CACHE)
    }
    written: list[int] = []
    certain = count
    for i in range(len(prompt) + count - 1):
        positions = np.full(1, i, np.int32)
        token = prompt[i] if i < len(prompt) else written[-1]
        given = {TOKENS: np.full((1, 1), token, np.int32), POSITIONS: positions, **state}
        if MASK in specs:
            dtype = specs[MASK].dtype.as_numpy_dtype
            given[MASK] = language_models.causal_mask(positions, capacity, dtype)
        results = step(given)
        state = {name: results[name] for name in state}
        if i < len(prompt) - 1:
            continue
        logits = results[LOGITS].reshape(-1)
        second, first = np.sort(logits)[-2:]
        if first - second <= _TIE * np.max(np.abs(logits)):
            certain = min(certain, len(written))
        if (token := int(np.argmax(logits))) in stop:
            break
        written.append(token)
    return written, min(certain, len(written))


def _is_coarse(entry: Entry) -> bool:
    """Whether logits are computed of numbers in fewer bits than 32."""
    epsilons = precision.epsilons(entry.reference, entry.samples)
    return epsilons[entry.outputs.index(LOGITS)] > float(np.finfo(np.float32).eps)


def _of_jax(entry: Entry) -> Step:
    def step(given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        results = entry.reference(*(given[spec.name] for spec in entry.specs))
        return dict(zip(entry.outputs, results, strict=True))

    return step


def _of_model(model: bytes) -> Step:
    runner = litert.runner(model, DECODE)
    return lambda given: runner(**given)
