#!/usr/bin/env python3
"""QEMU's NICs under this build's DPDK ports, in a guest with an IOMMU or without: guest_nic_test, and the commands as users
run them. What differs by the kind of NIC is in a table here; docs/guest.md tells what was seen."""
import os
import re
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guest_lab  # noqa: E402

BUILD = os.environ.get("MLTCP_BUILD", f"{guest_lab.ROOT}/build")
WITH_IOMMU = "iommu_platform=on,disable-legacy=on,ats=on"  # as virtio wants it
# kind: QEMU's NIC, its options, queues, driver of the kernel, and what holds (see nic_test.cpp).
KINDS = {
    "virtio": ("virtio-net-pci", WITH_IOMMU, 1, "vfio-pci", "jumbo vfio interrupts"),
    "virtio_queues": ("virtio-net-pci", WITH_IOMMU + ",rss=on", 4, "vfio-pci", "queues rss jumbo vfio interrupts"),
    "virtio_uio": ("virtio-net-pci", "", 1, "uio_pci_generic", "jumbo"),
    "e1000e": ("e1000e", "", 1, "vfio-pci", "checksums jumbo vfio"),
    "vmxnet3": ("vmxnet3", "", 1, "vfio-pci", "checksums queues jumbo vfio interrupts"),
}
COMMANDS = """
bind {left} {driver} && bind {right} {driver} || exit 1
echo {pages} >/proc/sys/vm/nr_hugepages
ulimit -l unlimited
echo "== doctor"
mltcp doctor --port {left} | grep -E "^ok +port {left}|^missing|^ +port|^warn +NIC"
echo "== perf"
mltcp perf --listen --once --port {left} --ip 10.0.0.1/24 --udp-port 50000 --idle sleep --memory 64 >/tmp/server 2>&1 &
timeout 60 mltcp perf 127.0.0.1 --port {right} --ip 10.0.0.2/24 --tests latency,out --least 1B --most 64kB --factor 256 \\
  --for 100ms --idle sleep --memory 64 --json /out/perf.json >/tmp/client 2>&1 || {{ cat /tmp/client /tmp/server; exit 1; }}
wait
cat /tmp/client
echo "== tests"
ulimit -c unlimited; echo /out/core >/proc/sys/kernel/core_pattern
MLTCP_NICS="{left} {right}" MLTCP_NIC_TRAITS="{traits}" guest_nic_test --gtest_brief=0 --gtest_color=no {filter}
"""


def run(kind, extra=()):
    device, options, queues, driver, traits = KINDS[kind]
    accelerator = os.environ.get("MLTCP_GUEST_ACCEL", "auto")
    guest = guest_lab.Guest(memory_mb=1280, processors=2, accelerator=accelerator)
    if driver == "vfio-pci":
        guest.add_iommu()
    guest.add_modules(driver.replace("-", "_"))
    guest.add_dpdk("net_virtio", "net_e1000", "net_vmxnet3", "net_ring", "net_af_packet")
    guest.add_programs(f"{BUILD}/bin/mltcp", f"{BUILD}/bin/guest_nic_test")
    left, right = (guest.add_nic(device, 1, options, queues) for _ in range(2))
    text = COMMANDS.format(left=left, right=right, driver=driver, traits=traits, pages=120 if driver != "vfio-pci" else 0,
                           filter=" ".join(extra))

    def show(part):
        sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    return guest.run(text, seconds=200, output=show, out=os.environ.get("MLTCP_GUEST_OUT"))


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in KINDS:
        print(f"usage: nics_test.py {'|'.join(KINDS)} [GOOGLETEST_ARGUMENT...]", file=sys.stderr)
        return 2
    kind = sys.argv[1]
    try:
        result = run(kind, sys.argv[2:])
    except guest_lab.Lacking as reason:
        print(f"Skipped: {reason}")
        return 77
    print(f"{kind}: {result.seconds:.0f} s under {result.accelerator}")
    if result.problem or result.status != 0:
        print(f"status {result.status}; {result.problem}\n{result.console[-2000:]}")
        return 1
    assert re.search(rf"^ok +port .*MTU 1500, 1 queue.*link up", result.output, re.MULTILINE), "the doctor's port"
    assert "done" in result.output or "one way" in result.output, "perf"
    return 0


if __name__ == "__main__":
    sys.exit(main())
