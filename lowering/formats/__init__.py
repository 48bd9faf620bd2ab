"""Values that TensorFlow has no dtype for: PRNG keys and narrow numbers."""
