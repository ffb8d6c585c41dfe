#!/usr/bin/env python3
"""Compares this project with perftest, rdma-core and UCX over software RDMA devices in a guest, for
docs/reference/tables/verbs.md.

    tests/guest/verbs_compare.py                in virtual time, on one processor; all programs sleep while idle
    tests/guest/verbs_compare.py --spin         in real time, on two processors of a quiet machine; all programs spin

The programs run one after another in the same guest, for several rounds (verbs_compare.sh). Prints the median of each
value over the rounds, with the lowest and the highest value.
"""
import argparse
import collections
import glob
import json
import os
import re
import signal
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest_lab  # noqa: E402

UCX_FOLDER = "/usr/lib/x86_64-linux-gnu/ucx"


def make_guest(arguments):
    guest = guest_lab.Guest(virtual_time=not arguments.spin)
    guest.add_modules("veth", "rdma_rxe", "ib_uverbs", "rdma_ucm")
    guest.add_programs("ip", "rdma", f"{arguments.build}/bin/mltcp=/usr/local/bin/mltcp")
    if os.path.exists(f"{arguments.build}/bin/port_bench"):
        guest.add_programs(f"{arguments.build}/bin/port_bench=/usr/local/bin/port_bench")
    else:
        print("port_bench is left out: it is not built", file=sys.stderr)
    for name, package in (("ib_send_bw", "perftest"), ("ibv_ud_pingpong", "ibverbs-utils")):
        try:
            guest.add_programs(name)
        except guest_lab.Lacking:
            raise guest_lab.Lacking(f"this machine has no {name}; install Debian's {package}") from None
    guest.add_verbs()
    try:
        if arguments.ucx:
            guest.add_programs("ucx_perftest", *(f"{path}={path}" for path in glob.glob(f"{UCX_FOLDER}/libuct_ib.so.?")))
    except guest_lab.Lacking:
        print("UCX is left out: this machine has no ucx_perftest (Debian's ucx-utils)", file=sys.stderr)
    guest.add_files(f"{guest_lab.HERE}/verbs_network.sh=/root/verbs_network.sh")
    return guest


def read(output, folder):
    """Returns the measured values by name and message length."""
    found = collections.defaultdict(list)
    for line in output.splitlines():
        words = line.split()
        if not words or words[0] != "measured":
            continue
        name, size, values = words[1], int(words[2]), [float(word) for word in words[3:]]
        if not name.startswith("ucx"):
            found[name, size].append(1e6 / values[0] if name == "ping-per-second" else values[0])
        elif name.endswith("lat"):
            found[name, size].append(2 * values[2])
        else:
            found[name, size].append((values[4] if size > 64 else values[6]) * (1048576 if size > 64 else 1))
    for path in glob.glob(f"{folder}/perf.*.json"):
        with open(path, encoding="utf-8") as stream:
            point = json.load(stream)["points"][0]
        size = point["message_bytes"]
        if "latency" in point:
            found["perf-us", size].append(2 * point["latency"]["p50_ns"] / 1e3)
            found["perf-mean-us", size].append(2 * point["latency"]["mean_ns"] / 1e3)
        if "out" in point:
            found["perf-bytes", size].append(point["out"]["rate_bps"] / 8)
            found["perf-messages", size].append(point["out"]["messages_per_s"])
    return found


def show(part):
    sys.stderr.buffer.write(part)
    sys.stderr.flush()


def cell(values, scale, digits):
    if not values:
        return "-"
    low, middle, high = (f"{scale * value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def ratio(ours, theirs):
    return f"{statistics.median(ours) / statistics.median(theirs):.2f}" if ours and theirs else "-"


def main():
    parser = argparse.ArgumentParser(prog="verbs_compare.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"{guest_lab.ROOT}/build")
    parser.add_argument("--spin", action="store_true", help="on two processors in real time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tests", choices=("all", "latency", "bandwidth"), default="all")
    parser.add_argument("--ucx", default=None, metavar="TRANSPORTS", help="of UCX; default: with --spin, ud_verbs rc_verbs")
    parser.add_argument("--seconds", type=int, default=1500, help="that the guest may take")
    parser.add_argument("--print", action="store_true", help="what the guest says, too")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    if arguments.ucx is None:
        arguments.ucx = "ud_verbs rc_verbs" if arguments.spin else ""
    try:
        guest = make_guest(arguments)
        with open(f"{guest_lab.HERE}/verbs_compare.sh", encoding="utf-8") as stream:
            commands = stream.read()
        words = f"ROUNDS={arguments.rounds} TESTS={arguments.tests} SLEEP={0 if arguments.spin else 1} UCX='{arguments.ucx}'\n"
        with tempfile.TemporaryDirectory(prefix="mltcp-compare-") as folder:
            result = guest.run(words + commands, arguments.seconds, show if arguments.print else None, folder)
            found = read(result.output, folder)
    except guest_lab.Lacking as lacking:
        print(f"skipped: {lacking}")
        return 77
    except guest_lab.Failed as failure:
        print(f"verbs_compare.py: {failure}", file=sys.stderr)
        return 1
    if result.problem or result.status != 0:
        print("" if arguments.print else result.output, result.problem or f"status {result.status}", sep="\n", file=sys.stderr)
    # Each row: quantity, names and message lengths (perftest or rdma-core, this project, UCX), scale, digits, unit.
    rows = (("goodput", ("ib_send_bw-bytes", 4096), ("perf-bytes", 1048576), ("tag_bw", 1048576), 1e-6, 1, "MB/s"),
            ("messages of 64 bytes", ("ib_send_bw-messages", 64), ("perf-messages", 64), ("tag_bw", 64), 1e-3, 1, "thousand/s"),
            ("round trip of 64 bytes, port_bench", ("ibv_ud_pingpong-us", 64), ("ping-per-second", 64), ("tag_lat", 64), 1, 1,
             "us"),
            ("round trip of 64 bytes, mltcp perf", ("ibv_ud_pingpong-us", 64), ("perf-mean-us", 64), ("tag_lat", 64), 1, 1, "us"))
    transports = arguments.ucx.split()
    print("| | ib_send_bw -c UD, ibv_ud_pingpong | ours | times |" + "".join(f" UCX, {one} |" for one in transports))
    print("|---|---|---|---|" + "---|" * len(transports))
    for what, theirs, ours, (ucx, size), scale, digits, unit in rows:
        if not found[theirs] and not found[ours] and arguments.tests != "all":
            continue
        cells = [cell(found[theirs], scale, digits), cell(found[ours], scale, digits), ratio(found[ours], found[theirs])]
        cells += [cell(found[f"ucx-{transport}-{ucx}", size], scale, digits) for transport in transports]
        print(f"| {what}, {unit} | " + " | ".join(cells) + " |")
    for (name, size), values in sorted(found.items()):
        if re.search("lost|sender", name):
            print(f"{name} {size}: {len(values)} times", file=sys.stderr)
    return 1 if result.problem or result.status != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
