"""`make perf`: one table, every figure a ratio or a size measured in this run. Machines are noisy; ratios travel."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from perf import audit, ingest, online, proxy
from perf.gauges import Gauges
from perf.stub import stub_server

ITEMS = 2_000
FEW, MANY = 1_000, 100_000


@dataclass(frozen=True)
class Row:
    what: str
    figure: float
    goal: str
    met: bool
    unit: str = "×"


def at_most(what: str, figure: float, goal: float, unit: str = "×") -> Row:
    return Row(what, figure, f"≤ {goal:g} {unit}", figure <= goal, unit)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            *_latency(Path(folder)),
            *_ingest(Path(folder)),
            *_suites(Path(folder)),
            *_online(Path(folder)),
            *_size(Path(folder)),
            _help(),
        ]
    width = max(len(row.what) for row in rows)
    print(f"{'what':<{width}}  {'measured':>12}  {'goal':>10}")
    for row in rows:
        verdict = "" if row.met else "  MISSED"
        print(f"{row.what:<{width}}  {f'{row.figure:,.2f} {row.unit}':>12}  {row.goal:>10}{verdict}")
    return 0 if all(row.met for row in rows) else 3


def _latency(folder: Path) -> list[Row]:
    """Three rounds, one after the other, and the median ratio: a busy moment hits both sides or is outvoted."""
    walls, cpus, careless_walls, careless_cpus, memory, flights = [], [], [], [], [], []
    with stub_server() as address:
        for n in range(3):
            bare = _measure("perf.latency", "bare", folder / f"bare{n}", ITEMS, address)
            careless = _measure("perf.latency", "careless", folder / f"careless{n}", ITEMS, address)
            ours = _measure("perf.latency", "ours", folder / f"ours{n}", ITEMS, address)
            walls.append(ours.wall / bare.wall)
            cpus.append(ours.cpu / bare.cpu)
            careless_walls.append(ours.wall / careless.wall)
            careless_cpus.append(ours.cpu / careless.cpu)
            memory.append(ours.megabytes)
            flights.append(ours.most_in_flight)
    most = min(flights)
    return [
        at_most("wall time, engine / bare loop with a durable commit a step", median(walls), 1.10),
        at_most("CPU time, engine / the same", median(cpus), 1.5),
        Row("  the same, if the loop did not wait for the disk: wall", median(careless_walls), "", True),
        Row("  and CPU", median(careless_cpus), "", True),
        Row("calls in flight of 100 asked", most, "= 100", most == 100, ""),
        at_most(f"memory at {ITEMS:,} items", max(memory), 100, "MB"),
    ]


def _ingest(folder: Path) -> list[Row]:
    (folder / "ingest").mkdir()
    taken = {name: Gauges(**told) for name, told in _child("perf.ingest", folder / "ingest").items()}
    raw, bare, durable, ours, batched = (taken[name] for name in ("raw", "bare", "durable", "ours", "batched"))
    calls = ingest.HAYSTACKS * ingest.REQUESTS[ingest.ours]
    return [
        at_most("ingest, if nothing but the memory took time", ours.wall / ingest.IDEAL, 1.15),
        Row("  and a bare loop with durable commits", durable.wall / ingest.IDEAL, "", True),
        Row("  and one without a journal", bare.wall / ingest.IDEAL, "", True),
        Row("  and sockets, without HTTP, JSON or a journal", raw.wall / ingest.IDEAL, "", True),
        Row("  CPU a call", ours.cpu / calls * 1e6, "", True, "µs"),
        Row("    and of the loop without a journal", bare.cpu / calls * 1e6, "", True, "µs"),
        Row("  in batches / one by one: wall", batched.wall / ours.wall, "< 1 ×", batched.wall < ours.wall),
    ]


def _suites(folder: Path) -> list[Row]:
    """The best of five rounds each, taken in turn: only the busy moments of others make them longer."""
    ratios: dict[str, list[float]] = {way: [] for way in audit.WAYS}
    with stub_server() as address:
        for n in range(5):
            for way, taken in ratios.items():
                gauges = Gauges(**_child("perf.audit", way, folder / f"{way}-audit{n}", address))
                taken.append(gauges.wall / audit.ideal(gauges.calls))
    best = {way: min(taken) for way, taken in ratios.items()}
    return [
        at_most(f"audit, {audit.PROBES:,} probes, if nothing but the model took time", best["ours"], 1.15),
        at_most("  the same with a judge, as by default", best["judged"], 1.15),
        Row("  and a bare loop with durable commits", best["bare"], "", True),
        at_most("recording proxy, a call", proxy.milliseconds_a_call(), proxy.GOAL, "ms"),
    ]


def _online(folder: Path) -> list[Row]:
    """The best of three rounds each; memory of the last one."""
    few, many = FEW, 5 * FEW
    with stub_server() as address:
        small = _measure("perf.online", "ours", folder / "few-traces", few, address)
        taken = {
            way: [_measure("perf.online", way, folder / f"{way}-traces{n}", many, address) for n in range(3)]
            for way in online.WAYS
        }
    walls = {way: min(run.wall for run in runs) / online.ideal(many) for way, runs in taken.items()}
    cpus = {way: min(run.cpu for run in runs) / many * 1e3 for way, runs in taken.items()}
    return [
        at_most(f"{many:,} traces, if nothing but the judge took time", walls["ours"], 1.2),
        Row("    and for the engine alone", walls["engine"], "", True),
        Row("    and for a loop of two calls a trace", walls["bare"], "", True),
        Row("  CPU a trace", cpus["ours"], "", True, "ms"),
        Row("    and of the engine alone", cpus["engine"], "", True, "ms"),
        Row("    and of that loop", cpus["bare"], "", True, "ms"),
        Row(f"  memory at {few:,} traces", small.megabytes, "", True, "MB"),
        at_most(f"  and at {many:,}", taken["ours"][-1].megabytes, round(small.megabytes * 1.1), "MB"),
    ]


def _size(folder: Path) -> list[Row]:
    few = [_measure("perf.instant", "run", folder / f"few{n}", FEW) for n in range(3)]
    many = _measure("perf.instant", "run", folder / "many", MANY)
    again = _measure("perf.instant", "resume", folder / "many", MANY)
    each_few, each_many = median(run.cpu for run in few) / FEW, many.cpu / MANY
    return [
        at_most(f"CPU an item, {MANY:,} items / {FEW:,} items", each_many / each_few, 1.2),
        at_most(f"memory, {MANY:,} items / {FEW:,} items", many.megabytes / few[0].megabytes, 1.5),
        at_most(f"resuming a finished run of {MANY:,} steps", again.wall, 3, "s"),
    ]


def _help() -> Row:
    bare = _fastest(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    helped = _fastest(
        lambda: subprocess.run([sys.executable, "-m", "memorybench", "--help"], check=True, stdout=subprocess.DEVNULL)
    )
    return at_most("--help / bare interpreter", helped / bare, 4)


def _fastest(call: Callable[[], object]) -> float:
    times = []
    for _ in range(10):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return min(times)


def _measure(module: str, what: str, *arguments: object) -> Gauges:
    """In a process of its own, so that memory is its own, too."""
    return Gauges(**_child(module, what, *arguments))


def _child(module: str, *arguments: object) -> Any:
    """What a process of its own prints."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    sys.exit(main())
