"""TensorFlow's optimizer of graphs, which rewrites what all targets make."""
