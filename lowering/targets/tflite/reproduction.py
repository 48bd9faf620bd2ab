"""How quirks of TF Lite are reproduced: by TensorFlow's converter and LiteRT alone."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.targets.quirk import tf


def converter_of(fun: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """The converter of a function of TensorFlow; it keeps infinities as they are."""
    function = tf.function(fun, input_signature=specs, autograph=False)
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function.get_concrete_function()], tf.Module()
    )
    converter.canonicalizing_inf_as_min_max_float = False
    return converter


def run(fun: Callable[..., Any], *arrays: np.ndarray, specs: Sequence[Any] = ()) -> np.ndarray:
    """The result of a function of TensorFlow in LiteRT."""
    from ai_edge_litert.interpreter import Interpreter

    model = converter_of(fun, specs or [tf.TensorSpec(x.shape, x.dtype) for x in arrays]).convert()
    runner = Interpreter(model_content=model).get_signature_runner()
    names = sorted(runner.get_input_details())
    (result,) = runner(**dict(zip(names, arrays, strict=True))).values()
    return result


def fails(what: str, fun: Callable[..., Any], *arrays: np.ndarray, **options: Any) -> bool:
    """Whether a function cannot be converted or run, with an error that says `what`."""
    try:
        run(fun, *arrays, **options)
    except Exception as error:
        return what in str(error)
    return False
