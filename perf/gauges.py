"""Wall time, CPU time and peak memory of this process while something runs."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass


@dataclass
class Gauges:
    wall: float = 0.0
    cpu: float = 0.0
    megabytes: float = 0.0
    most_in_flight: int = 0
    calls: int = 0

    def as_json(self) -> str:
        return json.dumps(asdict(self))


@contextmanager
def measured() -> Iterator[Gauges]:
    gauges, wall, cpu = Gauges(), time.perf_counter(), time.process_time()
    yield gauges
    gauges.wall = time.perf_counter() - wall
    gauges.cpu = time.process_time() - cpu
    gauges.megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
