"""Programs of others, which import `jax.experimental.jax2tf`; `test_jax2tf` runs these tests.

They have a process of their own, as importing JAX's module tells JAX of containers of TensorFlow.
"""

import importlib
import sys
import threading

import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import jax2tf

X = np.float32([[0.5, 1.5], [-2.0, 3.0]])


def convert_of_others():
    return importlib.import_module("jax.experimental.jax2tf").convert


def test_all_ways_of_importing():
    import jax.experimental.jax2tf as before

    theirs = {name: getattr(before, name) for name in ("convert", "call_tf", "dtype_of_val")}
    with jax2tf.installed():
        from jax.experimental import jax2tf as first
        from jax.experimental.jax2tf import call_tf, convert

        submodule = importlib.import_module("jax.experimental.jax2tf.jax2tf")
        import jax.experimental.jax2tf as second

        for module in (before, first, second, submodule):
            assert module.convert is jax2tf.convert
            assert module.dtype_of_val is jax2tf.dtype_of_val
        assert convert is jax2tf.convert and call_tf is jax2tf.call_tf
        assert before.call_tf is jax2tf.call_tf
    for name, value in theirs.items():
        assert getattr(before, name) is value
        assert value is not getattr(jax2tf, name)


def test_native_serialization_is_what_others_ask_for():
    with jax2tf.installed():
        converted = convert_of_others()(jnp.sin, native_serialization=True)
    np.testing.assert_allclose(converted(X), np.sin(X), rtol=1e-6)


def test_nested_and_after_an_error():
    theirs = convert_of_others()
    with pytest.raises(KeyError), jax2tf.installed(), jax2tf.installed():
        raise KeyError
    assert convert_of_others() is theirs
    with jax2tf.installed():
        with jax2tf.installed():
            pass
        assert convert_of_others() is jax2tf.convert
    assert convert_of_others() is theirs


def test_for_good():
    theirs = convert_of_others()
    jax2tf.uninstall()
    jax2tf.install()
    jax2tf.install()
    try:
        assert convert_of_others() is jax2tf.convert
        with jax2tf.installed():
            pass
        assert convert_of_others() is jax2tf.convert
    finally:
        jax2tf.uninstall()
    assert convert_of_others() is theirs
    jax2tf.uninstall()
    assert convert_of_others() is theirs


def test_threads():
    theirs = convert_of_others()
    wrong = []

    def work():
        for _ in range(200):
            with jax2tf.installed():
                if convert_of_others() is not jax2tf.convert:
                    wrong.append("inside")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert convert_of_others() is theirs


def test_a_version_of_jax_without_the_module(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("jax.experimental.jax2tf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(jax.experimental, "jax2tf", raising=False)
    real = importlib.import_module

    def without(name, *args):
        if name == "jax.experimental.jax2tf" and name not in sys.modules:
            raise ModuleNotFoundError(name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", without)
    with jax2tf.installed():
        from jax.experimental import jax2tf as found
        from jax.experimental.jax2tf import convert

        assert found.convert is convert is jax2tf.convert
    assert "jax.experimental.jax2tf" not in sys.modules
    assert not hasattr(jax.experimental, "jax2tf")
