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
from tools.demo import digits, language_training, random_numbers, training, writing

SOURCES = pathlib.Path(__file__).parent / "page"

# How many digits of each class the page has, and for how many seeds JAX's numbers: from 0 on.
_OF_EACH_CLASS = 2
_SEEDS = 100

# The beginnings of texts that the page has JAX's for, and for each temperature the seed.
_BEGINNINGS = ("The value of", "If the object", "A function", "class ")
_CHOICES = ((0.0, 0), (0.5, 0))


def write(
    folder: pathlib.Path,
    steps: int = training.STEPS,
    language_steps: int = language_training.STEPS,
) -> None:
    """Trains the models and writes the page.

    Args:
      folder: where the page is written; what an earlier build has left there is replaced.
      steps: for how long the model of digits is trained.
      language_steps: for how long the language model is trained.

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
    language_model = language_training.train(language_steps)
    perplexity = language_training.perplexity(language_model)
    print(f"perplexity of characters kept from training: {perplexity:.2f}")
    _export(folder / "models" / "uniform", writing.draw, {"seed": np.int32(0)})
    _export(folder / "models" / "writing", _write_named, writing.inputs(), language_model)
    results = {
        "versions": {"jax": jax.__version__},
        "accuracy": float(training.accuracy(params, *tested)),
        "tested": len(tested.labels),
        "digits": _digits(params, some),
        "random": _random(),
        "writing": _writing(language_model, perplexity),
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


def _write_named(params: Any, *inputs: Any) -> dict[str, jax.Array]:
    return writing.write(params, *writing.arguments(dict(zip(writing.inputs(), inputs))))


def _writing(params: Any, perplexity: float) -> dict[str, Any]:
    """What the page knows of the language model, and the texts that JAX writes."""
    texts = [
        {
            "beginning": beginning,
            "temperature": temperature,
            "seed": seed,
            "text": writing.text(params, beginning, seed, temperature),
        }
        for beginning in _BEGINNINGS
        for temperature, seed in _CHOICES
    ]
    shapes = {name: x.shape for name, x in writing.inputs().items() if x.ndim == 4}
    return {
        "version": jax.__version__,
        "perplexity": perplexity,
        "parameters": sum(x.size for x in jax.tree.leaves(params)),
        "capacity": writing.CAPACITY,
        "cache": shapes,
        "texts": texts,
    }
