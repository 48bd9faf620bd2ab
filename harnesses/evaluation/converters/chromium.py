"""Runtimes in headless Chromium."""

import contextlib
import functools
import pathlib
from collections.abc import Callable, Iterator

from harnesses.browser import Browser
from harnesses.evaluation.converters.converter import Run, by_name
from harnesses.evaluation.program import Program


@functools.cache
def missing() -> str:
    """Why no browser runs here, or an empty string; one is started to find out."""
    try:
        Browser().close()
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return ""


def loads(
    runtime: str, name: str
) -> Callable[[Program, pathlib.Path], contextlib.AbstractContextManager[Run]]:
    """What loads the model of a name in a browser, for one of `harnesses.browser.RUNTIMES`."""

    @contextlib.contextmanager
    def load(_: Program, folder: pathlib.Path) -> Iterator[Run]:
        with Browser() as browser:
            yield by_name(lambda inputs: browser.run(runtime, folder / name, inputs).outputs)

    return load
