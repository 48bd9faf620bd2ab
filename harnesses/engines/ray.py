"""Runs tasks on a cluster, by Ray.

Each core of the cluster has a worker: a process that imports everything once, and then gets batches
of tasks, one at a time. It sends the results of each task as soon as it has them. If it dies or
does not answer in time, that is the fault of the task that it was running, or of the machine: the
cells of this task are tried one by one, and one whose workers die twice counts as crashed. The
other tasks of the batch are run by other workers.
"""

import collections
import contextlib
import dataclasses
import os
import pathlib
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

import harnesses
from harnesses import cell
from harnesses.cell import Outcome, Result
from harnesses.engines import Catalogue, Job, Task, worker

_ROOT = pathlib.Path(harnesses.__file__).parents[1]
# A batch gets no further task once it takes this many seconds, or has this many tasks.
_BATCH_SECONDS = 2.0
_BATCH = 16

Item = TypeVar("Item")


def take_batch(
    waiting: collections.deque[Item], workers: int, seconds: Callable[[Item], float]
) -> list[Item]:
    """Takes the tasks of a worker's next batch from those that wait, at least one.

    At the end of a sweep batches are smaller, so that all workers end together.

    Args:
      waiting: the tasks that wait, the longest first.
      workers: how many workers there are.
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
    """A process of the cluster that runs cells."""

    def __init__(self, catalogue: Catalogue, runs: pathlib.Path | None):
        worker.start(catalogue, runs)

    def is_ready(self) -> bool:
        """Answers when everything has been imported."""
        return True

    def run(self, batch: list[Task]) -> Iterator[list[Result] | str]:
        """Yields for each task its results, or the error of its harness."""
        for task in batch:
            try:
                yield worker.run(task)
            except Exception as error:  # The other tasks of the batch go on.
                yield worker.describe(error)


@dataclasses.dataclass
class _Batch:
    """Tasks that a worker has.

    Attributes:
      actor: the worker.
      answers: what it yields.
      tasks: those without results yet, the one that is under way first.
      since: when that one began.
    """

    actor: Any
    answers: Any
    tasks: collections.deque[Task]
    since: float


class RayEngine:
    """An engine that runs tasks on the workers of a Ray cluster."""

    def __init__(self, address: str | None = None, workers: int | None = None):
        """Makes an engine.

        Args:
          address: the address of a cluster; without one, Ray is started on this machine and ends
            with the sweep.
          workers: how many workers there are; one per core of the cluster by default.
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
            cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
            count = min(self._workers or cores, cores, len(waiting))
            yield from _Run(ray, job, waiting, count).results()


class _Run:
    """A run of tasks on a cluster that is connected."""

    def __init__(self, ray: Any, job: Job, waiting: collections.deque[Task], count: int):
        self._ray = ray
        self._job = job
        self._waiting = waiting
        self._count = count
        # Workers that import, that have nothing to do, and that run a batch.
        self._starting: dict[Any, Any] = {}
        self._idle: list[Any] = []
        self._batches: dict[Any, _Batch] = {}
        self._done: collections.Counter[Any] = collections.Counter()
        # How often workers died on a cell that was alone in its task.
        self._deaths: collections.Counter[cell.Cell] = collections.Counter()
        self._failed_starts = 0

    def results(self) -> Iterator[list[Result]]:
        """Yields the results of tasks as they come."""
        for _ in range(self._count):
            self._start()
        while (self._waiting or self._batches) and not self._job.stop.is_set():
            while self._waiting and self._idle:
                self._send(self._idle.pop())
            ready, _ = self._ray.wait([*self._batches, *self._starting], timeout=0.2)
            for answer in ready:
                if answer in self._starting:
                    self._welcome(answer)
                else:
                    yield from self._receive(self._batches[answer])
            for batch in list(self._batches.values()):
                if time.monotonic() - batch.since > self._job.timeout:
                    self._ray.kill(batch.actor)
                    yield from self._lose(batch, is_hung=True)

    def _start(self) -> None:
        """Starts a worker."""
        remote = self._ray.remote(_Worker).options(num_cpus=1)
        actor = remote.remote(self._job.catalogue, self._job.runs)
        self._starting[actor.is_ready.remote()] = actor

    def _welcome(self, answer: Any) -> None:
        """Gives work to a worker that has started; starts another one if it has not."""
        actor = self._starting.pop(answer)
        try:
            self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            self._failed_starts += 1
            if self._failed_starts >= worker.ATTEMPTS * self._count:
                raise RuntimeError("workers die before they run anything") from error
            self._start()
        else:
            self._failed_starts = 0
            self._idle.append(actor)

    def _send(self, actor: Any) -> None:
        """Gives a worker its next batch."""
        tasks = take_batch(self._waiting, self._count, self._job.expected)
        answers = actor.run.options(num_returns="streaming").remote(tasks)
        batch = _Batch(actor, answers, collections.deque(tasks), time.monotonic())
        self._batches[answers] = batch

    def _receive(self, batch: _Batch) -> Iterator[list[Result]]:
        """Takes the next answer of a worker."""
        try:
            answer = self._ray.get(next(batch.answers))
        except StopIteration:
            self._end(batch)
            return
        except self._ray.exceptions.RayError:
            yield from self._lose(batch)
            return
        batch.since = time.monotonic()
        self._done[batch.actor] += 1
        task = batch.tasks.popleft()
        if isinstance(answer, str):
            yield worker.failed(self._job.harnesses[task[0].harness], task, answer)
        else:
            yield answer

    def _end(self, batch: _Batch) -> None:
        """Makes a worker that has finished its batch idle, or replaces it after many tasks."""
        del self._batches[batch.answers]
        if self._done[batch.actor] < worker.TASKS_PER_WORKER:
            self._idle.append(batch.actor)
        else:
            self._ray.kill(batch.actor)
            self._start()

    def _lose(self, batch: _Batch, is_hung: bool = False) -> Iterator[list[Result]]:
        """Replaces a worker that died or hung, and hands on its tasks."""
        del self._batches[batch.answers]
        self._start()
        tasks = batch.tasks
        if tasks:
            task = tasks.popleft()
            self._waiting.extendleft(reversed(tasks))
            yield from self._retry(task, is_hung)

    def _retry(self, task: Task, is_hung: bool) -> Iterator[list[Result]]:
        """Puts a task back whose worker was lost, or gives its cell up."""
        harness = self._job.harnesses[task[0].harness]
        if len(task) > 1:
            self._waiting.extendleft([c] for c in reversed(task))
        elif is_hung:
            yield worker.hung(harness, task)
        elif self._deaths[task[0]]:
            yield [cell.judge(harness, task[0], Outcome.CRASH, "the process died, twice")]
        else:
            self._deaths[task[0]] += 1
            self._waiting.appendleft(task)


@contextlib.contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """A context in which this process is connected to a cluster.

    Workers get the sources that this process has imported.
    """
    names = {name.partition(".")[0] for name in sys.modules}
    sources = [str(_ROOT / name) for name in sorted(names) if (_ROOT / name).is_dir()]
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
    try:
        yield
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ImportError("sweeps on a cluster need Ray: pip install 'lowering[ray]'") from error
    return ray
