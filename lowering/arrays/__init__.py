"""Array -> array, in JAX: what decompositions are written in."""
