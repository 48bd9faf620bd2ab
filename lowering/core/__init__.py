"""The walk over a jaxpr: one rule for each equation."""
