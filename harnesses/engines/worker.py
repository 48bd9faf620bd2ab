"""What a process that runs cells does, whichever engine has started it."""

import os
import pathlib
import warnings
from collections.abc import Mapping

import jax
import tensorflow as tf

from harnesses import cell
from harnesses.cell import Outcome, Result
from harnesses.engines import Catalogue, Task
from harnesses.harness import Harness
from harnesses.runs import Runs, RunsInDirectory

# The environment of workers. They share the cores, so none of them starts threads of its own.
# Libraries read it when they are loaded. Results do not depend on it: what they do depend on, each
# worker sets in JAX itself.
ENVIRONMENT = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
# A worker is replaced after this many tasks. By then it has about 2 GiB of compiled programs, which
# JAX and TensorFlow never free.
TASKS_PER_WORKER = 250
# How many times in a row workers may die without any result before a sweep is given up.
ATTEMPTS = 3

# The harnesses and the cache of results, in a worker.
_harnesses: Mapping[str, Harness] = {}
_runs: Runs | None = None


def start(catalogue: Catalogue, runs: pathlib.Path | None) -> None:
    """Prepares a worker, outside of the time of any cell.

    It makes the settings that results depend on, so that these do not depend on how the worker was
    started.
    """
    global _harnesses, _runs
    os.environ.update(ENVIRONMENT)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    # Harnesses print to standard error, as TensorFlow and XLA do, not into the report.
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for gpu in tf.config.list_physical_devices("GPU"):
        # The first worker would take all its memory, and leave none to the others.
        tf.config.experimental.set_memory_growth(gpu, True)
    _harnesses = catalogue()
    _runs = None if runs is None else RunsInDirectory(runs)


class HarnessError(RuntimeError):
    """A harness itself has raised an error; the message is that of the error.

    Unlike errors of any class, it can be sent to other processes.
    """


def run(task: Task) -> list[Result]:
    """Runs cells of one harness, in a worker that has been prepared.

    Raises:
      HarnessError: if the harness itself raises an error.
    """
    try:
        return list(cell.run(_harnesses[task[0].harness], task, _runs))
    except Exception as error:  # Any error of the harness is its result.
        raise HarnessError(describe(error)) from None


def hung(harness: Harness, task: Task) -> list[Result]:
    """The results of cells that were not ready in time."""
    return [cell.judge(harness, c, Outcome.TIMEOUT, "no result in time") for c in task]


def describe(error: BaseException) -> str:
    """The name of an error, and what it says."""
    return f"{type(error).__name__}: {error}"


def failed(harness: Harness, task: Task, message: str) -> list[Result]:
    """The results of cells whose harness itself raised an error."""
    return [cell.judge(harness, c, Outcome.HARNESS_ERROR, message) for c in task]


def cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
