"""The verbs that answer at once: `machine`, `compare`, `audit`, `replay`, `advise` and `reproduce`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Optional

from ._program import Several, StrPath, options, run_json
from ._table import Table


class Report(Mapping[str, Any]):
    """The JSON of a verb, by its keys; what is a list of rows there is a `table`, too."""

    def __init__(self, json: Mapping[str, Any]) -> None:
        self._json = json

    def __getitem__(self, key: str) -> Any:
        return self._json[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._json)

    def __len__(self) -> int:
        return len(self._json)

    def __repr__(self) -> str:
        return f"<Report: {', '.join(self)}>"

    def table(self, key: str) -> Table:
        """The rows that stand under a key."""
        return Table(self[key])


def machine(spec: str = "host") -> Report:
    """What the kernel makes of a machine.

    ``spec`` is a preset, ``host``, an hwloc XML file, a string of lstopo or a TOML file. The report has
    its CPUs (``table("cpus")``), their sched domains, and the costs that simulations charge, in ns unless
    a key's name ends in another unit.
    """
    return Report(run_json(["machine", "show", "--costs", spec]))


def compare(
    workload: StrPath,
    *,
    machines: Several = "host",
    kernels: Optional[Several] = None,
    cases: Optional[Several] = None,
    policies: Several = "baseline",
    environments: Optional[Several] = None,
    knobs: Optional[Several] = None,
    runs: Optional[int] = None,
    seed: int = 1,
    precision: Optional[float] = None,
    budget: Optional[int] = None,
    quick: bool = False,
    jobs: Optional[int] = None,
) -> Table:
    """Simulates a workload under several policies, kernels, environments and on several machines.

    There is a row for each case, metric and combination. ``mean`` and ``median`` are in the row's
    ``unit``; ``change_pct`` is in percent of the first combination's figure and positive where the other
    is better, between ``change_low_pct`` and ``change_high_pct`` in 95 of 100 cases, and ``significant``
    if 0 is not between these. ``precision`` (percent) adds runs, up to ``budget``, until each change is
    known so well. ``knobs`` are ``NAME=VALUE`` under every policy; ``jobs`` is a number of threads.
    """
    args: list[StrPath] = ["compare", f"--workload={workload}", f"--seed={seed}"]
    args += options("machine", machines) + options("kernel", kernels) + options("case", cases)
    args += options("policy", policies) + options("environment", environments)
    args += options("set", knobs) + ["--quick"] * quick
    numbers = {"runs": runs, "precision": precision, "budget": budget, "jobs": jobs}
    args += [f"--{name}={value}" for name, value in numbers.items() if value is not None]
    return _rows(run_json(args))


def audit(
    trace: StrPath,
    after: Optional[StrPath] = None,
    *,
    machine: Optional[str] = None,
    kernel: Optional[str] = None,
    policies: Optional[Several] = None,
    tasks: Optional[Several] = None,
) -> Report:
    """Judges the placement decisions in a trace of the scheduler; of two traces, the difference.

    ``policies`` are asked what they would have decided; ``tasks`` (names, patterns, pids or cgroups)
    count alone. Times end in their unit (``_us``, ``_ms``), shares in ``_pct``: `schemas/audit.json` has
    all keys.
    """
    args: list[StrPath] = ["audit", trace, *([after] if after is not None else [])]
    args += options("machine", machine) + options("kernel", kernel)
    args += options("policy", policies) + options("task", tasks)
    return Report(run_json(args))


def replay(
    trace: StrPath,
    *,
    machine: Optional[str] = None,
    kernel: Optional[str] = None,
    knobs: Optional[Several] = None,
    mode: Literal["exact", "model"] = "exact",
    length: Optional[str] = None,
    scale: Optional[Several] = None,
    output: Optional[StrPath] = None,
) -> Report:
    """Makes a workload of a trace, and holds its replay to the trace.

    ``table("figures")`` has what was ``recorded`` and ``replayed``, in the row's ``unit``; ``is_trusted``
    is false where one of them is off by more than its limit, and ``blamed`` names whose. A model of the
    trace may be longer (``length="10s"``) and have more clients (``scale="web=2"``). The workload goes to
    the file ``output``; a path of either is a ``workload`` of `compare`.
    """
    args: list[StrPath] = ["replay", trace]
    args += options("machine", machine) + options("kernel", kernel) + options("set", knobs)
    args += ["--mode", mode] + options("length", length) + options("scale", scale)
    args += [] if output is None else ["--output", output]
    return Report(run_json(args))


def advise(
    trace: StrPath,
    *,
    goal: Literal["throughput", "p99", "spread"] = "throughput",
    task: Optional[str] = None,
    machine: Optional[str] = None,
    kernel: Optional[str] = None,
    knobs: Optional[Several] = None,
    budget: Optional[int] = None,
    jobs: Optional[int] = None,
) -> Report:
    """Says what to do about a recorded load, with the commands that do it and that undo it.

    ``goal`` is what shall be better: stretches of computing per second, the 99th percentile of the time from
    a wakeup until the task runs, or how far that is above the median; ``task`` whose. ``table("advice")`` has
    at most five rows, best first, and none where it is best left as it is: ``change_pct`` is positive where
    it is better, between ``change_low_pct`` and ``change_high_pct`` in 95 of 100 cases, and ``costs`` says whom
    it makes worse. ``budget`` is a number of runs. Nothing is changed here: the program does that, by
    ``placewise advise --apply``.
    """
    args: list[StrPath] = ["advise", trace, f"--for={goal}"]
    args += options("machine", machine) + options("kernel", kernel) + options("set", knobs)
    args += options("task", task)
    numbers = {"budget": budget, "jobs": jobs}
    args += [f"--{name}={value}" for name, value in numbers.items() if value is not None]
    return Report(run_json(args))


def reproduce(
    studies: StrPath | Sequence[StrPath],
    *,
    runs: int = 1,
    policies: Optional[Several] = None,
    seed: int = 1,
    jobs: Optional[int] = None,
) -> Table:
    """Predicts published results: CSV files with a published figure per row.

    Each row comes back with ``predicted``, in the unit of the published ``value``, and
    ``predicted_change_pct`` against its baseline, in percent and positive where it is better.
    """
    files = [studies] if isinstance(studies, (str, bytes)) or hasattr(studies, "__fspath__") else studies
    args: list[StrPath] = ["reproduce", *files, f"--runs={runs}", f"--seed={seed}"]
    args += options("policy", policies) + ([] if jobs is None else [f"--jobs={jobs}"])
    return _rows(run_json(args))


def _rows(json: dict[str, Any]) -> Table:
    """The rows of a verb, and all else about them."""
    rows = json.pop("rows")
    return Table(rows, about=json)
