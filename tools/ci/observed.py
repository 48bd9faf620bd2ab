"""Which sources of the checkout this process executes or opens.

A source is executed when one of its functions is called; what runs when it is imported does not
count, as a process imports it once for all tests. Needs Python 3.12, whose `sys.monitoring` costs
nothing for a function that has been seen.
"""

import os
import pathlib
import sys
from types import CodeType
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
_PREFIX = f"{ROOT}{os.sep}"
# What is seen where a process of Python has been started.
PROCESS = "*process"

_monitoring = getattr(sys, "monitoring", None)
_seen: set[str] = set()
_into: str | None = None


def start(into: str | None = None) -> None:
    """Begins to observe.

    Args:
      into: a file to which the sources are appended as they are seen.

    Raises:
      RuntimeError: before Python 3.12.
    """
    if _monitoring is None:
        raise RuntimeError("which sources tests execute is observed with Python 3.12 or newer")
    global _into
    _into = into
    tool = _monitoring.COVERAGE_ID
    _monitoring.use_tool_id(tool, "lowering")
    _monitoring.register_callback(tool, _monitoring.events.PY_START, _on_start)
    _monitoring.set_events(tool, _monitoring.events.PY_START)
    sys.addaudithook(_on_event)


def restart() -> None:
    """Forgets what has been seen, so that the next test is observed from its beginning."""
    _seen.clear()
    assert _monitoring is not None
    _monitoring.restart_events()


def seen() -> set[str]:
    """The sources seen since the last restart, as paths below the checkout."""
    return set(_seen)


def _on_start(code: CodeType, _: int) -> Any:
    if code.co_name != "<module>":
        _add(code.co_filename)
    return _monitoring.DISABLE if _monitoring is not None else None


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(args[0], str) and not args[0].endswith((".py", ".pyc")):
        _add(args[0])
    elif event == "subprocess.Popen" and "python" in os.path.basename(str(args[0])):
        _seen.add(PROCESS)


def _add(path: str) -> None:
    if not path.startswith(_PREFIX):
        return
    name = path[len(_PREFIX) :]
    if name in _seen or name.startswith("."):
        return
    _seen.add(name)
    if _into is not None:
        # A line at once, as processes end in many ways.
        number = os.open(_into, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(number, f"{name}\n".encode())
        os.close(number)
