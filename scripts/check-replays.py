#!/usr/bin/env python3
"""Holds replays to what happened: `scripts/check-replays.py placewise DIRECTORY`.

DIRECTORY has traces of loads as the scenario stock-pairs records them: `LOAD.txt.zst`, and
`LOAD.CHANGE.txt.zst` of the same load after a change. The replay of the first is simulated with that
change, and each figure that the change moved is held to it: has it moved the same way? Fails if fewer
than eight of ten have.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

KERNEL = "v6.18"
MACHINE = Path(__file__).parent.parent / "studies/interventions/machines/two-nodes-16.toml"

# How a change is said in a comparison. `cpus=LIST` binds the tasks of the load to these.
POLICIES = {
    "no-affine": "set:WA_IDLE=0,set:WA_WEIGHT=0",
    "no-preemption": "set:WAKEUP_PREEMPTION=0",
}
LOAD = ("vm-guest", "messenger", "worker")

# Less is no change: points of the share of wakeups, parts of the time waited.
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
    if not change.startswith("cpus="):
        return replay, POLICIES[change]
    bound = json.loads(replay.read_text())
    for task in bound["tasks"]:
        if task["name"].startswith(LOAD):
            task["cpus"] = change.removeprefix("cpus=")
    path = Path(directory) / "bound.json"
    path.write_text(json.dumps(bound))
    return path, None


def is_small(figure, before, after):
    least = LEAST_PART * max(before, after, 1) if figure == "behind" else LEAST_POINTS
    return abs(after - before) < least


def check(program, traces, load, directory):
    """How many figures of the load moved the same way, and how many moved."""
    before = traces / f"{load}.txt.zst"
    replay = Path(directory) / "replay.json"
    run(program, "replay", str(before), "--machine", str(MACHINE), "--kernel", KERNEL, "-o", str(replay))
    real_before, replayed_before = figures(program, before), simulated(program, replay, None)
    right = moved = 0
    for after in sorted(traces.glob(f"{load}.*.txt.zst")):
        change = after.name.removeprefix(f"{load}.").removesuffix(".txt.zst")
        real_after = figures(program, after)
        replayed_after = simulated(program, *changed(replay, change, directory))
        for figure, was in real_before.items():
            real = real_after[figure] - was
            replayed = replayed_after[figure] - replayed_before[figure]
            verdict = "right" if real * replayed > 0 else "wrong"
            if is_small(figure, was, real_after[figure]):
                verdict = "small"
            else:
                moved += 1
                right += verdict == "right"
            print(f"{load:10} {change:14} {figure:7} real {real:+8.1f}  replay {replayed:+8.1f}  {verdict}")
    return right, moved


def main():
    program, traces = sys.argv[1], Path(sys.argv[2])
    loads = sorted({path.name.split(".")[0] for path in traces.glob("*.txt.zst")})
    right = moved = 0
    for load in loads:
        with tempfile.TemporaryDirectory() as directory:
            more_right, more_moved = check(program, traces, load, directory)
        right, moved = right + more_right, moved + more_moved
    print(f"{right} of {moved} figures moved the same way")
    sys.exit(moved == 0 or right * 10 < moved * 8)


if __name__ == "__main__":
    main()
