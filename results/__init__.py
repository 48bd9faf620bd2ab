"""Results of sweeps, as files. Reading them needs neither JAX nor TensorFlow.

g3doc/results.md explains the tables and columns.
"""
