"""What several tests of exports share: checks of models, and models of TF.js in all backends."""

import pathlib
import tempfile

import numpy as np
import pytest

from harnesses.browser import Browser, chromium
from lowering.export import onnx
from lowering.export.entries import entry
from lowering.export.tfjs import graph_model
from lowering.export.tfjs.node import Node
from lowering.targets import TFJS


def _has_chromium():
    try:
        chromium()
    except FileNotFoundError:
        return False
    return True


@pytest.fixture(autouse=True)
def checked_models(monkeypatch):
    """Each model of ONNX passes ONNX's checker and its strict inference of shapes."""
    converted = onnx.converted

    def checked(*args):
        package, ir = pytest.importorskip("onnx"), pytest.importorskip("onnx_ir")
        model = converted(*args)
        package.checker.check_model(ir.to_proto(model), full_check=True)
        return model

    monkeypatch.setattr(onnx, "converted", checked)


@pytest.fixture(scope="module")
def backends():
    """A function of a model and its inputs: the results by the name of each backend."""
    browser = Browser() if _has_chromium() else None
    with Node() as node:

        def run(model, inputs):
            found = node.run_everywhere(model, inputs)
            if browser is not None:
                found["webgl"] = browser.run("tfjs-webgl", model, inputs).outputs
            return found

        yield run
    if browser is not None:
        browser.close()


@pytest.fixture
def check(backends):
    """Compares a function of arrays with JAX; inputs and outputs of uint32 are int32 of the same
    bits. Floats may differ by `rtol` of themselves or by `of_largest` of the largest in an output.
    The results of backends in `without` are not compared.
    """

    def check(fun, *args, rtol=0.0, of_largest=0.0, without=()):
        made = entry(fun, args, TFJS)
        inputs = {spec.name: x for spec, x in zip(made.specs, made.samples, strict=True)}
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model"
            graph_model.write(made.concrete, model)
            results = backends(model, inputs)
        assert {"cpu", "wasm"} <= results.keys()
        for backend in results.keys() - set(without):
            found = results[backend]
            for name, expected in zip(made.outputs, made.reference(*made.samples), strict=True):
                actual = found[name]
                if expected.dtype.kind == "f":
                    atol = of_largest * np.max(np.abs(expected), initial=0)
                    message = f"{name} by {backend}"
                    np.testing.assert_allclose(actual, expected, rtol, atol, err_msg=message)
                else:
                    same_bits = actual.astype(expected.dtype)
                    np.testing.assert_array_equal(same_bits, expected, f"{name} by {backend}")

    return check
