"""Runs tasks in processes of this machine.

If a process dies, does not finish in time or raises an error, each cell of its task becomes a task
of its own. So only the cell that fails counts as hung, or as crashed if its process dies twice.
"""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import queue
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool

import pebble

from harnesses import cell
from harnesses.cell import Outcome, Result
from harnesses.engines import EngineError, Job, Task, worker
from harnesses.harness import Harness


class LocalEngine:
    """An engine that runs tasks in processes of this machine."""

    def __init__(self, workers: int | None = None):
        """Makes an engine of a number of processes, by default one per core."""
        self._workers = workers or worker.cores()

    def run(self, tasks: Iterable[Task], job: Job) -> Generator[list[Result]]:
        """Runs tasks; see `Engine`."""
        waiting = collections.deque(tasks)
        if waiting:
            yield from run_waiting(waiting, job, min(self._workers, len(waiting)))


def run_waiting(
    waiting: collections.deque[Task],
    job: Job,
    workers: int,
    comes_more: Callable[[], bool] = lambda: False,
) -> Iterator[list[Result]]:
    """Runs the tasks that wait in processes of this machine, and yields results as they come.

    Args:
      waiting: the tasks; others may be added meanwhile.
      job: what to run them with.
      workers: how many processes there are.
      comes_more: whether to wait for further tasks when there are none.
    """
    attempts = 0
    deaths: collections.Counter[cell.Cell] = collections.Counter()
    while (waiting or comes_more()) and not job.stop.is_set():
        pool = pebble.ProcessPool(
            workers,
            max_tasks=worker.TASKS_PER_WORKER,
            initializer=worker.start,
            initargs=(job.catalogue, job.runs),
            context=processes(),
        )
        try:
            for results in _run_in_pool(pool, waiting, job, 2 * workers, comes_more, deaths):
                attempts = 0
                yield results
        except RuntimeError as error:  # A worker died outside of any task, and the pool with it.
            attempts += 1
            if attempts == worker.ATTEMPTS:
                raise EngineError("workers die before they run anything") from error
        finally:
            pool.stop()
            pool.join()


def processes() -> multiprocessing.context.BaseContext:
    """How workers are started: if possible as forks of a process that has imported everything.

    That process, the fork server, lives as long as the caller. All workers inherit the environment
    that it was started with, including those that replace others.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__name__])
    with _environment(worker.ENVIRONMENT):
        multiprocessing.forkserver.ensure_running()
    return context


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """A context in which processes are started with further environment variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run_in_pool(
    pool: pebble.ProcessPool,
    waiting: collections.deque[Task],
    job: Job,
    limit: int,
    comes_more: Callable[[], bool],
    deaths: collections.Counter[cell.Cell],
) -> Iterator[list[Result]]:
    """Runs the waiting tasks, of which the pool has at most `limit` at a time.

    `deaths` counts how often processes died on a cell that was alone in its task.
    """
    finished: queue.SimpleQueue[concurrent.futures.Future] = queue.SimpleQueue()
    running: dict[concurrent.futures.Future, Task] = {}
    try:
        while (waiting or running or comes_more()) and not job.stop.is_set():
            while waiting and len(running) < limit:
                future = pool.schedule(worker.run, (waiting[0],), timeout=job.timeout)
                running[future] = waiting.popleft()
                future.add_done_callback(finished.put)
            try:
                done = finished.get(timeout=0.2)
            except queue.Empty:
                continue
            error = done.exception()
            if isinstance(error, BrokenProcessPool):
                raise error
            task = running.pop(done)
            if error is None:
                yield done.result()
            elif len(task) > 1:
                waiting.extendleft([c] for c in task)
            elif isinstance(error, pebble.ProcessExpired) and not deaths[task[0]]:
                deaths[task[0]] += 1
                waiting.appendleft(task)
            else:
                yield _judge_failure(job.harnesses[task[0].harness], task, error)
    finally:
        waiting.extend(running.values())


def _judge_failure(harness: Harness, task: Task, error: BaseException) -> list[Result]:
    """The results of a task that has returned none."""
    if isinstance(error, TimeoutError):
        return worker.hung(harness, task)
    if isinstance(error, pebble.ProcessExpired):
        code = error.exitcode
        names = {-number: number.name for number in signal.Signals}
        how = f"of {names.get(code, f'signal {-code}')}" if code < 0 else f"with exit code {code}"
        return [
            cell.judge(harness, c, Outcome.CRASH, f"the process died {how}, twice") for c in task
        ]
    message = str(error) if isinstance(error, worker.HarnessError) else worker.describe(error)
    return worker.failed(harness, task, message)
