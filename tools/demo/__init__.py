"""A page on which the same JAX programs are run by several runtimes of the browser."""
