"""The commands of the command line, and what they have in common.

They import JAX and TensorFlow when they run, so that help and wrong options take no time.
"""
