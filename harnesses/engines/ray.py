"""Runs tasks on a cluster, by Ray.

An actor has some of the cores of a node, and runs tasks in as many processes, as the local engine
does: they are forks of one process that has imported everything, so that the imports are paid once
for all of them, and not again when a process is replaced. If a process dies, that is the fault of
its cell. An actor gets batches of tasks, the next one before it has finished the last, and sends
results as it has them. If it is lost, so is the work that is under way, and nothing else: other
actors run its tasks.
"""

import collections
import contextlib
import dataclasses
import os
import pathlib
import socket
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

import harnesses
from harnesses.cell import Result
from harnesses.engines import Catalogue, EngineError, Job, Task, local, worker

_ROOT = pathlib.Path(harnesses.__file__).parents[1]
# A batch gets no further task once it takes this many seconds, or has this many tasks.
_BATCH_SECONDS = 2.0
_BATCH = 16
# A worker gets its next batch when it has fewer tasks than these for each of its processes.
_AHEAD = 8
# An actor has at most as many processes: few, so that a node soon has cores for it.
_PROCESSES = 4
# A worker that sends nothing counts as lost after the time in which so many cells hang, as a task
# may do, then a cell of it, and that cell again if its process dies; and so many seconds.
_HANGING = 3
_PATIENCE = 60.0
# How long a cluster may take to answer, in seconds. Ray itself would wait for minutes.
_ANSWER = 10.0

Item = TypeVar("Item")


def take_batch(
    waiting: collections.deque[Item], workers: int, seconds: Callable[[Item], float]
) -> list[Item]:
    """Takes the next batch from the tasks that wait, at least one.

    At the end of a sweep batches are smaller, so that all processes end together.

    Args:
      waiting: the tasks that wait, the longest first.
      workers: how many processes run tasks.
      seconds: how long a task is expected to take.
    """
    size = min(max(len(waiting) // (2 * workers), 1), _BATCH)
    batch: list[Item] = []
    expected = 0.0
    while waiting and len(batch) < size and expected < _BATCH_SECONDS:
        batch.append(waiting.popleft())
        expected += seconds(batch[-1])
    return batch


class _Worker:
    """An actor: processes of a node that run tasks."""

    def __init__(
        self, catalogue: Catalogue, runs: pathlib.Path | None, timeout: float, processes: int
    ):
        self._waiting: collections.deque[Task] = collections.deque()
        self._processes = processes
        self._job = Job(catalogue, catalogue(), runs, lambda task: 0.0, timeout, threading.Event())

    def is_ready(self) -> bool:
        """Answers when the fork server has imported everything, as it makes no process before."""
        context: Any = local.processes()  # Its type says nothing of processes.
        process = context.Process(target=os.getpid)
        process.start()
        process.join()
        return True

    def give(self, tasks: list[Task]) -> None:
        """Adds tasks to those that wait."""
        self._waiting.extend(tasks)

    def results(self) -> Iterator[list[Result]]:
        """Yields the results of all tasks that it is given, without end."""
        yield from local.run_waiting(
            self._waiting, self._job, self._processes, comes_more=lambda: True
        )


@dataclasses.dataclass
class _Given:
    """The tasks that a worker has been given.

    Attributes:
      actor: the worker.
      processes: how many processes it has.
      tasks: those without results yet.
      since: when it was first given something, or its last results came.
    """

    actor: Any
    processes: int
    tasks: list[Task] = dataclasses.field(default_factory=list)
    since: float = 0.0


class RayEngine:
    """An engine that runs tasks on the nodes of a Ray cluster."""

    def __init__(self, address: str | None = None, workers: int | None = None):
        """Makes an engine.

        Args:
          address: the address of a cluster; without one, Ray is started on this machine and ends
            with the sweep.
          workers: how many processes run tasks; one per core of the cluster by default.
        """
        self._address = address
        self._workers = workers

    def run(self, tasks: Iterable[Task], job: Job) -> Generator[list[Result]]:
        """Runs tasks; see `Engine`."""
        ray = _import_ray()
        waiting = collections.deque(tasks)
        if not waiting:
            return
        with _connected(ray, self._address, self._workers):
            cores = [int(n["Resources"].get("CPU", 0)) for n in ray.nodes() if n["Alive"]]
            limit = min(self._workers or sum(cores), len(waiting))
            run = _Run(ray, job, waiting, processes_of_actors(cores, limit))
            try:
                yield from run.results()
            except (ray.exceptions.RayError, ConnectionError) as error:
                raise EngineError(f"the cluster is lost: {_in_a_line(error)}") from error


def processes_of_actors(cores: Iterable[int], limit: int) -> list[int]:
    """How many processes each actor has.

    Args:
      cores: the number of cores of each node.
      limit: how many processes there are at most.
    """
    found = []
    for count in cores:
        while count and limit:
            found.append(min(count, limit, _PROCESSES))
            count -= found[-1]
            limit -= found[-1]
    return found


class _Run:
    """A run of tasks on a cluster that is connected."""

    def __init__(self, ray: Any, job: Job, waiting: collections.deque[Task], sizes: list[int]):
        self._ray = ray
        self._job = job
        self._waiting = waiting
        self._sizes = sizes
        # Workers that import, by what says that they have; and those at work, by what they yield.
        self._starting: dict[Any, _Given] = {}
        self._working: dict[Any, _Given] = {}
        # How often workers were lost since results came.
        self._losses = 0

    def results(self) -> Iterator[list[Result]]:
        """Yields the results of tasks as they come."""
        for processes in self._sizes:
            self._start(processes)
        while not self._job.stop.is_set() and (
            self._waiting or any(given.tasks for given in self._working.values())
        ):
            self._deal()
            ready, _ = self._ray.wait([*self._working, *self._starting], timeout=0.2)
            for answer in ready:
                if answer in self._starting:
                    self._welcome(answer)
                else:
                    yield from self._receive(answer)
            limit = _HANGING * self._job.timeout + _PATIENCE
            for answers, given in list(self._working.items()):
                if given.tasks and time.monotonic() - given.since > limit:
                    self._lose(self._working.pop(answers))

    def _start(self, processes: int) -> None:
        """Starts a worker."""
        # It has a thread for each of its methods.
        remote = self._ray.remote(_Worker).options(num_cpus=processes, max_concurrency=3)
        actor = remote.remote(self._job.catalogue, self._job.runs, self._job.timeout, processes)
        self._starting[actor.is_ready.remote()] = _Given(actor, processes)

    def _welcome(self, answer: Any) -> None:
        """Asks a worker that has started for results; starts another one if it has not."""
        given = self._starting.pop(answer)
        try:
            self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            self._lose(given, error)
        else:
            answers = given.actor.results.options(num_returns="streaming").remote()
            self._working[answers] = given

    def _deal(self) -> None:
        """Gives batches to workers, so that each process has a task to go on with."""
        for given in self._working.values():
            while self._waiting and len(given.tasks) < _AHEAD * given.processes:
                tasks = take_batch(self._waiting, sum(self._sizes), self._job.expected)
                given.since = given.since if given.tasks else time.monotonic()
                given.tasks += tasks
                given.actor.give.remote(tasks)

    def _receive(self, answers: Any) -> Iterator[list[Result]]:
        """Takes the next results of a worker."""
        given = self._working[answers]
        try:
            results = self._ray.get(next(answers))
        except (StopIteration, self._ray.exceptions.RayError) as error:
            self._lose(self._working.pop(answers), error)
            return
        self._losses = 0
        given.since = time.monotonic()
        done = {result.cell for result in results}
        left = ([c for c in task if c not in done] for task in given.tasks)
        given.tasks = [task for task in left if task]
        yield results

    def _lose(self, given: _Given, error: BaseException | None = None) -> None:
        """Replaces a worker that was lost; others may run its tasks meanwhile."""
        self._losses += 1
        if self._losses >= worker.ATTEMPTS * len(self._sizes):
            raise EngineError("workers die before they run anything") from error
        # If it still lives, it has cores that the next one needs.
        self._ray.kill(given.actor)
        self._waiting.extendleft(reversed(given.tasks))
        self._start(given.processes)


@contextlib.contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """A context in which this process is connected to a cluster.

    Workers get the sources that this process has imported.

    Raises:
      EngineError: if there is no cluster at the address.
    """
    if address:
        _check(address)
    names = {name.partition(".")[0] for name in sys.modules}
    sources = [str(_ROOT / name) for name in sorted(names) if (_ROOT / name).is_dir()]
    try:
        ray.init(
            address=address or "local",
            num_cpus=None if address else workers or worker.cores(),
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={
                "py_modules": sources,
                "env_vars": worker.ENVIRONMENT,
                "excludes": ["__pycache__", "node_modules"],
            },
        )
    except (ValueError, RuntimeError, OSError, ray.exceptions.RayError) as error:
        where = f"find a cluster at {address!r}" if address else "start"
        raise EngineError(f"Ray cannot {where}: {_in_a_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _check(address: str) -> None:
    """Raises an error if nothing answers at the host and port of an address, if it has them."""
    try:
        place = urllib.parse.urlsplit(address if "://" in address else f"//{address}")
        if place.hostname and place.port:
            socket.create_connection((place.hostname, place.port), _ANSWER).close()
    except (OSError, ValueError) as error:
        raise EngineError(f"there is no cluster at {address!r}: {error}") from error


def _in_a_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray gives the workers of a node that it starts a niceness of 15. With that, they do not even
    # start while other processes use all cores.
    os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        import ray
    except ImportError as error:
        raise EngineError("sweeps on a cluster need Ray: pip install '.[ray]'") from error
    return ray
