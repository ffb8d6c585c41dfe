#!/usr/bin/env python3
"""Tests ports on verbs over the kernel's RDMA devices: verbs_test.py MLTCP RDMA_GUEST_TEST [--gloo RANK] [--soak S]

Runs verbs.sh in a guest, in virtual time, so that the tests need no quiet machine. With --real-time, runs the guest in
real time on two processors, which the host schedules."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest_lab  # noqa: E402

SECONDS = 240


def main():
    parser = argparse.ArgumentParser(prog="verbs_test.py", description=__doc__)
    parser.add_argument("mltcp")
    parser.add_argument("tests")
    parser.add_argument("--gloo", metavar="RANK", help="the program guest_gloo_rank")
    parser.add_argument("--soak", metavar="SECONDS", type=int, default=4, help="how long mltcp soak runs (default: 4)")
    parser.add_argument("--real-time", action="store_true")
    arguments = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        guest = guest_lab.Guest(virtual_time=not arguments.real_time)
        guest.add_modules("veth", "rdma_rxe", "ib_uverbs", "sch_tbf", "sch_red")
        guest.add_programs(f"{arguments.mltcp}=/usr/local/bin/mltcp", f"{arguments.tests}=/usr/local/bin/rdma_guest_test", "ip",
                           "tc", "rdma")
        if arguments.gloo:
            guest.add_programs(f"{arguments.gloo}=/usr/local/bin/guest_gloo_rank")
        guest.add_files(f"{here}/verbs_network.sh=/root/verbs_network.sh")
        guest.add_verbs()
        with open(f"{here}/verbs.sh", encoding="utf-8") as stream:
            commands = f"SOAK={arguments.soak}s\n{stream.read()}"

        def show(part):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        result = guest.run(commands, SECONDS + 60 * arguments.soak, show)
    except guest_lab.Lacking as lack:
        print(f"skipped: {lack}")
        return 77
    except guest_lab.Failed as failure:
        print(f"verbs_test: {failure}", file=sys.stderr)
        return 1
    if result.problem:
        print(f"verbs_test: {result.problem}\n{result.console[-4000:]}", file=sys.stderr)
        return 1
    return result.status


if __name__ == "__main__":
    sys.exit(main())
