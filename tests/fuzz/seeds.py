#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets' corpora, tests/fuzz/corpus/TARGET/seed-*: small inputs that reach most of a
target's code. Does not change found-*, the inputs that fuzzers have found. If the program MLTCP is given, a small
experiment writes the seeds for results, series and schedules. Without MLTCP, the seeds for results, series and
schedules do not change.

usage: tests/fuzz/seeds.py [MLTCP]
"""

import gzip
import json
import math
import pickle
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CORPUS = HERE / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{name}").write_bytes(data if isinstance(data, bytes) else data.encode())


# ---- Packets ----


HEADER_BYTES = 36


def frame_data(last, message, offset, payload, length=None):
    return struct.pack("<BBHII", 1, last, len(payload) if length is None else length, message, offset) + payload


def frame_ack(ranges, credit=None, whole=None, hops=1):
    flags = (credit is not None) | (whole is not None) << 1
    first, last = ranges[0]
    out = struct.pack("<BBBBIQIIIII", 2, len(ranges), hops, flags, 1000, last, 7, whole or 0, 1, 1500, last - first)
    if credit is not None:
        out += struct.pack("<I", credit)
    for before, (first, last) in zip(ranges, ranges[1:]):
        out += struct.pack("<II", before[0] - last - 2, last - first)
    return out


FRAMES = {
    "data": frame_data(1, 3, 0, b"abcdefgh"),
    "ack": frame_ack([(90, 99), (50, 60), (3, 3)], credit=12, whole=4),
    "credit": struct.pack("<BBHI", 3, 1, 0, 9),
    "ping": struct.pack("<Q", 4),
    "connect": struct.pack("<BBHIIQBBH", 5, 3, 1472, 77, 6, 0x1122334455667788, 3, 3, 0),
    "accept": struct.pack("<BBHIIQBBH", 6, 3, 1472, 78, 6, 0x8877665544332211, 3, 0, 0),
    "close": struct.pack("<BBH", 7, 0, 4),
    "retry": struct.pack("<IQ", 8, 0x0123456789ABCDEF),
    "token": struct.pack("<IQ", 9, 0x0123456789ABCDEF),
    "reset": struct.pack("<II", 10, 0x5005),
    "key": struct.pack("<IQ16s", 11, 0x0123456789ABCDEF, bytes(range(16))),
    "padding": struct.pack("<BBH", 12, 0, 20) + bytes(20),
}


def packet(frames, flags=0, covered=None, connection=5, number=100):
    size = HEADER_BYTES + len(frames)
    return struct.pack("<BBHIQIIIIHH", 0xA3, flags, covered or size, 0, 0x77, connection, number, 4, 9, 3, 1000) + frames


def wire():
    for name, frame in FRAMES.items():
        write("wire", name, b"\0" + packet(frame, 8 if name == "data" else 0))
    write("wire", "all", b"\0" + packet(b"".join(f for n, f in FRAMES.items() if n != "data") + FRAMES["data"]))
    gathered = FRAMES["credit"] + frame_data(1, 8, 0, b"x" * 40)
    write("wire", "gathered", b"\0" + packet(gathered, 1, HEADER_BYTES + len(gathered) - 40))
    write("wire", "virtual", b"\x02\x28" + packet(frame_data(0, 8, 0, b"", 40)))


def mac(number):
    return bytes([2, 0, 0, 0, 0, number])


def ethernet(ether_type, vlan=None):
    tag = struct.pack(">HH", 0x8100, vlan) if vlan is not None else b""
    return mac(2) + mac(1) + tag + struct.pack(">H", ether_type)


def ipv4(payload, protocol=17, options=b"", ecn=2):
    size = 20 + len(options) + len(payload)
    return (struct.pack(">BBHHHBBHII", 0x45 + len(options) // 4, 0x28 | ecn, size, 0, 0x4000, 64, protocol, 0, 0x0A000001,
                        0x0A000002) + options + payload)


def ipv6(payload, header=17):
    address = bytes.fromhex("20010db8") + bytes(11)
    return struct.pack(">IHBB", 0x62A00000, len(payload), header, 64) + address + b"\1" + address + b"\2" + payload


def udp(payload):
    return struct.pack(">HHHH", 4793, 62400, 8 + len(payload), 0) + payload


def encapsulation():
    def seed(name, frame, choices=0):
        write("encapsulation", name, bytes([choices]) + struct.pack("<H", 60) + frame)

    seed("ipv4", ethernet(0x0800) + ipv4(udp(b"payload")))
    seed("ipv4-checked", ethernet(0x0800) + ipv4(udp(b"payload")), 2)
    seed("ipv4-options", ethernet(0x0800) + ipv4(udp(b"payload"), options=bytes([1] * 8)) + bytes(4))
    seed("ipv4-vlan", ethernet(0x0800, 0x6005) + ipv4(udp(b"payload")))
    seed("ipv6", ethernet(0x86DD) + ipv6(udp(b"payload")))
    seed("ipv6-vlan", ethernet(0x86DD, 5) + ipv6(udp(b"payload")))
    seed("ipv6-fragment", ethernet(0x86DD) + ipv6(bytes([17, 0, 0, 1, 0, 0, 0, 9]) + udp(b"payload"), 44))
    seed("tcp", ethernet(0x0800) + ipv4(struct.pack(">HHIIHHHH", 1, 2, 3, 4, 0x5010, 99, 0, 0), protocol=6))
    seed("arp", ethernet(0x0806) + struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20))


def neighbours():
    ask = lambda number: bytes([1, number])
    question = lambda number, *changes: bytes([3, number - 2, len(changes) // 2, *changes])
    answer = lambda number, *changes: bytes([4, number - 2, len(changes) // 2, *changes])
    time = bytes([0, 0xE8, 3])
    for settings, kind in enumerate(["ipv6", "ipv4", "ipv6-vlan", "ipv4-vlan", "ipv6-gateway", "ipv4-gateway"]):
        program = ask(5) + answer(5) + question(7) + time + ask(5) + question(5, 22, 9) + answer(5, 24, 3) + b"\5" + time
        program += b"".join(ask(n) for n in range(10, 22)) + time * 4 + answer(12) + answer(15) + time * 40 + ask(12)
        write("neighbours", kind, bytes([settings]) + program)
    arp = ethernet(0x0806) + struct.pack(">HHBBH", 1, 0x0800, 6, 4, 2) + mac(2) + bytes([10, 0, 0, 1]) + mac(1)
    write("neighbours", "conflict", b"\1" + bytes([2, len(arp) + 4]) + arp + bytes([10, 0, 0, 1]) + time + ask(3))


def shard():
    wait = bytes([4, 0xFF, 1])
    pause = b"\x10"  # time to run after each operation, in microseconds
    op = lambda *bytes_: bytes(bytes_) + pause
    receive = lambda size, at=0x10: op(2 | at | 0x40, size & 255, size >> 8)
    send = lambda size, at=0: op(0 | at | 0x40, size & 255, size >> 8)
    long_wait = wait + pause
    plain = receive(3000) + send(2500) + receive(5) + send(100) + receive(100, 0) + send(90, 0x10) + long_wait
    write("shard", "plain", bytes([0, 0, 0]) + plain)
    write("shard", "limits", bytes([0xF1, 1, 7]) + plain * 3)
    write("shard", "zero-copy", bytes([1, 4, 9]) + plain + receive(60000) + send(60000) + long_wait * 4)
    write("shard", "losses", bytes([2, 2, 0]) + op(5, 12, 1, 0, 2, 4, 0x64, 3, 1, 1, 0, 0, 12, 9) + plain * 4 + long_wait * 8)
    write("shard", "deadlines", bytes([0, 3, 0]) + op(0x80, 50, 3) + op(0x92, 60, 9) + long_wait + plain)
    write("shard", "cancel", bytes([0, 0, 0]) + receive(200) * 2 + op(0x19, 0) + op(0x1A, 1) + send(50) * 2 + op(8, 1) + long_wait)
    write("shard", "job", bytes([0, 0, 0]) + op(12, 0x20, 0x10) + op(13, 0, 0xE1, 0xF5, 5) + plain + long_wait * 2)
    write("shard", "full", bytes([4, 0, 2]) + op(11, 2) + op(0x1B, 0) + plain + op(14, 30) + plain)
    write("shard", "close", bytes([0, 0, 0]) + receive(100) + send(3000) + op(0x6F) + long_wait + op(0x7F) + plain)
    write("shard", "abort", bytes([8, 0, 0]) + receive(3000) + send(3000) + op(0x4F, 1) + plain)
    unknown_peer = lambda frames, flags=0: op(6 | flags, 0, *([0] if flags & 0x60 == 0 else []), len(frames), *frames)
    write("shard", "unknown-peer", bytes([0, 0, 0]) + receive(900) + unknown_peer(FRAMES["connect"]) + long_wait +
          b"".join(unknown_peer(FRAMES[n], 0x40) for n in ("ack", "credit", "data", "ping", "accept", "close")) +
          unknown_peer(FRAMES["close"], 0x20) + send(800) + long_wait)
    write("shard", "unknown-peer-data", bytes([0, 1, 0]) + unknown_peer(FRAMES["connect"]) + unknown_peer(FRAMES["ping"], 0x40) + plain +
          b"".join(unknown_peer(frame_data(1, n, 0, b"hello"), 0x40) for n in range(4)) + long_wait + plain)


# ---- Texts ----


def bare(toml):
    """Returns `toml` without comments and unnecessary spaces."""
    lines = [re.sub(r"\s+#[^\"]*$", "", line).rstrip() for line in toml.splitlines()]
    return "\n".join(re.sub(r" *= *", " = ", line) for line in lines if line and not line.startswith("#")) + "\n"


def experiment():
    for name in ["two-jobs", "multi-phase", "leaf-spine-16", "learned-buckets", "faulty-link", "patterns", "drift"]:
        write("experiment", name, b"\0" + bare((ROOT / f"examples/{name}.toml").read_text()).encode())
    write("experiment", "hosts", b"\1" + bare((ROOT / "examples/two-rings.toml").read_text()).encode())
    write("experiment", "cluster", b"\2" + bare((ROOT / "examples/cluster-24.toml").read_text()).encode())
    write("experiment", "switch", b"\3" + b"""seed = 7
idle = "sleep"
mac_entries = 64
ageing = "10 s"
rate = "1 Gbps"
ecn = { kmin = "30 kB" }
faults = { loss = 0.1, duplication = 0.2 }
[[port]]
device = "ring:a"
delay = "10 us"
ecn = false
[[port]]
device = "ring:b"
classes = 8
mtu = 9000
""")
    write("experiment", "topology", b"\4" + b"""hosts = ["a", "node[08-09]"]
[topology]
kind = "single-switch"
hosts = 3
host_rate = "10 Gbps"
""")
    write("experiment", "topology-tree", b"\4" + b"""[topology]
kind = "fat-tree"
k = 4
rate = "10 Gbps"
""")
    write("experiment", "links", b"\5" + b"h1 s1 10Gbps 1us\nh2 s1 10Gbps\n# nothing\ns1 s2 40Gbps\nh3 s2 10Gbps\n")
    write("experiment", "slurm-tree", b"\5" + b"SwitchName=s1 Nodes=n[01-03],x LinkSpeed=9 # leaf\nswitchname = s2 "
          b"NODES=\"r[1-2]n[1-2]\"\nSwitchName=top \\\n Switches=s[1-2]\n")
    write("experiment", "slurm-block", b"\5" + b"BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2,4\n")
    write("experiment", "slurm-yaml", b"\5" + b"- topology: t\n  cluster_default: true\n  tree:\n    switches:\n"
          b"      - switch: s1\n        nodes: n[1-2]\n      - switch: top\n        children: s1\n")
    write("experiment", "slurm-alias", b"\5" + b"- &t\n  topology: t\n  cluster_default: true\n- *t\n")
    write("experiment", "links-csv", b"\5" + b"rate,direction,to,from,delay\n10 Gbps,,s1,h1,\n1 Gbps,both,h2,s1,2 us\n"
          b"40 Gbps,one-way,s1,s2,3 ms\n1 Gbps,one-way,s2,s1,\n")
    write("experiment", "job", b"\6" + b"""[[job]]
name = "a"
compute = "15 ms"
communicate = "13.5 MB"
rate = "1 Gbps"
flows = 2
jitter = "2 ms"
straggler = { probability = 0.1, factor = 2.0 }
change = { iteration = 9, compute_scale = 1.5 }
""")
    for number, (key, value) in enumerate([("job[1].compute", '"3 ms"'), ("bottleneck.ecn", '{ kmin = "9 kB", kmax = "30 kB" }'),
                                           ("job[*].jitter", '"10%"'), ("cc", '"dctcp"')]):
        write("experiment", f"override-{number}", b"\7" + f"{key} {value}".encode())


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def chakra():
    number = lambda field, value: varint(field << 3) + varint(value)
    text = lambda field, value: varint(field << 3 | 2) + varint(len(value)) + value
    attribute = lambda key, value: text(10, text(1, key) + number(9, value))
    trace = varint(7) + text(1, b"0.0.4")
    for i in range(6):
        node = number(1, i) + text(2, b"node") + number(3, 4 if i < 2 else 3 + i) + number(7, 5)
        if i > 0:
            node += text(5, varint(i - 1))
        if i >= 2:
            node += attribute(b"comm_size", 64) + attribute(b"comm_type", i) + attribute(b"comm_dst", 1)
            node += attribute(b"comm_src", 1)
        trace += varint(len(node)) + node
    return trace


def kineto():
    """Returns traces in the format of PyTorch's profiler, by name. The name "" stands for the simplest trace."""
    def event(name, start, length, stream, correlation=None, category="kernel", **more):
        args = {"device": 0, "stream": stream, **more}
        if correlation is not None:
            args["correlation"] = correlation
        return {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": length, "args": args}

    def step(number, start, length=1000):
        return {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 9, "tid": 1, "ts": start,
                "dur": length}

    def trace(events):
        return json.dumps({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
                           "traceEvents": events}).replace("Infinity", "inf").replace("NaN", "nan").encode()

    def args_of(name, **more):
        return {"Collective name": name, "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float",
                "Process Group Name": "0", "Process Group Ranks": "[0, 1]", **more}

    def operation(name, start, **more):
        return event("record_param_comms", start, 20, 1, None, "cpu_op", **args_of(name, **more))

    plain, behind, group, host = [], [event("gemm", 1000, 2990, 7, 1)], [], []
    for number in (1, 2):
        at = number * 1000
        nth = number * 9
        plain += [step(number, at), event("cudaLaunchKernel", at, 5, 1, nth + 1, "cuda_runtime"),
                  event("gemm", at + 10, 190, 7, nth + 1),
                  event("cudaLaunchKernel", at + 190, 5, 1, nth + 2, "cuda_runtime"),
                  event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", at + 200, 300, 40, nth + 2, **args_of("allreduce")),
                  event("cudaStreamSynchronize", at + 220, 290, 1, nth + 3, "cuda_runtime"),
                  event("adam", at + 520, 98, 7, nth + 4)]
        late = 3000 + number * 1000
        behind += [step(number, at, 990), event("hipLaunchKernel", at + 10, 5, 1, nth + 1, "cuda_runtime"),
                   event("gemm", late, 900, 7, nth + 1),
                   event("launch", at + 50, 5, 1, nth + 2, "xpu_runtime"),
                   event("hcom_allReduce__1", late + 500, 400, 40, nth + 2, **args_of("reduce")),
                   event("mscclKernel_Sum(x)", late + 900, 300, 41, nth + 3, **args_of("gather"))]
        group += [step(number, at, 990), operation("send", at + 100, **{"Dst Rank": 1}),
                  operation("recv", at + 130, **{"Src Rank": 1}),
                  event("nccl:coalesced", at + 160, 9, 1, None, "user_annotation"),
                  event("cudaLaunchKernelExC", at + 165, 5, 1, nth, "cuda_runtime"),
                  event("ncclDevKernel_SendRecv(x)", at + 200, 300, 40, nth),
                  event("ncclDevKernel_SendRecv(x)", at + 510, 100, 40, nth)]
        host += [step(number, at), operation("allreduce", at + 100), operation("barrier", at + 130),
                 event("gloo:all_reduce", at + 200, 90, 2, None, "user_annotation")]
    wrong = plain + [step(3, 0, 0.0), step(4, 4458676524670.5), event("gemm", 2500, 1e10, 7, 29),
                     event("Memcpy HtoD", 2600, 9, 7, 29, "gpu_memcpy",
                           **{"memory bandwidth (GB/s)": math.inf, "a": -math.inf, "b": math.nan})]
    early = [dict(one, ts=one["ts"] - 500) if one["cat"] == "kernel" else one for one in plain]
    return {"": trace(plain), "-behind": trace(behind), "-group": trace(group), "-host": trace(host),
            "-wrong-times": trace(wrong), "-clocks": trace(early)}


def nsight():
    """Returns a database as Nsight Systems exports it, in pages of 512 bytes."""
    database = sqlite3.connect(":memory:")
    database.executescript("""
        PRAGMA page_size = 512;
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE NVTX_EVENTS (start INT, end INT, text TEXT, globalTid INT, jsonText TEXT, binaryData BLOB);
        CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INT, schemaId INT, idx INT, type INT, name TEXT, offset INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, correlationId INT,
          globalPid INT, shortName INT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT, nameId INT);
        INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce_Sum'), (3, 'ncclDevKernel_SendRecv'),
          (4, 'cudaStreamSynchronize');
        INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (0, 9, 0, 18, 'NCCL communicator ID', NULL),
          (0, 9, 1, 22, 'Message size [bytes]', 8);""")
    database.execute("INSERT INTO NVTX_EVENTS VALUES (1, 2, 'ncclCommInitRank', 16777223, ?, NULL)",
                     [json.dumps({"NCCL communicator ID": 7, "No. of ranks": 2, "Rank": 1})])
    for n in range(3):
        at = 100 + 1000 * n
        kernels = [(at + 10, at + 300, 0, 7, 4 * n, 1 << 24, 1), (at + 310, at + 700, 0, 20, 4 * n + 1, 1 << 24, 2),
                   (at + 700, at + 800, 0, 20, 4 * n + 2, 1 << 24, 3)]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", kernels)
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 16777223, ?, ?)", [
            (at + 1, at + 2, 4 * n, None), (at + 5, at + 6, 4 * n + 1, None), (at + 9, at + 10, 4 * n + 2, None),
            (at + 20, at + 810, 4 * n + 3, 4)])
        payload = struct.pack("<IIIIQQQQ", 0, 0, 9, 0, 16, 48, 7, 4096)
        peer = json.dumps({"NCCL communicator ID": 7, "Message size [bytes]": 64, "Peer rank": 0})
        database.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, 16777223, ?, ?)", [
            (at, at + 1000, f"step {n}", None, None), (at + 4, at + 5, "ncclAllReduce", None, payload),
            (at + 7, at + 8, "ncclSend", peer, None), (at + 8, at + 9, "ncclRecv", peer, None)])
    database.commit()
    return database.serialize()


def nsight_again():
    """Returns a database whose schema refers to the same definitions again and again."""
    data = bytearray(nsight())
    head = 100  # offset of the b-tree header in the first page, which is an interior page
    assert data[head] == 5
    cell = struct.unpack_from(">H", data, head + 12)[0]
    data[head + 8:head + 12] = data[cell:cell + 4]
    return bytes(data)


def traces():
    def seed(name, choices, text):
        data = text if isinstance(text, bytes) else text.encode()
        write("traces", name, bytes([choices]) + data)

    seed("chakra", 2, chakra())
    seed("chakra-recorded", 2 | 8, chakra())
    seed("chakra-json", 0, json.dumps({"workload_graph": [
        {"Id": 1, "Name": "a", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 9},
        {"Id": 2, "Name": "c", "NodeType": 7, "data_deps": [1], "comm_type": 0, "comm_size": 100}], "ngpus": 8}))
    seed("chakra-objects", 0, """{"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "5"}
{"id": "2", "name": "b", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [{"name": "comm_size", "int64Val": "8"}]}""")
    seed("pytorch-et", 0, json.dumps({"schema": "1.0.2", "nodes": [
        {"id": 2, "name": "## process_group:init ##",
         "inputs": {"values": ['[{"pg_name": "0", "ranks": [0, 1], "group_size": 2}]']}},
        {"id": 3, "name": "ProfilerStep#1", "inputs": {"values": []}},
        {"id": 5, "name": "record_param_comms",
         "inputs": {"values": [[1, 1, 0, 8, 4, "cuda"], 12, ["0", "d"], 0, "allreduce", [], []]}},
        {"id": 6, "name": "record_param_comms", "inputs": {"values": [12, ["0", "d"], 0, "wait", [], []]}}]}))
    seed("param", 0, json.dumps([
        {"comms": "init", "pg_id": 1, "global_ranks": [0, 2], "world_size": 2},
        {"comms": "all_reduce", "in_msg_size": 10, "dtype": "float", "pg_id": 1, "world_size": 2, "req": 1, "startTime_ns": 10},
        {"comms": "wait", "req": 1, "startTime_ns": 20},
        {"comms": "send", "in_msg_size": 4, "dtype": "int", "dst_rank": 1},
        {"comms": "recv", "out_msg_size": 4, "dtype": "int", "src_rank": 1, "markers": ["## step 4 ##"]}]))
    for name, trace in kineto().items():
        seed("kineto" + name, 0, trace)
    seed("kineto-phases", 5, kineto()[""])
    seed("kineto-tree", 0x80, kineto()[""])
    log = ""
    for rank in range(2):
        log += (f"node1:{100 + rank}:{100 + rank} [{rank}] NCCL INFO ncclCommInitRank comm 0xa rank {rank} nranks 2 cudaDev "
                f"{rank} nvmlDev {rank} busId 1a000 commId 0x77 - Init COMPLETE\n")
        for order, call in enumerate(["AllReduce", "AllGather", "Broadcast", "Send" if rank == 0 else "Recv"]):
            log += (f"node1:{100 + rank}:{107 + rank} [{rank}] NCCL INFO {call}: opCount {order:x} sendbuff 0x7f0 recvbuff "
                    f"(nil) count 1000 datatype 7 op 0 root {1 - rank if order == 3 else 0} comm 0xa [nranks=2] stream 0x55\n")
    seed("nccl-log", 0, log)
    split = ""
    for rank in range(2):
        line = f"<host>:{rank}:{rank} [{rank}] NCCL INFO "
        split += (f"{line}ncclCommInitRankConfig comm 0xa rank {rank} nranks 2 cudaDev 0 busId 1 commId 0x7 - Init COMPLETE\n"
                  f"{line}ncclCommSplit comm 0xb rank {rank} nranks 2 cudaDev 0 busId 1 parent 0xa splitCount 1 color 0 key 0"
                  f"- Init START\n{line}[{rank}] Gather: opCount 1 sendbuff 0x1 recvbuff 0x2 count 9 datatype 7 op 0 root 0 comm "
                  f"0xb [nranks=2] stream 0x5\n{line}{line}AllReduce: opCount 2\n"
                  f"{line}comm 0xb rank {rank} nranks 2 cudaDev 0 busId 1 - Destroy COMPLETE\n")
    seed("nccl-log-split", 0, split)
    seed("comm-groups", 0, '{"1": [0, 1], "2": [2, 3]}')
    header = {"id": "0x7", "rank": 0, "n_ranks": 2, "nnodes": 1}
    inspector = [{"header": header, "metadata": {"dump_timestamp_us": 9000, "hostname": "n", "pid": 4},
                  "coll_perf": {"coll": "AllReduce", "coll_sn": n, "coll_msg_size_bytes": 4096, "coll_exec_time_us": 61}}
                 for n in (1, 2, 3)]
    seed("nccl-inspector", 0, "\n".join(json.dumps(line) for line in inspector))
    calls = [("nccl:all_reduce", [[3, 4]], [[3, 4]]), ("nccl:_all_gather_base", [[5]], [[10]]),
             ("nccl:send 0->1", [[7]], []), ("nccl:coalesced", [], []), ("nccl:broadcast", [[2]], [[2]])]
    recorder = {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "entries": [
        {"record_id": n + 3, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": n + 9, "p2p_seq_id": 1,
         "profiling_name": name, "time_created_ns": 1724781437000000000 + n * 9000, "duration_ms": 0.002, "input_sizes": ins,
         "input_dtypes": ["Float"], "output_sizes": outs, "output_dtypes": ["Half"], "state": "completed",
         "is_p2p": "send" in name or name == "nccl:coalesced"} for n, (name, ins, outs) in enumerate(calls * 2)]}
    seed("flight-recorder", 0, json.dumps(recorder))
    for version in 2, 4:
        seed(f"flight-recorder-pickle{version}", 0, pickle.dumps(recorder, version))
    seed("nsight", 0, nsight())
    seed("nsight-again", 0, nsight_again())
    seed("packed-twice", 0, gzip.compress(gzip.compress(b"3\n0 1 3 100 2000 2.0\n", mtime=0), mtime=0))
    seed("nccl-inspector-inf", 0, json.dumps(inspector[0]).replace("61}", '61, "coll_busbw_gbs": -inf, "x": "nan"}'))
    head = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
    row = lambda kind, group, size, count, stage, time="None": (
        f"CommType.{kind},CommGroup.{group},{size},{count},{stage},None,None,,{time},None,None,1\n")
    seed("aicb", 3, "[rank0 ~ rank7]\n" + head + row("all_reduce", "tp_group", 4, 1000, "forward") +
         row("computation", "all", 1, 0, "forward", "5000") + row("reduce_scatter", "dp_group", 2, 4000, "step") +
         "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n")
    seed("htsim", 0, "Nodes 3\nConnections 4\nTriggers 2\n0->1 id 1 start 0 size 10 recv_done_trigger 1\n1->2 id 2 trigger 1 "
         "size 20 send_done_trigger 2\n0->2 id 3 start 0 size 30 send_done_trigger 2\n2->0 id 4 trigger 2 size 40\n"
         "trigger id 1 oneshot\ntrigger id 2 barrier count 2\n")
    seed("hpcc", 0, "3\n0 1 3 100 2000 2.000000000\n4 1 3 100 500 2.0005\n0 4 3 101 700 2.00000025\n")
    columns = ("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 6\n2\n"
               "qkv -1 5000 ALLREDUCE 1000 6000 NONE 0 7000 ALLREDUCE 9000 10\n"
               "mlp -1 8000 NONE 0 9000 NONE 0 4000 ALLTOALL 6000 10\n")
    seed("columns-graph", 0, columns)
    seed("columns", 4, columns)
    seed("columns-dlrm", 4, "HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 0\n2\na -1 5 NONE 0 6 NONE 0 7 ALLREDUCE 9 1\n"
         "e -1 8 ALLTOALL 64 9 ALLTOALL 64 4 NONE 0 1\n")
    seed("profile", 6, "time_ms,rate_bps\n0,0\n10,5e9\n12.5,1e9\n20,0\n25,0\n")
    seed("arrivals", 7, "time,job,workers,batch,iterations\n0 s,vgg19,4,512,20\n1.5 s,bert,2,,10\n")
    seed("helios", 7, "submit_time,start_time,end_time,gpu_num,state,vc,duration\n"
         "2020-06-01 00:00:01,2020-06-01 00:00:02,2020-06-01 01:00:00,16,COMPLETED,vcA,3598\n"
         "2020-06-01 00:00:03,None,None,0,CANCELLED,vcB,0\n")
    seed("philly", 7, '[{"status": "Pass", "vc": "a", "jobid": "j", "attempts": [{"start_time": "2017-10-07 01:12:09", '
         '"end_time": "2017-10-07 01:13:23", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}, {"start_time": null, '
         '"end_time": "None", "detail": []}], "submitted_time": "2017-10-07 01:11:39", "user": "u"}]')
    seed("libra-communicator", 15, "# groups\nForward: [ 2, -1 ]\nInputGrad: [ 2, -1 ]\nWeightGrad: [ -1, 3 ]\n")
    seed("columns-model", 0x20, "MODEL\n1\na -1 5 ALLREDUCE 9 6 ALLREDUCE 8 7 NONE 0 1\n")
    seed("astra-network", 15, "topology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 9.0 ]\nlatency: [ 5.0, 9 ]\n")
    seed("libra-network", 15, "Topology: [ Ring, FullyConnected, Switch ]\nNpusCount: [ 16, 8, 32 ]\n")


def plan():
    jobs = [{"name": "a", "period_ns": 30000000, "offset_ns": 0}, {"name": "b", "period_ns": 30000000, "offset_ns": 9000000}]
    write("plan", "plain", json.dumps({"schema": "mltcp.plan/1", "serial": 1, "clock": "experiment", "epoch_ns": 5, "jobs": jobs}))
    write("plan", "all", json.dumps({"schema": "mltcp.plan/1", "serial": 2, "clock": "realtime", "epoch_ns": 1 << 60,
                                     "valid_until_ns": 1 << 61, "clock_bound_ns": 1000, "tolerance": 0.1,
                                     "correction": "gradual", "gradual_step": 0.2, "jobs": jobs}))


def http():
    def request(method, target, body=None, more=""):
        text = json.dumps(body) if body is not None else ""
        length = f"Content-Length: {len(text)}\r\n" if body is not None else ""
        data = f"{method} {target} HTTP/1.1\r\nHost: x\r\n{more}{length}\r\n{text}".encode()
        return struct.pack("<HB", len(data), 10) + data

    profile = {"compute_ns": 15000000, "communicate_bytes": 13500000}
    job = lambda name, **more: {"id": name, "workers": 2, "profile": profile, **more}
    write("http", "life", request("POST", "/v1/jobs", job("j1")) + request("POST", "/v1/jobs", job("j2", hosts=["a1", "b1"])) +
          request("GET", "/v1/jobs/j1/plan?after=1&wait_ms=5") + request("GET", "/v1/plans") + request("GET", "/v1/jobs") +
          request("DELETE", "/v1/jobs/j1") + request("GET", "/v1/health"))
    write("http", "placements", request("POST", "/v1/placements", job("j3", candidates=3)) + request("GET", "/v1/topology"))
    phases = {"phases": [{"compute_ns": 1000000}, {"communicate_bytes": 5000, "rate_bps": 1000000000, "overlap": True}]}
    write("http", "phases", request("POST", "/v1/jobs", {"id": "p", "workers": 3, "flows": 2, "profile": phases}, "Expect: 100-continue\r\n"))
    toml = {"toml": "compute = \"15 ms\"\ncommunicate = \"1 MB\"\n"}
    csv = {"csv": "time_ms,rate_bps\n0,0\n10,5e9\n20,0\n", "period_ns": 20000000}
    write("http", "profiles", request("POST", "/v1/jobs", job("t", profile=toml)) + request("POST", "/v1/jobs", job("c", profile=csv)))
    write("http", "refusals", request("PUT", "/v1/jobs") + request("GET", "/v1/nothing?x=1") + request("BREW", "/") +
          request("POST", "/v1/jobs", [], "Transfer-Encoding: chunked\r\n"))
    pod = {"metadata": {"name": "p0", "uid": "u0", "namespace": "d", "labels": {"apps.kubernetes.io/pod-index": "0"},
                        "annotations": {"mltcp.dev/job": "k", "mltcp.dev/workers": "2",
                                        "mltcp.dev/profile": json.dumps(profile)}}, "spec": {}}
    args = {"Pod": pod, "NodeNames": ["a1", "b1", "b2"], "Nodes": None}
    write("http", "kubernetes", request("POST", "/kubernetes/filter", args) + request("POST", "/kubernetes/prioritize", args))


def words():
    def seed(name, reader, text):
        write("words", name, bytes([reader]) + text.encode())

    seed("capture", 0, "run.pcapng,snap=128,size=1MB,files=4")
    for number, text in enumerate(["150 ms", "1.5 s", "250 kB", "13.5MB", "100 Gbps", "1e9", "2 min"]):
        seed(f"unit-{number}", 1, text)
    seed("variable", 2, "1000000")
    seed("key", 2, f"# a key\nmltcp-key-1 {bytes(range(32)).hex()}\n")
    for number, text in enumerate(["[2001:db8::1]:4793", "host-1:0", "unix:run.socket"]):
        seed(f"address-{number}", 3, text)
    seed("hosts", 4, "n[0-2,7],gpu[01-02]-ib,login")
    seed("mark", 7, 'x mltcp:{"profile":{"compute_ns":5,"communicate_bytes":9},"plan":{"number":3,"hosts":["n0","n1"],'
         '"slot_unix_ns":17,"slot_period_ns":9,"time_shift_ns":1,"score":1,"revision":17}} y')
    seed("profile", 8, '{"compute_ns":15000000,"communicate_bytes":13500000,"flows":2}')
    seed("profile-toml", 9, '[[job]]\nname = "a"\ncompute = "15 ms"\ncommunicate = "1 MB"\n')


def control():
    for path in sorted((HERE / "messages").glob("*.json")) if (HERE / "messages").is_dir() else []:
        write("control", path.stem, path.read_text())
    write("control", "join", json.dumps({"type": "join", "version": 8, "device": "udp:eth0",
                                         "address": "0" * 20 + "ffff0a000001f3c0", "host": "a"}))
    write("control", "plan", json.dumps({"type": "plan", "job": 0, "serial": 3, "plan": {
        "period": 30000000, "epoch": 0, "valid_until": 9000000000000000000}}))
    write("control", "failed", json.dumps({"type": "failed", "message": "one\ntwo", "since": 5, "lasted": None, "why": "x"}))


def results(mltcp):
    text = """name = "tiny"
iterations = 2
[bottleneck]
rate = "1 Gbps"
delay = "10 us"
buffer = "100 kB"
[[job]]
name = "a"
compute = "2 ms"
communicate = "100 kB"
[[job]]
name = "b"
compute = "3 ms"
communicate = "50 kB"
"""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tiny.toml"
        file.write_text(text)
        out = lambda name: str(Path(folder) / name)

        def run(*arguments):
            subprocess.run([mltcp, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        def seed(name, reader, path):
            value = json.loads(Path(path).read_text())
            value.pop("provenance", None)
            write("results", name, bytes([reader]) + json.dumps(value, separators=(",", ":")).encode())

        run("run", "tiny.toml", "--policy", "fair", "--policy", "mltcp", "--json", out("r"), "--series", out("s.json"), "--series-interval", "4 ms")
        seed("results", 0, out("r"))
        seed("series", 2, out("s.json"))
        run("schedule", "tiny.toml", "--json", out("sch"))
        seed("schedule", 0, out("sch"))
    write("results", "snapshot", b"\3" + json.dumps({
        "schema": "mltcp.live/1", "kind": "gen", "name": "host 1", "pid": 7, "up_seconds": 1.5, "policy": "fair",
        "jobs": [], "connections": [], "ports": [], "left_out": 0}).encode())


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def claims():
    sealed, has_job = 4, 8
    packets = [ethernet(0x0800) + ipv4(udp(packet(FRAMES["data"] * n, sealed | has_job, number=n))) for n in range(1, 4)]
    packets.append(ethernet(0x86DD) + ipv6(udp(packet(FRAMES["data"], sealed | has_job))))
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))

    def enhanced(data, out, missing=0):
        flags = struct.pack("<HHIHH", 2, 4, 2 if out else 1, 0, 0)
        return block(6, struct.pack("<IIIII", 0, 0, 0, len(data), len(data) + missing) + data + bytes(-len(data) % 4) + flags)

    frames = b"".join(enhanced(data, n % 2 == 1, 9 * (n // 2)) for n, data in enumerate(packets))
    write("claims", "ethernet", b"\0" + section + block(1, struct.pack("<HHI", 1, 0, 0)) + frames)
    behind = lambda data, more: data[:12] + bytes.fromhex(more) + data[14:]
    tagged = [behind(packets[0], more) for more in ("88a8000a8100000b0800", "8847000640ff000641ff", "88641100000100000021",
                                                    "8100000a" * 10 + "0800")]
    tagged += [ethernet(0x86DD) + ipv6(bytes(8), 44), ethernet(0x86DD) + ipv6(bytes(8), 60)]
    write("claims", "tagged", b"\0" + section + block(1, struct.pack("<HHI", 1, 0, 0)) +
          b"".join(enhanced(data, False) for data in tagged))
    raw = b"".join(enhanced(data[14:], False) for data in packets)
    write("claims", "raw", b"\0" + section + block(1, struct.pack("<HHI", 101, 0, 0)) + raw + raw[:50])
    write("claims", "frames", b"\1" + b"".join(bytes([n, len(data)]) + data for n, data in enumerate(packets)))


def main():
    for make in (wire, encapsulation, neighbours, shard, claims, experiment, traces, plan, http, words, control):
        make()
    if len(sys.argv) > 1:
        results(str(Path(sys.argv[1]).resolve()))


if __name__ == "__main__":
    main()
