#!/usr/bin/env python3
"""Hold what `placewise audit --perfetto` writes to Perfetto's own schema.

The published schema, compiled, comes with the Python package `perfetto`; it decodes the file, and its
counts have to be those of the trace's text.

    scripts/check-perfetto.py PLACEWISE TRACE.zst...
"""

import collections
import re
import subprocess
import sys
import tempfile

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
except ImportError:
    print("skipped: the Python packages perfetto and protobuf are not installed")
    sys.exit(0)

EVENT = re.compile(r": (sched_\w+): ")


def of_text(trace):
    text = subprocess.run(["zstdcat", trace], check=True, capture_output=True, text=True).stdout
    lines = (EVENT.search(line) for line in text.splitlines() if not line.startswith("#"))
    return collections.Counter(found.group(1) for found in lines if found)


def decoded(program, trace):
    with tempfile.NamedTemporaryFile(suffix=".perfetto-trace") as file:
        command = [program, "audit", trace, "--perfetto", file.name, "--format", "json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        decoded = perfetto_trace_pb2.Trace()
        with open(file.name, "rb") as written:
            decoded.ParseFromString(written.read())
        return decoded


def check(program, trace):
    counts, slices = collections.Counter(), collections.Counter()
    for packet in decoded(program, trace).packet:
        for event in packet.ftrace_events.event:
            counts[event.WhichOneof("event")] += 1
        if packet.HasField("track_event"):
            slices[packet.track_event.Type.Name(packet.track_event.type)] += 1
    if counts != of_text(trace):
        sys.exit(f"{trace}: {dict(counts)} in the file, {dict(of_text(trace))} in the text")
    print(f"{trace}: {counts['sched_switch']} switches, {counts['sched_waking']} wakings, "
          f"{counts['sched_wakeup']} wakeups, as in the text; {slices['TYPE_INSTANT']} decisions, "
          f"{slices['TYPE_SLICE_BEGIN']} waits, {slices['TYPE_COUNTER']} counter values")


for each in sys.argv[2:]:
    check(sys.argv[1], each)
