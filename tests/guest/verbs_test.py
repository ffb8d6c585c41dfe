#!/usr/bin/env python3
"""Ports on verbs over the kernel's own RDMA devices, in a guest: verbs_test.py MLTCP RDMA_GUEST_TEST

What happens there is in verbs.sh."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest_lab  # noqa: E402

SECONDS = 240


def main():
    mltcp, tests = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        guest = guest_lab.Guest()
        guest.add_modules("veth", "rdma_rxe", "ib_uverbs", "sch_tbf", "sch_red")
        guest.add_programs(f"{mltcp}=/usr/local/bin/mltcp", f"{tests}=/usr/local/bin/rdma_guest_test", "ip", "tc", "rdma")
        guest.add_files(f"{here}/verbs_network.sh=/root/verbs_network.sh")
        guest.add_verbs()
        with open(f"{here}/verbs.sh", encoding="utf-8") as stream:
            commands = stream.read()

        def show(part):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        result = guest.run(commands, SECONDS, show)
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
