"""Chooses the part of all cells that a sweep runs.

The part stays the same until TURN is changed, so that a cell that has failed runs again once it is
mended. Change it when a sweep is green; then others have their turn.
"""

# Any text.
TURN = "5a976a7982d70045"
