"""The limitations: a module for each primitive or family, with the same name as that of the rule."""
