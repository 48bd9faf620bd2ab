"""Passes that leave out what a program does not need: axes, wraps, transposes, unused values."""
