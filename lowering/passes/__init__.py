"""JAX function -> jaxpr -> jaxpr, without TensorFlow."""
