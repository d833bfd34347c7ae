"""Answers the questions of this gallery: simulates each plan, and draws its changes.

python studies/gallery/plot.py            # all of them; results are kept in *.results
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import placewise

HERE = Path(__file__).parent
Rows = list[placewise.Row]


def points(axes: Axes, names: list[str], rows: Rows, label: str, shift: float = 0.0) -> None:
    """A point with its 95 % interval for each row, in the order of the names."""
    middles = [row["change_pct"] for row in rows]
    ends = [(row["change_low_pct"], row["change_high_pct"]) for row in rows]
    below = [middle - low for middle, (low, _) in zip(middles, ends)]
    above = [high - middle for middle, (_, high) in zip(middles, ends)]
    at = [names.index(row["name"]) + shift for row in rows]
    axes.errorbar(at, middles, yerr=[below, above], fmt="o", capsize=3, label=label)
    axes.set_xticks(range(len(names)), names)


def chosen(rows: placewise.Table, name: str, **values: str) -> Rows:
    """Changes that have these values, called by what differs: not what they are compared with."""
    return [
        {**row, "name": row[name].partition("=")[2] if name == "case" else row[name]}
        for row in rows
        if row["change_pct"] is not None and all(row[key] == value for key, value in values.items())
    ]


def nps(axes: Axes, rows: placewise.Table) -> None:
    """A service beside a batch job: what NPS2 and NPS4 change from NPS1."""
    names = ["zen3-2s-nps2", "zen3-2s-nps4"]
    for at, metric in enumerate(["schbench@web: p99_wakeup_latency", "stream@batch: triad"]):
        for case in sorted({row["case"] for row in rows}):
            of_case = chosen(rows, "machine", metric=metric, case=case)
            tasks = case.split("threads=")[1].split("@")[0]
            shift = 0.2 * at + (0.1 if tasks == "64" else 0.0) - 0.15
            points(axes, names, of_case, f"{metric}, {tasks} each", shift)


def kernels(axes: Axes, rows: placewise.Table) -> None:
    """What kernels changed since v5.10, benchmark by benchmark."""
    names = ["v6.0", "v6.6", "v6.12", "v7.3"]
    metrics = {
        "hackbench": "time",
        "schbench": "p99_wakeup_latency",
        "tbench": "throughput",
        "netperf": "throughput",
        "stream": "triad",
    }
    shift = -0.3
    for machine in dict.fromkeys(row["machine"] for row in rows):
        for workload, metric in metrics.items():
            of = chosen(rows, "kernel", machine=machine, workload=workload, metric=metric)
            points(axes, names, of, f"{machine}: {workload}", shift)
            shift += 0.066


def hints(axes: Axes, rows: placewise.Table) -> None:
    """wake_affine on schbench: from how many workers on it does harm."""
    for metric in ["p50_wakeup_latency", "p99_wakeup_latency"]:
        of_metric = chosen(rows, "case", metric=metric, policy="hint:wake_affine")
        points(axes, [row["name"] for row in of_metric], of_metric, f"schbench: {metric}")
    axes.set_xlabel("workers")
    axes.set_yscale("symlog", linthresh=100)


def draw(name: str, into: Callable[[Axes, placewise.Table], None]) -> None:
    rows = placewise.study(HERE / f"{name}.toml", changes=True)
    rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none"})
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="0.7", zorder=0)
    into(axes, rows)
    axes.set_ylabel("change in %, more is better")
    figure.legend(fontsize=6, loc="outside right upper")
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    for question in [nps, kernels, hints]:
        draw(question.__name__, question)
