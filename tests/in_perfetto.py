#!/usr/bin/env python3
"""Reads Perfetto exports with Perfetto's own schema, and holds them against the report of the same trace.

    tests/in_perfetto.py CUPTOP TRACE...

Needs the package `perfetto` (the schema as generated code) with `protobuf`, both from PyPI. Of each trace it checks that
- every field of every message is one that the schema knows, with a value that it can have;
- slices begin and end in turn, on tracks that were described before, at times within the trace;
- operations of each device, kernels by name, copies and their bytes, host calls by name, and the time in which a
  device was busy are those of `report --json`; events of a Kineto trace are also counted in its own text.
Exit code 1 says what differs."""

import collections
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

COPIES = {"H2D": "h2d", "D2H": "d2h", "D2D": "d2d", "P2P": "p2p"}


def unknown(message, path):
    """Where fields are that the schema lacks. A value that an enumeration lacks is such a field, too."""
    for field in unknown_fields.UnknownFieldSet(message):
        yield f"{path}: field {field.field_number}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            many = value if field.is_repeated else [value]
            for one in many:
                yield from unknown(one, f"{path}.{field.name}")


class Slice:
    def __init__(self, track, start, name, arguments, flows):
        self.track, self.start, self.name, self.arguments, self.flows = track, start, name, arguments, flows
        self.end = None


class Export:
    """What Perfetto would show, and what is wrong with it."""

    def __init__(self, path):
        self.wrong = []
        self.tracks = {}
        self.slices = []
        self.instants = 0
        trace = schema.Trace()
        trace.ParseFromString(path.read_bytes())
        self.wrong += list(unknown(trace, "Trace"))[:5]
        self.packets = len(trace.packet)
        names, arguments = {}, {}
        events = []
        for packet in trace.packet:
            for entry in packet.interned_data.event_names:
                names[entry.iid] = entry.name
            for entry in packet.interned_data.debug_annotation_names:
                arguments[entry.iid] = entry.name
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                if track.HasField("parent_uuid") and track.parent_uuid not in self.tracks:
                    self.wrong.append(f"the track {track.name} comes before its parent")
                self.tracks[track.uuid] = track
            if packet.HasField("track_event"):
                events.append((packet.timestamp, packet.track_event))
        # Perfetto sorts by time and keeps the order of the file among equals.
        events.sort(key=lambda event: event[0])
        open_slices = collections.defaultdict(list)
        flows = collections.Counter()
        for time, event in events:
            if event.track_uuid not in self.tracks:
                self.wrong.append(f"an event at {time} is on a track that nothing describes")
                continue
            stack = open_slices[event.track_uuid]
            if event.type == event.TYPE_SLICE_BEGIN:
                if event.name_iid not in names:
                    self.wrong.append(f"a slice at {time} has a name that nothing defines")
                said = {arguments.get(it.name_iid, it.name): it for it in event.debug_annotations}
                stack.append(Slice(event.track_uuid, time, names.get(event.name_iid), said, list(event.flow_ids)))
                flows.update(event.flow_ids)
            elif event.type == event.TYPE_SLICE_END:
                if not stack:
                    self.wrong.append(f"a slice ends at {time} on {self.path(event.track_uuid)} that did not begin")
                    continue
                ended = stack.pop()
                ended.end = time
                self.slices.append(ended)
            elif event.type == event.TYPE_COUNTER:
                if not self.tracks[event.track_uuid].HasField("counter"):
                    self.wrong.append(f"a value at {time} is on {self.path(event.track_uuid)}, which is no counter")
            elif event.type == event.TYPE_INSTANT:
                self.instants += 1
            else:
                self.wrong.append(f"an event at {time} has type {event.type}")
        never = sum(map(len, open_slices.values()))
        if never:
            self.wrong.append(f"{never} slices do not end")
        # A call that caused nothing has one end alone, which is no arrow.
        self.arrows = sum(1 for count in flows.values() if count > 1)

    def path(self, uuid):
        track = self.tracks[uuid]
        return (self.path(track.parent_uuid) if track.HasField("parent_uuid") else ()) + (track.name,)

    def on_device(self, device):
        """The slices on the streams of a device."""
        group = re.compile(rf"GPU {device}\b")
        paths = {uuid: self.path(uuid) for uuid in self.tracks}
        return [it for it in self.slices if len(paths[it.track]) > 1 and group.match(paths[it.track][0])]


def union(slices):
    """Time in which any of them ran."""
    busy, end = 0, None
    for start, stop in sorted((it.start, it.end) for it in slices):
        begin = start if end is None else max(start, end)
        busy += max(0, stop - begin)
        end = stop if end is None else max(end, stop)
    return busy


def differences(export, report, trace):
    def same(what, here, there):
        if here != there:
            yield f"{what}: {here} in the export, {there} in the report"

    kernels = collections.Counter()
    for device in report["devices"]:
        name = f"GPU {device['device']}"
        slices = export.on_device(device["device"])
        yield from same(f"{name}: operations", len(slices), device["ops"])
        yield from same(f"{name}: ns busy", union(slices), device["busy_ns"])
        of_device = [it.name for it in slices if "grid" in it.arguments]
        kernels.update(of_device)
        for title, key in COPIES.items():
            copies = [it for it in slices if it.name == title]
            yield from same(f"{name}: {title}", len(copies), device[key]["count"])
            moved = sum(it.arguments["bytes"].uint_value or it.arguments["bytes"].int_value for it in copies)
            yield from same(f"{name}: bytes {title}", moved, device[key]["bytes"])
    told = {it["name"]: it["count"] for it in report["kernels"]}
    yield from same("kernels", sum(kernels.values()), sum(told.values()))
    yield from same("kernels by name", dict(kernels), told)
    names = collections.Counter(it.name for it in export.slices)
    for call in report["calls"]:
        # A range may be called as a call is.
        if names[call["name"]] < call["count"]:
            yield f"{call['name']}: {names[call['name']]} in the export, {call['count']} in the report"
    if trace.name.endswith((".json", ".json.gz")):
        unpack = gzip.open if trace.name.endswith(".gz") else open
        with unpack(trace, "rt", encoding="utf-8") as file:
            events = json.load(file)
        events = events["traceEvents"] if isinstance(events, dict) else events
        of_text = collections.Counter(it.get("cat") for it in events if it.get("ph") == "X")
        yield from same("kernels in the trace's text", sum(kernels.values()), of_text["kernel"] + of_text["Kernel"])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    cuptop, traces = sys.argv[1], [pathlib.Path(it) for it in sys.argv[2:]]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            out = pathlib.Path(folder, "out.perfetto-trace")
            subprocess.run([cuptop, "export", trace, "-o", out], check=True, stderr=subprocess.PIPE)
            said = subprocess.run([cuptop, "report", "--json", trace], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            export = Export(out)
            wrong = export.wrong + list(differences(export, json.loads(said.stdout), trace))
            print(f"{trace}: {export.packets} packets, {len(export.tracks)} tracks, {len(export.slices)} slices, {export.arrows} arrows, {len(wrong)} wrong")
            for text in wrong[:10]:
                print(f"  {text[:400]}")
            failed += bool(wrong) or not export.slices
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
