"""Values in the dtypes that a program has, and in those that its caller has."""
