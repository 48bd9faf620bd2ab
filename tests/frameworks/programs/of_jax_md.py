"""JAX MD: molecular dynamics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

POSITIONS = np.stack(np.meshgrid(np.arange(3), np.arange(3)), -1).reshape(9, 2).astype(np.float32)
POSITIONS = 1.2 * POSITIONS + 0.05 * np.random.default_rng(0).normal(size=(9, 2)).astype(np.float32)
SIDE = 3.6


@program
def energy_and_forces():
    jax_md = pytest.importorskip("jax_md")
    displacement, _ = jax_md.space.periodic(SIDE)
    energy = jax_md.energy.lennard_jones_pair(displacement, sigma=1.0, r_cutoff=1.5)
    return Program(
        lambda positions: (energy(positions), jax_md.quantity.force(energy)(positions)),
        (POSITIONS,),
        differentiable=True,
        tolerance=1e-3,
    )


@program
def thermostat():
    jax_md = pytest.importorskip("jax_md")
    displacement, shift = jax_md.space.periodic(SIDE)
    energy = jax_md.energy.soft_sphere_pair(displacement, sigma=1.3)
    init, step = jax_md.simulate.nvt_langevin(energy, shift, dt=1e-2, kT=0.1)

    def simulate(positions, words):
        state = init(jax.random.wrap_key_data(words), positions)
        state = jax.lax.fori_loop(0, 5, lambda _, state: step(state), state)
        return state.position, state.momentum

    return Program(simulate, (POSITIONS, np.uint32([0, 1])), tolerance=1e-3)


@program
def list_of_neighbors():
    jax_md = pytest.importorskip("jax_md")
    displacement, _ = jax_md.space.periodic(SIDE)
    neighbors, energy = jax_md.energy.lennard_jones_neighbor_list(
        displacement, SIDE, r_cutoff=1.5, r_onset=1.2, dr_threshold=0.1
    )
    made = neighbors.allocate(POSITIONS)

    def updated(positions):
        found = made.update(positions)
        return energy(positions, neighbor=found), jnp.sort(found.idx), found.did_buffer_overflow

    return Program(updated, (POSITIONS + np.float32(0.2),), tolerance=1e-3)
