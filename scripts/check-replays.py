#!/usr/bin/env python3
"""Holds replays to what happened: `scripts/check-replays.py placewise DIRECTORY`.

DIRECTORY has traces of loads as the scenario stock-pairs records them: `LOAD.CHANGE.ROUND.txt.zst`, of
which those with the change `none` are from before. Their replays are simulated with each change, and
each figure that the change moved is held to them: has its median moved the same way? It was moved where
the ranges of the rounds with the change and without do not overlap. Fails if fewer than eight of ten have.
"""

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

KERNEL = "v6.18"
MACHINE = Path(__file__).parent.parent / "studies/interventions/machines/two-nodes-16.toml"

# How a change is said in a comparison. `cpus=LIST` binds the tasks of the load to these.
POLICIES = {
    "no-affine": "set:WA_IDLE=0,set:WA_WEIGHT=0",
    "no-preemption": "set:WAKEUP_PREEMPTION=0",
}
LOAD = ("vm-guest", "messenger", "worker")

# Less is no change of a median: points of the share of wakeups, parts of the time waited.
LEAST_POINTS = 5
LEAST_PART = 0.1


def run(program, *args):
    return subprocess.run([program, *args], check=True, capture_output=True, text=True).stdout


def figures(program, trace):
    """What a trace says: shares of wakeups by distance, and us waited behind others per wakeup."""
    of = ("--machine", str(MACHINE), "--kernel", KERNEL, "--format", "json")
    rows = json.loads(run(program, "replay", str(trace), *of))["figures"]
    recorded = {row["figure"]: row["recorded"] for row in rows if row["task"] is None}
    return {
        "near": recorded["on_same_cpu"],
        "far": recorded["on_other_llc"] + recorded["on_other_node"],
        "behind": recorded["waited_behind"] / max(recorded["wakeups"], 1) * 1000,
    }


def simulated(program, workload, policy):
    """The figures of a simulated run of a replay."""
    with tempfile.TemporaryDirectory() as directory:
        args = ("--workload", str(workload), "--machine", str(MACHINE), "--kernel", KERNEL)
        trace = ("--runs", "1", "--trace", str(Path(directory) / "run.txt"))
        run(program, "compare", *args, *trace, *(("--policy", policy) if policy else ()))
        # With a policy there is a trace of the baseline, too.
        traces = sorted(Path(directory).iterdir(), key=lambda path: "baseline" in path.name)
        return figures(program, traces[0])


def changed(replay, change, directory):
    """The file of a replay with a change, and the policy that the rest of it is."""
    if change == "none":
        return replay, None
    if not change.startswith("cpus="):
        return replay, POLICIES[change]
    bound = json.loads(replay.read_text())
    for task in bound["tasks"]:
        if task["name"].startswith(LOAD):
            task["cpus"] = change.removeprefix("cpus=")
    path = Path(directory) / "bound.json"
    path.write_text(json.dumps(bound))
    return path, None


def by_change(traces, load):
    """The traces of a load, of all rounds with one change together."""
    found = {}
    for trace in sorted(traces.glob(f"{load}.*.txt.zst")):
        found.setdefault(trace.name.split(".")[1], []).append(trace)
    return found


def replayed(program, trace, changes):
    """The figures of the trace's replay with each change."""
    with tempfile.TemporaryDirectory() as directory:
        replay = Path(directory) / "replay.json"
        run(program, "replay", str(trace), "--machine", str(MACHINE), "--kernel", KERNEL, "-o", str(replay))
        return {change: simulated(program, *changed(replay, change, directory)) for change in changes}


def has_moved(figure, before, after):
    if max(before) >= min(after) and max(after) >= min(before):
        return False
    before, after = median(before), median(after)
    least = LEAST_PART * max(before, after, 1) if figure == "behind" else LEAST_POINTS
    return abs(after - before) >= least


def check(program, traces, load):
    """How many figures of the load moved the same way, and how many moved."""
    found = by_change(traces, load)
    real = {change: [figures(program, trace) for trace in rounds] for change, rounds in found.items()}
    replays = [replayed(program, trace, found) for trace in found["none"]]
    right = moved = 0
    for change, figure in itertools.product(sorted(found.keys() - {"none"}), ("near", "far", "behind")):
        before, after = ([it[figure] for it in real[which]] for which in ("none", change))
        if not has_moved(figure, before, after):
            continue
        by = median(after) - median(before)
        replayed_by = median(it[change][figure] for it in replays) - median(it["none"][figure] for it in replays)
        is_right = by * replayed_by > 0
        moved, right = moved + 1, right + is_right
        verdict = "right" if is_right else "wrong"
        print(f"{load:10} {change:14} {figure:7} real {by:+8.1f}  replay {replayed_by:+8.1f}  {verdict}")
    return right, moved


def main():
    program, traces = sys.argv[1], Path(sys.argv[2])
    loads = sorted({path.name.split(".")[0] for path in traces.glob("*.txt.zst")})
    counts = [check(program, traces, load) for load in loads]
    right, moved = sum(right for right, _ in counts), sum(moved for _, moved in counts)
    print(f"{right} of {moved} figures moved the same way")
    sys.exit(moved == 0 or right * 10 < moved * 8)


if __name__ == "__main__":
    main()
