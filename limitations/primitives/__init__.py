"""The limitations: a module for each primitive or family, named like the module of its rule."""
