"""What the commands of `python -m lowering` have in common, and those that are long."""
