"""Values that TensorFlow or a consumer has no dtype for: narrow numbers, and unsigned words."""
