"""What the files beside this recording say, read after the tables of their format (cuptop 0.1.0, build 5ec0108) and not with cuptop:
python3 expected.py > expected.txt

The recording was made with that build and the fakes of tests/fake: `cuptop trace --python 50 --save . -- sh job.sh`, where job.sh runs a
Python program that sleeps 90 ms in line 11, 30 ms in line 14 and launches a kernel, five times, and then `program device 60`."""
import pathlib, struct, zlib

METRICS = "sm occupancy tensor dram pcie_in pcie_out nvlink_in nvlink_out power clock temperature memory".split()


class Bytes:
    def __init__(self, data):
        self.data = data

    def take(self, length):
        taken, self.data = self.data[:length], self.data[length:]
        assert len(taken) == length
        return taken

    def get(self, form):
        values = struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))
        return values[0] if len(values) == 1 else values

    def text(self):
        return self.take(self.get("B")).decode()

    def n(self):
        value = shift = 0
        while True:
            byte = self.get("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def long_text(self):
        return self.take(self.n()).decode()


def blocks(data):
    assert data[:8] == b"cuptop+\n" and zlib.crc32(data[:60]) == struct.unpack_from("<I", data, 60)[0]
    at = 64
    while at < len(data):
        magic, length, crc, own = struct.unpack_from("<4sIII", data, at)
        payload = data[at + 16 : at + 16 + length]
        assert magic == b"+blk" and own == zlib.crc32(data[at : at + 12]) and crc == zlib.crc32(payload)
        yield Bytes(payload)
        at += 16 + -(-length // 16) * 16


def entries(block):
    while block.data:
        tag, length = block.get("BH")
        yield tag, Bytes(block.take(length))


def stacks(pid, data):
    texts, frames, known, looks = ["?"], ["?"], [""], 0
    for block in blocks(data):
        before = [block.n() for _ in range(4)]
        assert before == [len(texts) - 1, len(frames) - 1, len(known) - 1, looks]
        hz, torn, lost, cost = [block.n() for _ in range(4)]
        last = 0
        while block.data:
            tag = block.get("B")
            if tag == 1:
                print("process", pid, block.long_text())
            elif tag == 2:
                texts.append(block.long_text())
            elif tag == 3:
                file, function, line = block.n(), block.n(), block.n()
                frames.append(f"{texts[file]}:{line} {texts[function]}")
            elif tag == 4:
                caller, frame = block.n(), block.n()
                known.append((known[caller] + " > " if caller else "") + frames[frame])
            elif tag == 5:
                print("thread", pid, block.n(), block.long_text())
            else:
                assert tag == 6
                signed = block.n()
                last += (signed >> 1) ^ -(signed & 1)
                seen = [(block.n(), block.n()) for _ in range(block.n())]
                print("look", pid, last, *(f"[{thread} {it & 1} {known[it >> 1]}]" for thread, it in seen))
                looks += 1
    print("sampling", pid, hz, torn, lost, cost, looks)


def hardware(data):
    for block in blocks(data):
        for tag, it in entries(block):
            if tag == 4:
                print("note", it.text())
            elif tag == 5:
                print("cost", *it.get("QQQQ"))
            else:
                uuid = it.take(16).hex()
                if tag == 1:
                    told = it.get("B")
                    most = [(METRICS[it.get("B")], it.get("d")) for _ in range(it.get("B"))]
                    lacks = [(METRICS[it.get("B")], it.text()) for _ in range(it.get("B"))]
                    print("limits", uuid, told, *(f"[{a} {b:.3f}]" for a, b in most), *(f"[{a} {b}]" for a, b in lacks))
                elif tag == 2:
                    start, end, reasons = it.get("qqQ")
                    values = []
                    while it.data:
                        values.append((METRICS[it.get("B")], it.get("f")))
                    print("reading", uuid, start, end, reasons, *(f"[{a} {b:.6f}]" for a, b in values))
                elif tag == 3:
                    time = it.get("q")
                    print("occupants", uuid, time, end="")
                    while it.data:
                        of, owner, memory = it.get("IBQ")
                        print(f" [{of} {owner} {'-' if memory == 2**64 - 1 else memory} {it.text()}]", end="")
                    print()
                else:
                    assert tag == 6
                    print("gpu", uuid, it.get("I"), it.text())


def host(pid, data):
    for block in blocks(data):
        for tag, it in entries(block):
            if tag == 1:
                print("window", pid, *it.get("Iqqqq"))
            elif tag == 2:
                start, end, periods, throttled_periods, throttled, cores = it.get("qqQQqd")
                print("group", pid, start, end, periods, throttled_periods, throttled, f"{cores:.3f}")
            else:
                assert tag == 3
                print("why", pid, it.text())


for path in sorted(pathlib.Path(__file__).parent.iterdir()):
    pid, kind, data = path.name.split("-")[0], path.suffix, path.read_bytes()
    if kind == ".stacks":
        stacks(pid, data)
    elif kind == ".hardware":
        hardware(data)
    elif kind == ".host":
        host(pid, data)
