"""A program in the dtypes that its target computes with."""
