#!/usr/bin/env python3
"""Runs two jobs over ports on verbs. The jobs share a queue of the guest's kernel. Prints the rows of a table in
docs/reference/tables/verbs.md, one per policy, in some minutes.

    tests/guest/verbs_pair.py [--build build] [--cc dctcp,reno,dcqcn] [--policy fair,mltcp] [--out FOLDER]

Three hosts are processes of mltcp gen, each on a software RDMA device behind a switch (verbs_switch.sh). Two hosts send
to the third one. The switch port towards the third host is the bottleneck, where RED marks. The guest runs in virtual
time (guest_lab), so that results do not depend on other load on this machine.
"""
import argparse
import json
import os
import re
import signal
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest_lab  # noqa: E402

# RED marks at a step, as DCTCP requires. The burst is the shortest one that tc accepts, so that the average queue
# length of RED follows the queue at once.
PACKET = 1100
RED = "min {least} max {most} burst {burst} probability 1 ecn"
EXPERIMENT = """
[bottleneck]
rate   = "{rate} Mbps"
buffer = "200 kB"
ecn    = {{ kmin = "{mark} kB" }}
[[job]]
name        = "a"
compute     = "{compute}"
communicate = "{communicate}"
[[job]]
name        = "b"
compute     = "{compute}"
communicate = "{communicate}"
start       = "3 ms"
# Its intervals are for links that carry a thousand packets in the time that this one takes for ten.
[dcqcn]
notification_interval = "2 ms"
alpha_interval        = "2.2 ms"
increase_interval     = "2.2 ms"
"""
COMMANDS = """
. /root/verbs_switch.sh
cat >/tmp/pair.toml <<'END'
{experiment}
END
counted() {{ switch tc -s qdisc show dev p2 | awk -v policy=$1 '/^ *marked/ {{ print "queue", policy, $2, $4 + $6 }}'; }}
for policy in {policies}; do
  bottleneck p2 {rate}mbit red limit 200000 avpkt {packet} bandwidth {rate}mbit {red}
  mltcp gen /tmp/pair.toml --serve unix:/tmp/pair --policy $policy --cc {cc} --iterations {iterations} \\
    --json /out/$policy.json >/out/$policy.txt 2>&1 &
  coordinator=$!
  for host in 0 1 2; do
    mltcp gen --join unix:/tmp/pair --port verbs:rx$host --ip 10.0.0.$((host + 1))/24 --host $host --idle sleep \\
      >/out/$policy.$host.txt 2>&1 &
  done
  wait $coordinator
  wait
  counted $policy
  switch tc qdisc del dev p2 root
done
"""


def measure(guest, cc, arguments, folder):
    """Returns the rows of the table."""
    experiment = EXPERIMENT.format(rate=arguments.rate, mark=arguments.mark, compute=arguments.compute,
                                   communicate=arguments.communicate)
    least = arguments.mark * 1000
    red = RED.format(least=least, most=least + 1, burst=-(-least // PACKET))
    commands = COMMANDS.format(experiment=experiment, rate=arguments.rate, packet=PACKET, red=red, cc=cc,
                               policies=" ".join(arguments.policy), iterations=arguments.iterations)
    os.makedirs(folder, exist_ok=True)
    result = guest.run(commands, 1800, None, folder)
    if result.problem or result.status != 0:
        said = "".join(open(f"{folder}/{name}", encoding="utf-8").read() for name in sorted(os.listdir(folder))
                       if name.endswith(".txt"))
        raise guest_lab.Failed(f"{result.output}\n{said}\n{result.console[-2000:]}\n{cc}: the guest did not end well "
                               f"({result.problem or f'status {result.status}'})")
    queue = {policy: (marked, dropped) for policy, marked, dropped in
             re.findall(r"^queue (\w+) (\d+) (\d+)$", result.output, re.MULTILINE)}
    for policy in arguments.policy:
        with open(f"{folder}/{policy}.json", encoding="utf-8") as stream:
            run = json.load(stream)["runs"][0]
        jobs = run["jobs"]
        first, last = (", ".join(f"{time / 1e6:.1f}" for time in times) for times in
                       ([job["iteration_ns"][0] for job in jobs], [job["second_half_mean_ns"] for job in jobs]))
        alone = max(job["isolated_ns"] for job in jobs)
        over = max(job["second_half_mean_ns"] / job["isolated_ns"] for job in jobs) - 1
        apart = [max((job.get(key) if job.get(key) is not None else arguments.iterations) for job in jobs)
                 for key in ("interleaved_from", "interleaved_from_5pct")]
        yield (f"| {cc} | {policy} | {alone / 1e6:.1f} | {first} | {last} | {100 * over:.1f}% | "
               + " | ".join("-" if when >= arguments.iterations else str(when) for when in apart)
               + f" | {queue[policy][0]} | {queue[policy][1]} |")


def main():
    parser = argparse.ArgumentParser(prog="verbs_pair.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"{guest_lab.ROOT}/build")
    parser.add_argument("--cc", type=lambda text: text.split(","), default=["dctcp", "reno", "dcqcn"])
    parser.add_argument("--policy", type=lambda text: text.split(","), default=["fair", "mltcp"])
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--rate", type=int, default=40, help="of the bottleneck, in Mbit/s (default 40)")
    parser.add_argument("--mark", type=int, default=16, help="kB of queue above which RED marks (default 16)")
    parser.add_argument("--compute", default="165 ms")
    parser.add_argument("--communicate", default="600 kB")
    parser.add_argument("--ns", type=int, choices=(1, 2, 4), default=2, help="that an instruction of the guest takes (default 2)")
    parser.add_argument("--out", metavar="FOLDER", help="where results and what was said go")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        guest = guest_lab.Guest(virtual_time=arguments.ns)
        guest.add_modules("veth", "bridge", "sch_tbf", "sch_red", "rdma_rxe", "ib_uverbs")
        guest.add_programs("ip", "tc", "rdma", f"{arguments.build}/bin/mltcp=/usr/local/bin/mltcp")
        guest.add_files(f"{guest_lab.HERE}/verbs_switch.sh=/root/verbs_switch.sh")
        guest.add_verbs()
        with tempfile.TemporaryDirectory(prefix="mltcp-pair-") as temporary:
            print("| algorithm | policy | alone, ms | first, ms | second half, ms | over alone | interleaved from | within 5% from "
                  "| marked | dropped |")
            print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
            for cc in arguments.cc:
                for row in measure(guest, cc, arguments, f"{arguments.out or temporary}/{cc}"):
                    print(row, flush=True)
    except guest_lab.Lacking as lacking:
        print(f"skipped: {lacking}")
        return 77
    except guest_lab.Failed as failure:
        print(f"verbs_pair.py: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
