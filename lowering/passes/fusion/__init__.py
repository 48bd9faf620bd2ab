"""Passes that put one primitive in the place of several that compute the same."""
