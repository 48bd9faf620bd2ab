"""Runtimes in headless Chromium."""

import contextlib
import functools
import pathlib
from collections.abc import Iterator

from harnesses.browser import Browser
from harnesses.evaluation.converters.converter import Run, by_name


@functools.cache
def missing() -> str:
    """Why no browser runs here, or an empty string; one is started to find out."""
    try:
        Browser().close()
    except Exception as error:
        return str(error).strip().splitlines()[0]
    return ""


@contextlib.contextmanager
def run_in_chromium(runtime: str, model: pathlib.Path) -> Iterator[Run]:
    """A context with a browser that runs a model by one of `harnesses.browser.RUNTIMES`."""
    with Browser() as browser:
        yield by_name(lambda inputs: browser.run(runtime, model, inputs).outputs)
