#!/usr/bin/env python3
"""Tests this build's DPDK ports on QEMU's NICs, in a guest with or without an IOMMU: `mltcp doctor` and `mltcp perf` as
users run them, and guest_nic_test. The table KINDS contains the differences between NICs. docs/reference/ports.md
contains the results.

    tests/guest/nics_test.py KIND [STAGE...] [GOOGLETEST_ARGUMENT...]
    tests/guest/nics_test.py brief        ctest's guest.nics: the kind virtio, with its most important tests
    tests/guest/nics_test.py guests       `mltcp perf` from one guest to another
"""
import json
import os
import re
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guest_lab  # noqa: E402

BUILD = os.environ.get("MLTCP_BUILD", f"{guest_lab.ROOT}/build")
WITH_IOMMU = "iommu_platform=on,disable-legacy=on,ats=on"  # options of virtio that are needed with an IOMMU
# Maps a kind to QEMU's NIC, its options, number of queues, kernel driver, address bits of the IOMMU (0 for no IOMMU),
# and traits (nic_test.cpp).
KINDS = {
    "virtio": ("virtio-net-pci", WITH_IOMMU, 1, "vfio-pci", 48, "jumbo vfio wide interrupts"),
    "virtio_queues": ("virtio-net-pci", WITH_IOMMU + ",rss=on", 4, "vfio-pci", 39, "queues rss jumbo vfio interrupts"),
    "virtio_uio": ("virtio-net-pci", "", 1, "uio_pci_generic", 0, "jumbo"),
    "e1000e": ("e1000e", "", 1, "vfio-pci", 39, "checksums two_queues jumbo vfio"),
    "vmxnet3": ("vmxnet3", "", 1, "vfio-pci", 39, "queues jumbo vfio interrupts"),
}
BRIEF = ("messages__arrive", "packets_of_a_vlan__*", "jumbo_frames__*", "loop_that_sleeps__*", "registered_memory__*",
         "link_that_goes_and_comes__*", "zz_nic_that_is_unplugged__*")
PREPARE = """
bind {left} {driver} && bind {right} {driver} || exit 1
echo {pages} >/proc/sys/vm/nr_hugepages
ulimit -l unlimited
"""
STAGES = {
    "doctor": """
echo "== doctor"
mltcp doctor --port {left} | grep -E "^ok +port {left}|^missing|^ +port|^warn +NIC"
""",
    "perf": """
echo "== perf"
mltcp perf --listen --once --port {left} --ip 10.0.0.1/24 --udp-port 50000 --idle sleep --memory 64 >/tmp/server 2>&1 &
timeout 100 mltcp perf 127.0.0.1 --port {right} --ip 10.0.0.2/24 --tests latency,out --min 1B --max 16kB --factor 128 \\
  --for 100ms --idle sleep --memory 64 --json /out/perf.json >/tmp/client 2>&1
status=$?
[ $status = 0 ] || kill $! 2>/dev/null
wait
cat /tmp/client /tmp/server
[ $status = 0 ] || exit 1
""",
    "tests": """
echo "== tests"
ulimit -c {core}; echo /out/core >/proc/sys/kernel/core_pattern
MLTCP_NICS="{left} {right}" MLTCP_NIC_TRAITS="{traits}" guest_nic_test --gtest_brief=0 --gtest_color=no {filter}
""",
}


def run(kind, stages, extra, out, seconds):
    device, options, queues, driver, bits, traits = KINDS[kind]
    accelerator = os.environ.get("MLTCP_GUEST_ACCEL", "auto")
    guest = guest_lab.Guest(memory_mb=768, processors=2, accelerator=accelerator)
    if bits:
        guest.add_iommu()
        guest.qemu += ["-global", f"intel-iommu.aw-bits={bits}"]
    guest.add_modules(driver.replace("-", "_"))
    guest.add_dpdk({"e1000e": "net_e1000", "vmxnet3": "net_vmxnet3"}.get(device, "net_virtio"), "net_ring", "net_af_packet")
    guest.add_programs(f"{BUILD}/bin/mltcp", f"{BUILD}/bin/guest_nic_test")
    left, right = (guest.add_nic(device, 1, options, queues) for _ in range(2))
    text = "".join((PREPARE, *(STAGES[stage] for stage in stages)))
    text = text.format(left=left, right=right, driver=driver, traits=traits, pages=80,
                       core="unlimited" if os.environ.get("MLTCP_GUEST_OUT") else 0, filter=" ".join(extra))

    def show(part):
        sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    return guest.run(text, seconds=seconds, output=show, out=out)


# Both guests have a NIC for DPDK on wire 1, and a NIC for the kernel on wire 2, which carries perf's control
# connection.
TOGETHER = """
bind {nic} vfio-pci || exit 1
echo 80 >/proc/sys/vm/nr_hugepages
ulimit -l unlimited
other=$(ls /sys/class/net | grep -v '^lo$')
ip addr add 10.1.0.{number}/24 dev "$other" && ip link set "$other" up || exit 1
"""
SERVER = """
mltcp perf --listen --once --port {nic} --ip 10.0.0.1/24 --udp-port 50000 --idle sleep --memory 64
"""
# The client tries repeatedly, because its guest may start before that of the server.
CLIENT = """
for attempt in $(seq 60); do
  ping -c 1 -W 2 10.1.0.1 >/dev/null && break
done
for attempt in $(seq 12); do
  mltcp perf 10.1.0.1 --port {nic} --ip 10.0.0.2/24 --tests latency,out --min 1B --max 16kB --factor 128 \\
    --for 100ms --idle sleep --memory 64 --json /out/perf.json >/tmp/said 2>&1 && break
  grep -q "no server" /tmp/said || break
done
cat /tmp/said
[ -s /out/perf.json ]
"""


def run_guests(out):
    """Runs two guests at the same time. Returns the error, if any."""
    with tempfile.TemporaryDirectory(prefix="mltcp-wire-") as folder:
        ends = []
        for number, commands in ((1, SERVER), (2, CLIENT)):
            guest = guest_lab.Guest(memory_mb=512, processors=1, accelerator=os.environ.get("MLTCP_GUEST_ACCEL", "auto"))
            guest.add_iommu()
            guest.add_modules("vfio_pci", "virtio_net")
            guest.add_dpdk("net_virtio")
            guest.add_programs("ip", f"{BUILD}/bin/mltcp")
            nic = guest.add_nic("virtio-net-pci", 1, WITH_IOMMU)
            guest.add_nic("virtio-net-pci", 2)
            # NICs of different guests need different MAC addresses.
            guest.qemu = [re.sub(r"mac=52:54:00:00:00:", f"mac=52:54:00:00:0{number}:", word) for word in guest.qemu]
            for wire in (1, 2):
                guest.join_wire(wire, f"{folder}/{number}.{wire}", f"{folder}/{3 - number}.{wire}")
            ends.append((guest, (TOGETHER + commands).format(nic=nic, number=number)))
        results = [None, None]

        def run_one(index):
            results[index] = ends[index][0].run(ends[index][1], 200, out=f"{out}/{index + 1}")
        threads = [threading.Thread(target=run_one, args=(index,)) for index in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wrong = ""
    for index, name in enumerate(("server", "client")):
        result = results[index]
        if result is None:
            return f"the {name}'s guest was not run"
        print(f"== {name}, {result.seconds:.0f} s under {result.accelerator}\n{result.output}", end="")
        if result.problem or result.status != 0:
            wrong += f"{name}: status {result.status}; {result.problem}\n{result.console[-1000:]}\n"
    return wrong


def check(stages, result, out):
    """Checks the result of a guest. Returns the error, if any."""
    if result.problem or result.status != 0:
        return f"status {result.status}; {result.problem}\n{result.console[-2000:]}"
    if "doctor" in stages and not re.search(r"^ok +port .*MTU 1500, 1 queue.*link up", result.output, re.MULTILINE):
        return "the doctor did not open the port"
    if "perf" in stages:
        with open(f"{out}/perf.json", encoding="utf-8") as stream:
            json.load(stream)
    if "tests" in stages and "[  PASSED  ]" not in result.output:
        return "no test ran"
    return ""


def main():
    words = sys.argv[1:]
    if words == ["guests"]:
        with tempfile.TemporaryDirectory(prefix="mltcp-nics-") as folder:
            try:
                wrong = run_guests(os.environ.get("MLTCP_GUEST_OUT", folder))
            except guest_lab.Lacking as reason:
                print(f"Skipped: {reason}")
                return 77
        print(wrong, end="")
        return 1 if wrong else 0
    if words == ["brief"]:
        kind, stages, extra = "virtio", list(STAGES), ["--gtest_filter=" + ":".join(f"NicTest.{name}" for name in BRIEF)]
    elif words and words[0] in KINDS:
        kind = words[0]
        stages = [word for word in words[1:] if word in STAGES] or list(STAGES)
        extra = [f"'{word}'" for word in words[1:] if word not in STAGES]
    else:
        print(f"usage: nics_test.py {'|'.join(KINDS)} [{'|'.join(STAGES)}]... [GOOGLETEST_ARGUMENT...]\n"
              "       nics_test.py brief|guests", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="mltcp-nics-") as folder:
        out = os.environ.get("MLTCP_GUEST_OUT", folder)
        try:
            result = run(kind, stages, extra, out, 400 if words == ["brief"] else 560)
        except guest_lab.Lacking as reason:
            print(f"Skipped: {reason}")
            return 77
        print(f"{kind}: {result.seconds:.0f} s under {result.accelerator}")
        wrong = check(stages, result, out)
    if wrong:
        print(wrong)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
