"""MJX: the physics of MuJoCo."""

import jax
import numpy as np
import pytest

from tests.frameworks.programs import Program, program
from tools import bench_export_times

# That of the bench, with a motor.
PENDULUM = bench_export_times.PENDULUM.replace(
    "</mujoco>", '<actuator><motor joint="hinge" gear="2"/></actuator></mujoco>'
)
BALL = """
<mujoco>
  <option timestep="0.01" iterations="4"/>
  <worldbody>
    <geom type="plane" size="2 2 0.1"/>
    <body pos="0 0 0.15"><freejoint/><geom type="sphere" size="0.1"/></body>
  </worldbody>
</mujoco>
"""


def _simulation(xml, with_control):
    mujoco = pytest.importorskip("mujoco")
    mjx = pytest.importorskip("mujoco.mjx")
    model = mjx.put_model(mujoco.MjModel.from_xml_string(xml))

    def simulate(velocity, control):
        data = mjx.make_data(model).replace(qvel=velocity)
        if with_control:
            data = data.replace(ctrl=control)

        def step(data, _):
            data = mjx.step(model, data)
            return data, data.qpos

        data, positions = jax.lax.scan(step, data, length=4)
        return positions, data.qvel

    velocity = np.full(model.nv, -0.5, np.float32)
    return Program(simulate, (velocity, np.float32([0.3])), tolerance=1e-3)


@program
def double_pendulum():
    return _simulation(PENDULUM, with_control=True)


@program
def ball_on_a_plane():
    return _simulation(BALL, with_control=False)
