"""Matrix decompositions written in JAX, used where TensorFlow has no op or a worse one.

Each is a loop of operations on the whole matrix. Masks select the part that a step works on,
because a slice whose size changes from step to step has no static shape. `batched` applies a
decomposition to a batch of matrices. None of them raises an error: if an operand has NaN, the
results have NaN.
"""
