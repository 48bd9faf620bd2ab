"""The evaluation: which whole models which converters take, and whether the numbers are JAX's."""
