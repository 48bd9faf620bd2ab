"""Chooses the part of all cells that a sweep runs, another one each time.

They are the same until this is changed: a cell that has failed runs again once it is mended. Change
it when a sweep is green, so that others have their turn.
"""

# Any text.
TURN = "5a976a7982d70045"
