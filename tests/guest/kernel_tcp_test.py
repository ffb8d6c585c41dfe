"""Tests MLTCP for kernel TCP in a guest: the command `mltcp kernel`, as root, and its effect on connections.

    kernel_tcp_test.py MLTCP TCP_JOBS           runs the tests, as ctest does
    kernel_tcp_test.py MLTCP TCP_JOBS --table [--job MS:BYTES] [NAME...]
                                                prints tables of docs/reference/tables/kernel.md, in some minutes; --job
                                                sets the computing and sending of both jobs

The guest runs in virtual time: QEMU counts the instructions of one processor, each takes 2 ns, and waiting takes no
real time. Results therefore do not depend on other load on this machine. Exit status 77: the tests were skipped, for
the printed reason.
"""
import json
import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest_lab  # noqa: E402

# A link of 40 Mbit/s. RED drops packets at random while its average queue is 15 to 45 kB, and drops all packets above
# 45 kB. Without RED, a full queue would mostly drop packets of the sender that has just increased its window. Shares
# would then be equal, however fast each sender increases its window. For DCTCP, RED marks packets from 60 kB on, so
# that windows have tens of packets.
#
# netem adds a delay of 0.1 ms, and ends the accounting of packets to their socket. With this accounting, TCP small
# queues would hold back packets, because the queue is at the sender's own interface. TCP does not hold back packets for
# a queue in a switch.
NETWORK = """
ip netns add peer
ip link add va type veth peer name vb
ip link set vb netns peer
ip addr add 10.9.0.1/24 dev va
ip link set va up
ip link set lo up
ip netns exec peer ip addr add 10.9.0.2/24 dev vb
ip netns exec peer ip link set vb up
# IPv6 would ask for routers, without ECN, whenever it likes.
sysctl -q -w net.ipv6.conf.va.disable_ipv6=1
ip netns exec peer sysctl -q -w net.ipv6.conf.vb.disable_ipv6=1
ethtool -K va tso off gso off > /dev/null
sysctl -q -w net.ipv4.tcp_slow_start_after_idle=0 net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_ecn=1
ip netns exec peer sysctl -q -w net.ipv4.tcp_ecn=1
link() {
  tc qdisc replace dev va root handle 1: netem delay 100us limit 10000
  tc qdisc replace dev va parent 1:1 handle 2: tbf rate $1 burst 3000 limit 100000
}
red() {
  tc qdisc del dev va parent 2:1 2> /dev/null  # counts begin anew
  tc qdisc add dev va parent 2:1 handle 10: red limit 200000 avpkt 1500 bandwidth 40mbit "$@"
}
drop() { red min 15000 max 45000 burst 17 probability 0.1; }
mark() { red min 60000 max 60001 burst 41 probability 1 ecn; }
link 40mbit
drop
run() { tcp_jobs run peer 10.9.0.2 "$@"; }
at() { echo "== $1"; }
timeouts() {
  awk '/^TcpExt/ { if (n++ == 0) split($0, name); else for (i in name) if (name[i] == "TCPTimeouts") print "timeouts", $i }' \\
    /proc/net/netstat
}
"""
# 250 ms of computing and 209 ms of sending: each job can send while the other one computes
BYTES, COMPUTE = 1000000, 250

REFUSALS = """
rmmod tcp_dctcp
at doctor; mltcp doctor | grep "kernel TCP"
at no-modprobe; mltcp kernel load --cc dctcp
printf '#!/bin/sh\\nexit 1\\n' > /tmp/modprobe
chmod +x /tmp/modprobe
echo /tmp/modprobe > /proc/sys/kernel/modprobe
at no-module; mltcp kernel load --cc dctcp
echo /sbin/modprobe > /proc/sys/kernel/modprobe
insmod /usr/lib/modules/*/kernel/net/ipv4/tcp_dctcp.ko
at nothing; mltcp kernel status
at nothing-nobody; setpriv --reuid 65534 --clear-groups mltcp kernel status
at set-early; mltcp kernel set --gap 5ms
at user; setpriv --reuid 65534 --clear-groups mltcp kernel load
at rights
for right in net_admin bpf perfmon sys_admin; do setpriv --bounding-set -$right --inh-caps -$right mltcp kernel load; done
at container; unshare --user --map-root-user mltcp kernel load
mkdir /tmp/none
mount --bind /tmp/none /sys/kernel/btf
at no-types; mltcp kernel load
umount /sys/kernel/btf
mkdir /sys/fs/bpf/mltcp
chown 65534 /sys/fs/bpf/mltcp
at others-folder; mltcp kernel load
rmdir /sys/fs/bpf/mltcp
flock -o /run/mltcp-kernel.lock sleep 30 & holder=$!
sleep 1
at locked; mltcp kernel load
kill $holder
umount /sys/fs/bpf
at no-bpffs; mltcp kernel load
at no-bpffs-doctor; mltcp doctor | grep "kernel TCP"
mount -t bpf bpf /sys/fs/bpf
mount --bind /tmp/none /proc/sys/net/ipv4
at no-list; mltcp kernel load
umount /proc/sys/net/ipv4
at wrong-cc; mltcp kernel load --cc vegas
at wrong-function; mltcp kernel load --function F7
at nothing-left; ls /sys/fs/bpf
"""
LOADING = """
at load; mltcp kernel load
at again; mltcp kernel load
at loaded-doctor; mltcp doctor | grep "kernel TCP"
as_nobody() { setpriv --reuid 65534 --clear-groups "$@" || echo status $?; }
at nobody; as_nobody mltcp kernel status
at nobody-json; as_nobody mltcp kernel status --json -
chmod 0700 /sys/fs/bpf
at nobody-outside; as_nobody mltcp kernel status
chmod 1777 /sys/fs/bpf
at nobody-nowhere; unshare --mount sh -c 'umount /sys/fs/bpf; setpriv --reuid 65534 --clear-groups mltcp kernel status'
mltcp kernel set --function F2
mltcp kernel unload --cc reno
at without-reno; mltcp kernel status
at beside-settings; mltcp kernel load --cc reno --function F3
at beside-marks; mltcp kernel load --marks 0xff
at beside; mltcp kernel load --cc reno,cubic
at beside-same; mltcp kernel status
mltcp kernel unload --cc cubic,dctcp
at beside-all; mltcp kernel load
mltcp kernel set --function F1
at available; cat /proc/sys/net/ipv4/tcp_available_congestion_control
at no-cgroup; mltcp kernel set --cgroup /sys/fs/cgroup/nowhere
at root-cgroup; mltcp kernel set --cgroup /sys/fs/cgroup
at forget; mltcp kernel set --job 9 --forget
"""
# Kills `mltcp kernel load` at several moments while it loads maps and algorithms. Then unloads algorithms whose pins
# are gone.
LEFT_BEHIND = """
uptime() { cut -d " " -f 1 /proc/uptime; }
begin=$(uptime); mltcp kernel load > /dev/null; end=$(uptime)
mltcp kernel unload
at killed
for part in 1 2 3 5 7 10; do
  after=$(awk "BEGIN { print ($end - $begin) * $part / 11 }")
  mltcp kernel load > /dev/null & loader=$!
  sleep $after; kill -KILL $loader; wait $loader
  echo pinned $(ls /sys/fs/bpf /sys/fs/bpf/mltcp 2> /dev/null)
  mltcp kernel unload
done
at nothing-half; ls /sys/fs/bpf; cat /proc/sys/net/ipv4/tcp_available_congestion_control
mltcp kernel load --cc reno > /dev/null; ln /sys/fs/bpf/mltcp/mltcp_common /sys/fs/bpf/mltcp/mltcp_cubic
at wrong-pin; mltcp kernel unload --cc cubic
rm -r /sys/fs/bpf/mltcp
at wrong-pin-gone; mltcp kernel unload
at lost; mltcp kernel load --cc reno; umount /sys/fs/bpf; mount -t bpf bpf /sys/fs/bpf
at lost-status; mltcp kernel status
at lost-load; mltcp kernel load
at lost-unload; mltcp kernel unload; cat /proc/sys/net/ipv4/tcp_available_congestion_control
"""
# Starts more jobs than the kernel's map can hold. A minute after they have ended, a new job must fit into the map.
MANY = """
mkfifo /tmp/more; exec 3<> /tmp/more
tcp_jobs many peer 10.9.0.2 mltcp_reno 1001 1030 < /tmp/more > /tmp/many 2>&1 3>&- & many=$!
for i in 1 2 3 4 5 6 7 8 9 10; do grep -q . /tmp/many && break; sleep 1; done
at many; cat /tmp/many; mltcp kernel status
at no-room; run mltcp_reno 0.5 3000:0:0:0; mltcp kernel status | grep "mark 3000 "
exec 3>&-; wait $many
sleep 62
at room; run mltcp_reno 0.5 3000:0:0:0; mltcp kernel status | grep "mark 3000 "
"""
WITHOUT_ECN = """
mark
marked() { tc -s qdisc show dev va | awk '/marked/ { print "marked", $2, "early", $4 }'; }
at ecn; run mltcp_dctcp 0.8 21:0:0:0; marked
mark
at no-ecn; run mltcp_dctcp/reno 0.8 22:0:0:0; marked
drop
at no-ecn-left; mltcp kernel status
"""
JOBS_OF_CGROUPS = """
mkdir -p /sys/fs/cgroup/train/a /sys/fs/cgroup/train/b /sys/fs/cgroup/other
mltcp kernel set --cgroup /sys/fs/cgroup/train --function F2 --bytes 200kB
mltcp kernel set --job 7 --gap 30ms
sh -c 'echo $$ > /sys/fs/cgroup/train/a/cgroup.procs; exec tcp_jobs run peer 10.9.0.2 mltcp_reno 1 0:50:100000:0' > /dev/null &
first=$!
sh -c 'echo $$ > /sys/fs/cgroup/train/b/cgroup.procs; exec tcp_jobs run peer 10.9.0.2 mltcp_reno 1 0:50:100000:0' > /dev/null &
second=$!
sh -c 'echo $$ > /sys/fs/cgroup/other/cgroup.procs; exec tcp_jobs run peer 10.9.0.2 mltcp_cubic 1 0:50:100000:0 7:50:100000:0' > /dev/null
wait $first $second
at cgroups; mltcp kernel status
mltcp kernel set --job 7 --forget
at forgotten; mltcp kernel status --json -
mkdir /sys/fs/cgroup/gone
gone=$(stat -c %i /sys/fs/cgroup/gone)
mltcp kernel set --cgroup /sys/fs/cgroup/gone
rmdir /sys/fs/cgroup/gone
at gone; mltcp kernel status
at gone-forget; mltcp kernel set --cgroup $gone --forget
mkdir /sys/fs/cgroup/123
at digits; (cd /sys/fs/cgroup; mltcp kernel set --cgroup 123; mltcp kernel set --cgroup 123 --forget)
mltcp kernel set --job 8
"""
# Settings of removed cgroups are deleted only if the map is full when a new setting is added, and only if the program
# can see that the cgroup is removed.
FULL = """
mkdir /sys/fs/cgroup/gone
mltcp kernel set --cgroup /sys/fs/cgroup/gone
rmdir /sys/fs/cgroup/gone
tcp_jobs settings 10001 1021  # with the cgroups' and job 8's: as many as there may be
at full-unseen
setpriv --bounding-set -dac_read_search --inh-caps -dac_read_search mltcp kernel set --job 9
at full-unnamed; setpriv --bounding-set -dac_read_search --inh-caps -dac_read_search mltcp kernel status | grep ^cgroup
at full-kept; mltcp kernel status | grep -e "^/train " -e gone
at full; mltcp kernel set --job 9; mltcp kernel status | grep -e "^/train " -e gone -e "^mark 9 "
at fuller; mltcp kernel set --job 10
tcp_jobs settings 10001 -1021
mltcp kernel set --job 9 --forget
"""
# The peer of one connection of a job becomes unreachable while data is in flight.
STUCK = """
ip netns exec peer ip addr add 10.9.0.3/24 dev vb
tcp_jobs run peer 10.9.0.3 mltcp_reno 9 31:0:0:0 > /dev/null 2>&1 & stuck=$!
sleep 0.4
ip netns exec peer ip addr del 10.9.0.3/24 dev vb
at stuck-jobs; run mltcp_reno 4 31:50:100000:0
at stuck; mltcp kernel status
kill -KILL $stuck
ip netns exec peer ip addr add 10.9.0.3/24 dev vb
sleep 10  # the next retransmission meets nobody, and is told so
"""
# Tests the algorithm with which a new network namespace starts, and whether the namespace keeps it. Also tests numbers
# of jobs in packet marks.
NAMESPACES = """
sysctl -q -w net.ipv4.tcp_congestion_control=mltcp_cubic
ip netns add later
sysctl -q -w net.ipv4.tcp_congestion_control=cubic
at namespaces
for name in peer later; do
  ip netns exec $name sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_slow_start_after_idle
done
sysctl net.ipv4.tcp_slow_start_after_idle
ip netns exec later sysctl -w net.ipv4.tcp_congestion_control=mltcp_reno
ip netns del later
at marks
mltcp kernel unload; mltcp kernel load --marks 0xff00
run mltcp_reno 0.3 1810:0:0:0 7:0:0:0
mltcp kernel status
mltcp kernel set --job 1792 --gap 9ms
mltcp kernel set --job 7
mltcp kernel unload; mltcp kernel load
"""
# The peer is unreachable for more than three timeouts. When this begins, job 32 is in the middle of an iteration, and
# job 33 sends the only packet of an iteration.
RETURNING = """
ip netns exec peer ip addr replace 10.9.0.3/24 dev vb
tcp_jobs run peer 10.9.0.3 mltcp_reno 6 32:100:2000000:0 > /tmp/returning 2>&1 & returning=$!
sleep 1
tcp_jobs run peer 10.9.0.3 mltcp_reno 1 33:1500:1000:0 > /tmp/single 2>&1 & single=$!
sleep 1.45
ip netns exec peer ip addr del 10.9.0.3/24 dev vb
sleep 2.3
at away; mltcp kernel status --json -
ip netns exec peer ip addr add 10.9.0.3/24 dev vb
wait $returning $single
at returning; cat /tmp/returning /tmp/single
at returned; mltcp kernel status --json -
at left; ip netns exec peer ip addr del 10.9.0.3/24 dev vb
"""
UNLOADING = """
run mltcp_reno 1.5 1:0:0:0 > /tmp/stream &
stream=$!
sleep 0.7
at default; sysctl -q -w net.ipv4.tcp_congestion_control=mltcp_cubic; mltcp kernel unload
sysctl -q -w net.ipv4.tcp_congestion_control=cubic
at unload; mltcp kernel unload
at unavailable; cat /proc/sys/net/ipv4/tcp_available_congestion_control
at new; run mltcp_reno 1 1:0:0:0
wait $stream
at stream; cat /tmp/stream
at unload-again; mltcp kernel unload
at load-one; mltcp kernel load --cc cubic --function 0.5
at one; mltcp kernel status
mltcp kernel unload
mltcp kernel load --cc dctcp > /dev/null
at no-ecn-alone; run mltcp_dctcp/reno 0.3 1:0:0:0
at unload-dctcp; mltcp kernel unload
"""
# With the default timeout, a job that loses the last packet of an iteration waits 200 ms, whatever the algorithm. Jobs
# that had separated would then collide again.
QUICK_TIMEOUTS = "ip route change 10.9.0.0/24 dev va src 10.9.0.1 rto_min 10ms"
TRAFFIC = f"""
mltcp kernel set --function fair
at single-reno; run reno 2.4 1:0:0:0
at single-mltcp_reno; run mltcp_reno 2.4 1:0:0:0
mltcp kernel set --function F1
{QUICK_TIMEOUTS}
at alone; run reno 1.6 0:{COMPUTE}:{BYTES}:0
at both; run mltcp_reno 10 13:{COMPUTE}:{BYTES}:0 14:{COMPUTE}:{BYTES}:50
at learned; mltcp kernel status
ip route change 10.9.0.0/24 dev va src 10.9.0.1
"""


EVERYTHING = (REFUSALS + LEFT_BEHIND + LOADING + JOBS_OF_CGROUPS + FULL + WITHOUT_ECN + STUCK + RETURNING + TRAFFIC + MANY
              + NAMESPACES + UNLOADING)


class VirtualTime(guest_lab.Guest):
    def command(self, folder):
        words = super().command(folder)
        words[words.index("-accel") + 1] = "tcg,thread=single"
        return words + ["-icount", "shift=1,sleep=off"]


def make_guest(program, jobs):
    guest = VirtualTime(processors=1, accelerator="tcg")
    guest.add_modules("veth", "sch_netem", "sch_tbf", "sch_red", "tcp_dctcp")
    guest.add_programs("ip", "tc", "ethtool", "flock", "setpriv", "unshare", program, jobs)
    return guest


def run(guest, commands, seconds):
    """Runs `commands` in the guest. Returns the output of each section ("== NAME") by its name."""
    result = guest.run("exec 2>&1\n" + NETWORK + commands, seconds)
    if result.problem or result.status != 0:
        print(result.output, result.console[-3000:], result.problem, sep="\n")
        sys.exit("kernel_tcp_test.py: the guest did not end well")
    parts = re.split(r"^== (\S+)\n", result.output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def numbers(text):
    """Returns the numbers that tcp_jobs printed for each job."""
    return [[float(x) for x in found.split()] for found in re.findall(r"^job \d+:(.*)$", text, flags=re.MULTILINE)]


def mean(values):
    return sum(values) / len(values)


def later(job):
    """Returns the mean of the iterations from the twentieth on."""
    return mean(job[19:])


class KernelTcp(unittest.TestCase):
    found = {}

    def said(self, name, *words):
        for word in words:
            self.assertIn(word, self.found[name], name)

    def line(self, name, *words):
        self.said(name, *words)
        self.assertEqual(len(self.found[name].splitlines()), 1, self.found[name])

    def test_refusals_are_one_line_with_the_cure(self):
        self.said("nothing", "not loaded", "to load them: mltcp kernel load")
        self.line("set-early", "MLTCP for kernel TCP is not loaded; to load it: mltcp kernel load")
        self.line("user", "is missing, which is needed to change kernel TCP; run mltcp as root")
        self.line("no-bpffs", "/sys/fs/bpf is not a BPF file system", "mount -t bpf -o mode=0700 bpf /sys/fs/bpf")
        self.line("no-list", "/proc/sys/net/ipv4/tcp_available_congestion_control cannot be read")
        self.line("wrong-cc", '"vegas"', "give one of reno, cubic, dctcp")
        self.line("wrong-function", 'no aggressiveness function "F7"')
        self.assertEqual(self.found["nothing-left"], "")
        self.line("again", "mltcp_reno, mltcp_cubic, mltcp_dctcp are loaded; change settings by mltcp kernel set, or")
        self.line("no-cgroup", "--cgroup:", "No such file", "give the folder of a cgroup")
        self.line("root-cgroup", "is the root")
        self.line("forget", "this job has no settings of its own")

    def test_a_user_who_is_not_shown_what_is_loaded_is_not_told_that_nothing_is(self):
        expected = ("mltcp: mltcp_reno, mltcp_cubic, mltcp_dctcp are loaded, but only root can see jobs and connections; "
                    "run mltcp as root")
        for name in ("nobody", "nobody-json", "nobody-outside"):
            self.assertEqual(self.found[name], f"{expected}\nstatus 1\n", name)
        self.line("nobody-nowhere", expected)
        self.assertEqual(self.found["nothing-nobody"], self.found["nothing"], "nothing is what there is")

    def test_doctor_tells_what_there_is(self):
        self.assertRegex(self.found["doctor"], r"^ok +kernel TCP +not loaded, but supported by Linux 6\S+; to load it: sudo mltcp kernel load\n")
        self.assertRegex(self.found["no-bpffs-doctor"], r"^missing +kernel TCP +/sys/fs/bpf is not a BPF file system")
        self.said("no-bpffs-doctor", "  kernel TCP: mount -t bpf -o mode=0700 bpf /sys/fs/bpf\n")
        self.assertRegex(self.found["loaded-doctor"], r"^ok +kernel TCP +mltcp_reno, mltcp_cubic, mltcp_dctcp are loaded; new")
        self.said("loaded-doctor", "get cubic by default")

    def test_what_is_missing_is_named(self):
        said = self.found["rights"].splitlines()
        self.assertEqual(len(said), 4, said)
        for line, right in zip(said, ("CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN")):
            self.assertIn(f"{right} is missing, which is needed to change kernel TCP; run mltcp as root", line)
        cure = "load its module tcp_dctcp, or boot a kernel that was built with CONFIG_TCP_CONG_DCTCP, or leave it out by --cc"
        self.line("no-modprobe", f"fetches no modules by itself, for there is no /sbin/modprobe; {cure}")
        self.line("no-module", f"the kernel has no dctcp now, and /tmp/modprobe tcp_dctcp did not bring it; {cure}")
        self.line("container", "Operation not permitted", "run it as root, outside of containers")
        self.line("others-folder", "/sys/fs/bpf/mltcp is open to users other than root; remove it")
        self.line("locked", "another mltcp kernel command has been running for 10 s; try again when it has ended")
        self.line("no-types", "there is no /sys/kernel/btf/vmlinux; boot a kernel with CONFIG_DEBUG_INFO_BTF")

    def test_a_command_that_is_killed_leaves_nothing_half(self):
        pinned = re.findall(r"^pinned(.*)$", self.found["killed"], flags=re.MULTILINE)
        self.assertEqual(len(pinned), 6)
        self.assertGreater(len(set(pinned)), 2, "killed at the same few places")
        self.assertNotRegex(self.found["killed"], "can't|refuses")
        self.assertNotIn("mltcp", self.found["nothing-half"])
        self.line("wrong-pin", "mltcp_cubic can't be taken out", "rm -r /sys/fs/bpf/mltcp, then mltcp kernel unload")
        self.assertEqual(self.found["wrong-pin-gone"], "")
        self.said("lost-status", "lost: registered, but not pinned; run mltcp kernel unload to remove it")
        self.line("lost-load", "mltcp_reno is registered, but not pinned in /sys/fs/bpf/mltcp", "mltcp kernel unload first")
        self.assertNotIn("mltcp", self.found["lost-unload"])

    def test_more_jobs_than_there_is_room_for_have_gain_one(self):
        self.said("many", "1030 connections")
        self.assertRegex(self.found["many"], r"mltcp_reno +loaded +1030")
        rows = [line for line in self.found["many"].splitlines() if line.startswith(("mark ", "/"))]
        self.assertEqual(len(rows), 1024 + 1, "mark 8 has nothing but settings")
        self.assertGreater(numbers(self.found["no-room"])[0][0], 5e5)
        self.assertNotIn("mark 3000", self.found["no-room"])
        self.said("room", "mark 3000")

    def test_dctcp_without_ecn_is_reno(self):
        self.assertNotIn("goes by", self.found["ecn"])
        marked, early = map(int, re.search(r"^marked (\d+) early (\d+)$", self.found["ecn"], flags=re.MULTILINE).groups())
        self.assertGreater(marked, 100)
        self.assertLess(early, 5, "what claims no ECN are ARP and a reset, not data")
        self.said("no-ecn", "job 22 goes by mltcp_reno")
        self.assertRegex(self.found["no-ecn"], r"\nmarked 0 early [1-9]", "packets that claim ECN")
        self.assertGreater(numbers(self.found["no-ecn"])[0][0], 1e6)
        for name in ("reno", "dctcp"):
            self.assertRegex(self.found["no-ecn-left"], f"mltcp_{name} +loaded +0\n")
        self.said("no-ecn-alone", "job 1 goes by reno")
        self.assertEqual(self.found["unload-dctcp"], "")

    def test_all_three_are_loaded(self):
        self.said("load", "loaded: mltcp_reno, mltcp_cubic, mltcp_dctcp")
        self.said("available", "mltcp_reno", "mltcp_cubic", "mltcp_dctcp")

    def test_one_that_was_unloaded_comes_back_beside_the_others(self):
        self.said("without-reno", "F2, gap learned")
        self.assertRegex(self.found["without-reno"], r"mltcp_reno +not loaded")
        for name in ("beside-settings", "beside-marks"):
            self.line(name, "mltcp_cubic, mltcp_dctcp are loaded, and all loaded algorithms share their settings")
        for name in ("beside", "beside-all"):
            self.said(name, "loaded: mltcp_reno, mltcp_cubic, mltcp_dctcp\n")
        self.said("beside-same", "F2, gap learned")

    def test_jobs_are_cgroups_and_marks(self):
        rows = {line.split()[0]: line for line in self.found["cgroups"].splitlines() if line}
        self.assertIn("F2, gap learned, bytes 200 kB", rows["/train"], "one job of two cgroups")
        self.assertNotIn("/train/a", rows)
        self.assertIn("common", rows["/other"])
        self.assertIn("F1, gap 30 ms, bytes learned", rows["mark"])
        self.assertRegex(rows["/other"], r" 100 kB +5\d\.\d ms")
        status = json.loads(self.found["forgotten"])
        self.assertEqual(status["schema"], "mltcp.kernel/1")
        jobs = {job["name"]: job for job in status["jobs"]}
        self.assertTrue(jobs["/train"]["own_settings"])
        self.assertFalse(jobs["mark 7"]["own_settings"])
        self.assertEqual(jobs["mark 7"]["settings"]["gap_ns"], 0)
        self.assertEqual(jobs["/train"]["connections"] + jobs["/train"]["in_flight"], 0)

    def test_settings_of_cgroups_that_are_gone_can_be_forgotten(self):
        self.said("gone", ", which is gone")
        self.assertEqual(self.found["gone-forget"], "")
        self.assertEqual(self.found["digits"], "")

    def test_settings_of_cgroups_go_only_where_there_is_no_room_and_they_are_surely_gone(self):
        full = "1024 jobs have settings, which is the maximum; remove one by mltcp kernel set --forget"
        self.line("full-unseen", full)
        self.said("full-unnamed", "F2, gap learned, bytes 200 kB")
        self.assertNotIn("gone", self.found["full-unnamed"], "it can't be seen whether they are")
        self.said("full-kept", "/train", ", which is gone")
        self.said("full", "/train", "mark 9 ")
        self.assertNotIn("gone", self.found["full"])
        self.line("fuller", full)

    def test_a_connection_whose_peer_is_gone_does_not_stop_its_job(self):
        row = next(line for line in self.found["stuck"].splitlines() if line.startswith("mark 31 "))
        self.assertRegex(row, r" 100 kB +5\d\.\d ms", row)
        iterations = len(numbers(self.found["stuck-jobs"])[0])
        self.assertGreater(int(row.split()[5]), iterations / 2, row)

    def test_a_connection_that_returns_goes_on_with_its_iteration(self):
        def jobs(name):
            return {job["name"]: job for job in json.loads(self.found[name])["jobs"]}
        away, after = jobs("away"), jobs("returned")
        lengths, single = numbers(self.found["returning"])
        for mark in ("mark 32", "mark 33"):
            self.assertEqual((away[mark]["connections"], away[mark]["in_flight"]), (1, 0), "three timeouts, so ignored")
        self.assertGreater(max(lengths), 2500, "it was away meanwhile")
        self.assertEqual(after["mark 32"]["iterations"], len(lengths))
        self.assertEqual(after["mark 32"]["sent_bytes"], 2000000)
        self.assertEqual(after["mark 32"]["bytes_per_iteration"], 2000000, "all iterations were alike")
        self.assertEqual(len(single), 1)
        self.assertEqual((after["mark 33"]["iterations"], after["mark 33"]["sent_bytes"]), (1, 1000))

    def test_unloading_leaves_connections_alone(self):
        self.line("default", "mltcp_cubic is the default of new connections; run sysctl -w")
        self.line("unload", "1 connection still uses an unloaded algorithm until it ends; new connections cannot choose it")
        self.assertNotIn("mltcp", self.found["unavailable"])
        self.said("new", "No such file")
        self.assertGreater(numbers(self.found["stream"])[0][0], 2e6)
        self.line("unload-again", "nothing is loaded")
        self.said("load-one", "loaded: mltcp_cubic\n")
        self.said("one", "0.5, gap learned", "not loaded")

    def test_namespaces_begin_with_the_default_of_the_first(self):
        settings = r"net\.ipv4\.tcp_congestion_control = (\S+)\nnet\.ipv4\.tcp_slow_start_after_idle = 1\n"
        before, later = re.findall(settings, self.found["namespaces"])
        self.assertEqual((before, later), ("cubic", "mltcp_cubic"))
        self.said("namespaces", "net.ipv4.tcp_slow_start_after_idle = 0", "tcp_congestion_control = mltcp_reno")
        self.assertNotIn("sysctl:", self.found["namespaces"])

    def test_marks_are_masked_and_not_shifted(self):
        self.said("marks", "mark 1792 ", "0xff00, which 0x7 is not of")
        self.assertNotIn("mark 7 ", self.found["marks"])
        self.assertNotIn("mark 1810 ", self.found["marks"])

    def test_gain_one_is_the_kernel_s_own(self):
        own = numbers(self.found["single-reno"])[0][0]
        self.assertGreater(own, 3e6)
        self.assertAlmostEqual(numbers(self.found["single-mltcp_reno"])[0][0] / own, 1, delta=0.05)

    def test_jobs_interleave(self):
        alone = mean(numbers(self.found["alone"])[0])
        for job in numbers(self.found["both"]):
            self.assertGreater(mean(job[:2]), 1.1 * alone, "they began nearly together")
            # Uses the median, because an iteration that loses its last packet waits for a timeout.
            self.assertLess(sorted(job[-6:-1])[2], 1.1 * alone, job)
        for mark in ("mark 13 ", "mark 14 "):
            row = next(line for line in self.found["learned"].splitlines() if line.startswith(mark))
            number, unit = re.search(r" ([\d.]+) (kB|MB) ", row).groups()
            learned = float(number) * {"kB": 1e3, "MB": 1e6}[unit]
            self.assertAlmostEqual(learned / BYTES, 1, delta=0.001, msg=row)


# Parameters of the table: computing in ms, bytes, delays of the second job in ms, and duration in seconds. Several
# delays are tried, because the result of a single run depends on chance.
TABLE = {"compute": 500, "bytes": 2000000, "starts": (0, 40), "seconds": 28}


def table(guest, algorithms):
    """Prints the rows of docs/reference/tables/kernel.md."""
    print("| algorithm | alone | two jobs | worst of 4 | over alone | shares of gains 2 and 1 | of 1 and 1 |")
    print("|---|---|---|---|---|---|---|")
    for plain in algorithms:
        job = f"{TABLE['compute']}:{TABLE['bytes']}"
        both = "".join(f"at {name}-{start}; run {name} {TABLE['seconds']} 1{start}:{job}:0 2{start}:{job}:{start}; timeouts\n"
                       for start in TABLE["starts"] for name in (f"mltcp_{plain}", plain))
        found = run(guest, f"""
mltcp kernel load > /dev/null
{QUICK_TIMEOUTS}
{"mark" if plain == "dctcp" else "drop"}
mltcp kernel set --job 3 --function 2
mltcp kernel set --job 4 --function 1
mltcp kernel set --job 5 --function 1
at alone; run {plain} 6 0:{job}:0
{both}
at weights; run mltcp_{plain} 10 3:0:0:0 4:0:0:0
at equal; run mltcp_{plain} 10 4:0:0:0 5:0:0:0
at single; run {plain} 3 4:0:0:0; run mltcp_{plain} 3 4:0:0:0
""", 2400)
        for name, text in found.items():
            print(name, text, file=sys.stderr, flush=True)
        alone = mean(numbers(found["alone"])[0][1:])
        for name in (plain, f"mltcp_{plain}"):
            jobs = [later(job) for start in TABLE["starts"] for job in numbers(found[f"{name}-{start}"])]
            shares = ["", ""]
            if name != plain:
                shares = [f"{a[0] / b[0]:.2f}" for a, b in (numbers(found["weights"]), numbers(found["equal"]))]
            print(f"| {name} | {alone:.0f} ms | {mean(jobs):.0f} ms | {max(jobs):.0f} ms "
                  f"| {100 * (mean(jobs) / alone - 1):.1f}% | {shares[0]} | {shares[1]} |", flush=True)
        one, other = (job[0] * 8 / 1.5e6 for job in numbers(found["single"]))
        print(f"{plain} alone: {one:.2f} Mbit/s, mltcp_{plain} with gain 1: {other:.2f} Mbit/s", flush=True)


def main():
    program, jobs = sys.argv[1:3]
    try:
        guest = make_guest(program, jobs)
    except guest_lab.Lacking as lacking:
        print(f"kernel_tcp_test.py: Skipped\n{lacking}")
        sys.exit(77)
    if "--table" in sys.argv:
        words = sys.argv[sys.argv.index("--table") + 1:]
        if words and words[0] == "--job":
            TABLE["compute"], TABLE["bytes"] = (int(word) for word in words[1].split(":"))
            words = words[2:]
        table(guest, words or ["reno", "cubic", "dctcp"])
        return
    KernelTcp.found = run(guest, EVERYTHING, 800)
    if "--print" in sys.argv:
        for name, text in KernelTcp.found.items():
            print(f"== {name}\n{text}", end="")
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
