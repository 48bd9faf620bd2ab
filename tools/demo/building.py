"""Writes the page of the demo: its models, JAX's own results, the runtimes and the scripts."""

import functools
import json
import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from harnesses.browser import ONNX_OPSET, packages
from lowering import export
from tools.demo import digits, random_numbers, training

SOURCES = pathlib.Path(__file__).parent / "page"

# How many digits of each class the page has, and for how many seeds JAX's numbers: from 0 on.
_OF_EACH_CLASS = 2
_SEEDS = 100


def write(folder: pathlib.Path, steps: int = training.STEPS) -> None:
    """Trains the model and writes the page.

    Args:
      folder: where the page is written; what an earlier build has left there is replaced.
      steps: for how long the model is trained.

    Raises:
      VerificationError: if an exported model does not compute what JAX computes.
    """
    packages.install()
    for name in ("lib", "models"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    params = training.train(steps)
    _, tested = training.load()
    print(f"accuracy on digits kept from training: {training.accuracy(params, *tested):.1%}")

    some = _some_of_each_class(tested)
    drawing = np.asarray(training.as_drawing(some.images[0]))
    _export(folder / "models" / "digits", digits.predict, {"drawing": drawing}, params)
    _export(folder / "models" / "random", random_numbers.draw, {"seed": np.int32(0)})
    results = {
        "versions": {"jax": jax.__version__},
        "accuracy": float(training.accuracy(params, *tested)),
        "tested": len(tested.labels),
        "digits": _digits(params, some),
        "random": _random(),
    }
    (folder / "models" / "jax.json").write_text(json.dumps(results))

    for source in (*SOURCES.iterdir(), packages.PAGE / "runtimes.js"):
        shutil.copy(source, folder / source.name)
    for name in packages.LIBRARIES:
        path = folder / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(packages.library(name), path)


def _export(
    folder: pathlib.Path, fun: Callable[..., Any], inputs: Mapping[str, Any], params: Any = None
) -> None:
    """Writes a function for each runtime; all three models are verified with the given inputs."""
    args = tuple(inputs.values())
    shapes = jax.eval_shape(fun, *(() if params is None else (params,)), *args)
    options = {"params": params, "input_names": list(inputs), "output_names": sorted(shapes)}
    export.to_tfjs(fun, args, folder / "tfjs", **options)
    (folder / "model.tflite").write_bytes(export.to_tflite(fun, args, **options))
    (folder / "model.onnx").write_bytes(export.to_onnx(fun, args, opset=ONNX_OPSET, **options))


def _some_of_each_class(tested: training.Digits) -> training.Digits:
    chosen = np.concatenate(
        [np.flatnonzero(tested.labels == label)[:_OF_EACH_CLASS] for label in range(10)]
    )
    return training.Digits(tested.images[chosen], tested.labels[chosen])


def _digits(params: Any, some: training.Digits) -> list[dict[str, Any]]:
    """Digits as JSON data, with the probabilities that JAX computes."""
    predict = jax.jit(functools.partial(digits.predict, params))
    return [
        {
            "label": int(label),
            "image": image.astype(int).ravel().tolist(),
            "probabilities": predict(training.as_drawing(image))["probabilities"].tolist(),
        }
        for image, label in zip(some.images, some.labels, strict=True)
    ]


def _random() -> list[dict[str, list[float]]]:
    """For each seed the numbers that JAX draws."""
    draw = jax.jit(random_numbers.draw)
    drawn = [draw(np.int32(seed)) for seed in range(_SEEDS)]
    return [{name: x.tolist() for name, x in numbers.items()} for numbers in drawn]
