"""jaxley: neurons with channels."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program


@program
def cell_that_fires():
    jaxley = pytest.importorskip("jaxley")
    channels = pytest.importorskip("jaxley.channels")
    compartment = jaxley.Compartment()
    cell = jaxley.Cell(jaxley.Branch(compartment, ncomp=2), parents=[-1, 0, 0])
    cell.insert(channels.HH())
    cell.branch(0).loc(0.0).record(verbose=False)
    cell.make_trainable("radius", verbose=False)

    def simulate(params, current):
        stimulus = cell.branch(0).loc(0.0).data_stimulate(current, None)
        return jaxley.integrate(cell, params=params, data_stimuli=stimulus, delta_t=0.025)

    current = jnp.full(20, 0.1)
    return Program(simulate, (cell.get_parameters(), np.asarray(current)), tolerance=1e-3)
