"""An engine that runs no cells, for tests of what stands around engines."""

import time

from harnesses import cell
from harnesses.cell import Outcome


class EqualEngine:
    """An engine whose results are all equal.

    It takes some time to start, and some for each task, in seconds.
    """

    def __init__(self, start: float = 0.0, task: float = 0.0):
        self._start, self._task = start, task

    def run(self, tasks, job):
        time.sleep(self._start)
        for task in tasks:
            time.sleep(self._task)
            yield [cell.judge(job.harnesses[c.harness], c, Outcome.EQUAL) for c in task]
