#!/usr/bin/env python3
"""Compare what Placewise makes of hwloc dumps with a second reading of them.

    lstopo --of xml dumps/mine.xml; scripts/check-hwloc-dumps.py target/release/placewise dumps/

Prints a line per dump: `same` if both find the same sets of online CPUs for cores, LLCs, NUMA nodes
and packages, `different` with what differs, or `refused` with the reason that Placewise gives. Fails
if one is different. The second reading follows the rules of docs/machines.md, not the code.
"""

import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

X86_ARCHITECTURES = {"x86_64", "i386", "i486", "i586", "i686"}


def cpus_of(mask):
    """The CPUs of `0x00000003,,0xf`."""
    pieces = [piece or "0" for piece in mask.split(",")]
    bits = int("".join(f"{int(piece, 16):08x}" for piece in pieces), 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


class Dump:
    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        self.infos = {}
        self.backends = set()
        for info in self.root.iter("info"):
            self.infos.setdefault(info.get("name"), info.get("value", "").strip())
            if info.get("name") == "Backend":
                self.backends.add(info.get("value"))
        self.online = frozenset(int(pu.get("os_index")) for pu in self.objects("PU"))

    def objects(self, kind):
        return [item for item in self.root.iter("object") if item.get("type") == kind]

    def sets(self, kind):
        found = [cpus_of(item.get("cpuset")) & self.online for item in self.objects(kind)]
        return [cpus for cpus in found if cpus]

    def is_x86(self):
        architecture = self.infos.get("Architecture")
        return architecture in X86_ARCHITECTURES if architecture else True

    def packages(self):
        packages = self.sets("Package")
        rest = self.online - frozenset().union(*packages)
        return packages + ([rest] if rest else [])

    def nodes(self):
        latencies = [
            matrix
            for matrix in self.root.iter("distances2")
            if matrix.get("type") == "NUMANode" and int(matrix.get("kind")) & 4
        ]
        nodes = self.sets("NUMANode")
        blind = self.backends and self.backends <= {"x86", "Synthetic"}
        if blind and len(self.objects("NUMANode")) <= 1 and not latencies:
            return self.packages()
        members = {}
        for cpu in self.online:
            smallest = min((node for node in nodes if cpu in node), key=len)
            members.setdefault(smallest, set()).add(cpu)
        return [frozenset(cpus) for cpus in members.values()]

    def caches(self):
        """The cache of the highest level around each CPU."""
        around = {}
        for level in range(1, 6):
            for cpus in self.sets(f"L{level}Cache"):
                around.update({cpu: cpus for cpu in cpus})
        return around

    def clusters(self):
        groups = [item for item in self.objects("Group") if item.get("subtype") == "Cluster"]
        sets = self.sets("L2Cache") + [cpus_of(item.get("cpuset")) & self.online for item in groups]
        return {cpu: cpus for cpus in sets for cpu in cpus}

    def cores(self):
        cores = {cpu: cpus for cpus in self.sets("Core") for cpu in cpus}
        return {cpu: cores.get(cpu, frozenset([cpu])) for cpu in self.online}

    def shape(self):
        nodes = {cpu: node for node in self.nodes() for cpu in node}
        packages = {cpu: package for package in self.packages() for cpu in package}
        cores, caches, clusters = self.cores(), self.caches(), self.clusters()
        if self.is_x86():
            cores = {cpu: core & nodes[cpu] for cpu, core in cores.items()}
            llcs = {cpu: caches.get(cpu, cores[cpu]) & nodes[cpu] for cpu in self.online}
        else:
            llcs = {}
            for cpu in self.online:
                llcs[cpu] = nodes[cpu]
                if packages[cpu] <= llcs[cpu]:
                    llcs[cpu] = packages[cpu]
                if cpu in caches and caches[cpu] <= llcs[cpu]:
                    llcs[cpu] = caches[cpu]
                if llcs[cpu] <= clusters.get(cpu, frozenset()):
                    llcs[cpu] = clusters[cpu]
        views = {"cores": cores, "LLCs": llcs, "nodes": nodes, "packages": packages}
        return {name: frozenset(view.values()) for name, view in views.items()}


def placewise_shape(report):
    def sets(field):
        members = {}
        for cpu in report["cpus"]:
            members.setdefault(cpu[field], set()).add(cpu["id"])
        return frozenset(map(frozenset, members.values()))

    fields = {"cores": "core", "LLCs": "llc", "nodes": "node", "packages": "package"}
    return {name: sets(field) for name, field in fields.items()}


def check(placewise, path):
    command = [placewise, "machine", "show", str(path), "--format", "json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    if shown.returncode == 2:
        return "refused", shown.stderr.strip()
    if shown.returncode != 0:
        return "different", f"exit status {shown.returncode}: {shown.stderr.strip()}"
    ours, theirs = placewise_shape(json.loads(shown.stdout)), Dump(path).shape()
    counts = {name: f"{len(ours[name])} {name}" for name in ours}
    wrong = [
        f"{counts[name]}, second reading {len(theirs[name])}"
        for name in ours
        if ours[name] != theirs[name]
    ]
    return ("different", "; ".join(wrong)) if wrong else ("same", ", ".join(counts.values()))


def main():
    placewise, directory = sys.argv[1:]
    totals = {"same": 0, "different": 0, "refused": 0}
    for path in sorted(pathlib.Path(directory).glob("*.xml")):
        outcome, detail = check(placewise, path)
        totals[outcome] += 1
        print(f"{outcome:9} {path.name}: {detail}")
    print(", ".join(f"{number} {outcome}" for outcome, number in totals.items()))
    return totals["different"] > 0


if __name__ == "__main__":
    sys.exit(main())
