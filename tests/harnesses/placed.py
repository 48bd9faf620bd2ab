"""Runs cells on two devices: TensorFlow's second virtual CPU takes the place of a GPU.

JAX has virtual CPUs as well, and is told to use another one than the first.
"""

import jax
import numpy as np
import tensorflow as tf
from jax import lax

from harnesses import cell, devices
from harnesses.cell import MODES, Outcome, Verdict
from harnesses.harness import Harness
from limitations import Limitation, all_limitations

FAILING = Limitation("It fails on this device.", error="TF error", devices={"gpu"})


def main() -> None:
    (cpu,) = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
    jax.config.update("jax_default_device", jax.devices("cpu")[1])
    places: set[str] = set()
    to_numpy, expected_by_jax = cell._numpy, cell.arrays_of

    def recorded(results):
        places.update(x.backing_device[-5:] for x in tf.nest.flatten(results))
        return to_numpy(results)

    def on_the_first(results):
        assert all(x.devices() == {jax.devices("cpu")[0]} for x in jax.tree.leaves(results))
        return expected_by_jax(results)

    cell._numpy, cell.arrays_of = recorded, on_the_first
    harness = Harness("neg", "case", lambda x: lax.neg(x) + 1, (np.float32([1, 2]),))

    # Without a device of this kind there is no result.
    (result,) = cell.run(harness, cell.cells_of(harness, ["eager"], ["tf"], ["gpu"]))
    assert (result.outcome, result.verdict) == (Outcome.TF_ERROR, Verdict.UNEXPECTED)
    assert "TensorFlow finds no device 'gpu' on this machine" in result.message
    assert not places

    devices.PLACES["gpu"] = "/device:CPU:1"
    all_limitations()["neg"] = (FAILING,)
    runner = cell.Runner(harness)
    for mode in MODES:
        for kind, place, verdict in (
            ("cpu", "CPU:0", Verdict.EQUAL),
            ("gpu", "CPU:1", Verdict.STALE),
        ):
            places.clear()
            (of_kind,) = cell.cells_of(harness, [mode], ["tf"], [kind])
            result = runner.run(of_kind)
            assert result.outcome == Outcome.EQUAL, result
            assert (places, result.verdict) == ({place}, verdict), (mode, places, result)


if __name__ == "__main__":
    main()
