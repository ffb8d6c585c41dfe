"""Tests the observation of running programs: captures of every command, which tshark reads with the project's
dissector, `mltcp top` on a pseudo-terminal, and metrics over HTTP.

Usage: observe_test.py PROGRAM, where PROGRAM is the built mltcp. All traffic stays on the loopback and in the test's
namespaces."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/bin/mltcp"
DISSECTOR = ROOT / "tools/dissector/mltcp.lua"
PATIENCE = 120  # time limit in s for work that takes a second on an idle machine
MODULE = PROGRAM.parent.parent / "lib/mltcp/libmltcp_metrics.so"

EXPERIMENT = """
iterations = {}
[bottleneck]
rate = "1 Gbps"
delay = "10 us"
buffer = "75 kB"
ecn = {{ kmin = "30 kB", kmax = "30 kB", pmax = 1.0 }}
[[job]]
name = "a"
compute = "{}"
communicate = "200 kB"
[[job]]
name = "b"
compute = "{}"
communicate = "200 kB"
start = "1 ms"
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def skip(test, reason):
    """Skips a test, and prints the reason in the form that `tools/test` looks for."""
    print(f"observe_test.py {test.id()}: Skipped\n{reason}", flush=True)
    test.skipTest(reason)


# A script that sends Ethernet frames of 12 iterations of two jobs, in the format of transport/wire.h.
CLAIMING_PACKETS = """
import socket, struct, time

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF

def frame(job, iteration, progress, size):
    data = struct.pack("<BBHII", 1, 0, size - 12, 0, 0) + bytes(size - 12)
    def header(checksum):
        return struct.pack("<BBHIQIIIIHH", 0xA3, 8, 48, checksum, 1, 5, 1, 0, job, iteration, progress)
    payload = header(crc32c(header(0) + data[:12])) + data
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0, bytes([10, 0, 0, 1]),
                     bytes([10, 0, 0, 2]))
    words = sum(struct.unpack("!10H", ip))
    while words >> 16: words = (words & 0xFFFF) + (words >> 16)
    ip = ip[:10] + struct.pack("!H", words ^ 0xFFFF) + ip[12:]
    udp = struct.pack("!HHHH", 4793, 4793, 8 + len(payload), 0)
    return bytes([0xFF] * 6 + [2, 0, 0, 0, 0, 1, 8, 0]) + ip + udp + payload

s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("q0", 0))
for iteration in range(65530, 65542):
    for packet in range(20):
        for job, stated, size in (7, 10, 600), (8, 20, 550):
            s.send(frame(job, iteration % 65536, min(65535, 65535 * packet // stated), size))
    time.sleep(0.005)
"""


class Observed(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mltcp-observe-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "short.toml").write_text(EXPERIMENT.format(3, "2 ms", "2 ms"))
        (self.folder / "long.toml").write_text(EXPERIMENT.format(100000, "5 ms", "5 ms"))
        self.environment = dict(os.environ, MLTCP_RUN_DIR=str(self.folder / "run"), HOME=str(self.folder), TERM="xterm")
        for name in ("MLTCP_PCAP", "MLTCP_LIVE", "MLTCP_METRICS", "NO_COLOR"):
            self.environment.pop(name, None)

    def run_program(self, *words, status=0, **more):
        environment = dict(self.environment, **more)
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done

    def start(self, *words, **more):
        """Starts a command in the background. The command ends with the test."""
        out = open(self.folder / f"out-{time.monotonic_ns()}", "w+")
        process = subprocess.Popen([PROGRAM, *words], cwd=self.folder, env=dict(self.environment, **more), stdout=out,
                                   stderr=subprocess.STDOUT, text=True)

        def end():
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            out.close()

        process.said = lambda: Path(out.name).read_text()
        self.addCleanup(end)
        return process

    def until(self, there, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = there()
            if value:
                return value
            time.sleep(0.05)
        self.fail(f"not within {PATIENCE} s: {what}")

    def tshark(self, file, *words):
        if not shutil.which("tshark"):
            skip(self, "tshark is missing (Debian: tshark)")
        other = {}  # if root runs this test, tshark runs as another user: Wireshark 4.4 runs no scripts as root
        if os.geteuid() == 0:
            other = {"user": 65534, "group": 65534, "extra_groups": []}
            shutil.copyfile(DISSECTOR, self.folder / DISSECTOR.name)
            for readable in (self.folder, self.folder / file, self.folder / DISSECTOR.name):
                readable.chmod(0o755)
        script = self.folder / DISSECTOR.name if other else DISSECTOR
        done = subprocess.run(["tshark", "-X", f"lua_script:{script}", "-r", self.folder / file, *words], cwd=self.folder,
                              env={**self.environment, "HOME": str(self.folder)}, capture_output=True, text=True,
                              timeout=PATIENCE, **other)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Lua", done.stderr)
        return done.stdout.splitlines()

    def fields(self, file, names, *words):
        options = [word for name in names for word in ("-e", name)]
        return [line.split("\t") for line in self.tshark(file, *words, "-T", "fields", *options)]

    def top(self):
        return json.loads(self.run_program("top", "--json").stdout)

    # ---- Captures of mltcp run ----

    def test_run__every_packet_is_dissected_and_right(self):
        said = self.run_program("run", "short.toml", "--policy", "mltcp", "--pcap", "run.pcapng").stdout
        count = int(re.search(r"captured, policy mltcp: (\d+) packets in run.pcapng\n", said)[1])
        packets = self.fields("run.pcapng", ["frame.protocols", "mltcp.checksum.status", "frame.interface_name"])
        self.assertEqual(len(packets), count)
        self.assertEqual({packet[0] for packet in packets}, {"raw:ip:udp:mltcp"})
        self.assertEqual({packet[1] for packet in packets}, {"1"})
        self.assertEqual({packet[2] for packet in packets}, {"a sender", "a receiver", "b sender", "b receiver"})
        self.assertEqual(self.tshark("run.pcapng", "-Y", "mltcp.malformed"), [])
        types = {one for packet in self.fields("run.pcapng", ["mltcp.frame.type"]) for one in packet[0].split(",")}
        self.assertLessEqual({"1", "2", "5", "6"}, types)  # frame types DATA, ACK, CONNECT and ACCEPT

    def test_run__jobs_iterations_and_marks_as_they_were(self):
        self.run_program("run", "short.toml", "--policy", "mltcp", "--pcap", "run.pcapng", "--json", "run.json")
        sent = self.fields("run.pcapng", ["mltcp.job", "mltcp.iteration", "mltcp.bytes_ratio"], "-Y",
                           "mltcp.flags.has_job == 1 && frame.packet_flags_direction == 2")
        self.assertEqual({packet[0] for packet in sent}, {"0", "1"})
        self.assertLessEqual({"1", "2", "3"}, {packet[1] for packet in sent})
        ratios = [float(packet[2]) for packet in sent]
        self.assertGreater(max(ratios), 0.8)
        self.assertLess(min(ratios), 0.2)
        times = [float(packet[0]) for packet in self.fields("run.pcapng", ["frame.time_epoch"])]
        self.assertEqual(times, sorted(times))

    def test_run__the_same_twice(self):
        for name in ("one", "two"):
            self.run_program("run", "short.toml", "--policy", "mltcp", "--pcap", f"{name}.pcapng")
        self.assertEqual((self.folder / "one.pcapng").read_bytes(), (self.folder / "two.pcapng").read_bytes())

    def test_run__capturing_changes_nothing(self):
        results = []
        for words in ([], ["--pcap", "run.pcapng"]):
            self.run_program("run", "short.toml", "--policy", "fair,mltcp", "--json", "run.json", *words)
            result = json.loads((self.folder / "run.json").read_text())
            results.append(result["runs"])
        self.assertEqual(*results)
        self.assertTrue((self.folder / "run-fair.pcapng").exists())
        self.assertTrue((self.folder / "run-mltcp.pcapng").exists())

    def test_run__snap_and_topology(self):
        (self.folder / "racks.toml").write_text("""
iterations = 2
policies = ["mltcp"]
[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 2
host_rate = "1 Gbps"
delay = "10 us"
[[job]]
name = "ring"
hosts = [0, 1, 2, 3]
compute = "2 ms"
pattern = "all-to-all"
size = "100 kB"
""")
        done = subprocess.run([PROGRAM, "run", "racks.toml", "--pcap", "racks.pcapng,snap=100"], cwd=self.folder,
                              env=self.environment, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            self.fail(done.stderr)
        lengths = self.fields("racks.pcapng", ["frame.cap_len", "frame.len", "mltcp.packet_number"])
        self.assertTrue(all(int(kept) <= 100 for kept, _, _ in lengths))
        self.assertTrue(any(int(length) > 1000 for _, length, _ in lengths))
        self.assertTrue(all(number != "" for _, _, number in lengths))

    def test_run__refusals(self):
        said = self.run_program("run", "short.toml", "--datapath", "flow", "--pcap", "x", status=2).stderr
        self.assertIn("--pcap: datapath flow has no packets", said)
        said = self.run_program("run", "short.toml", "--pcap", "x,snap=1", status=2).stderr
        self.assertIn("--pcap: snap is \"1\"", said)
        said = self.run_program("run", "short.toml", "--pcap", "nowhere/x", status=2).stderr
        self.assertEqual(len(said.splitlines()), 1, said)
        before = (self.folder / "short.toml").read_text()
        self.run_program("run", "short.toml", "--policy", "mltcp", "--pcap", "short.toml", status=2)
        self.assertEqual((self.folder / "short.toml").read_text(), before)
        said = self.run_program("run", "short.toml", "--policy", "mltcp", "--pcap", "r", "--json", "r", status=2).stderr
        self.assertIn("--pcap, --json", said)

    def test_inspect__claims_in_a_capture(self):
        self.run_program("run", "short.toml", "--policy", "mltcp", "--pcap", "run.pcapng,snap=78")
        done = self.run_program("inspect", "run.pcapng")
        self.assertEqual(done.stderr, "")
        received, sent = done.stdout.split("progress that jobs claimed in ")[1:]
        for which, text in ("received", received), ("sent", sent):
            self.assertRegex(text, rf"^{which} packets\njob +iterations +bytes +per iteration +at the end +mean progress +verdict\n")
            self.assertEqual(len(re.findall(r"(?m)^[01] +[34] .* 0\.0% +0\.\d+ +too few iterations$", text)), 2, text)
        said = self.run_program("inspect", "run.pcapng", "--json", "-", status=2).stderr
        self.assertIn("run.pcapng: options are for traces, and this file is a capture; leave them out", said)
        whole = (self.folder / "run.pcapng").read_bytes()
        (self.folder / "cut.pcapng").write_bytes(whole[:-5])
        self.assertIn("cut.pcapng ends within a packet", self.run_program("inspect", "cut.pcapng").stderr)
        (self.folder / "bad.pcapng").write_bytes(whole[:-4] + bytes(4))
        said = self.run_program("inspect", "bad.pcapng", status=2).stderr
        self.assertRegex(said, r"^mltcp: bad.pcapng: block \d+ has two different lengths; the file is damaged, so capture again\n$")

    # ---- Gen over the kernel's sockets ----

    def start_gen(self, *words):
        """Starts a coordinator and three hosts on the loopback. The first host gets `words` as additional arguments.
        Returns the hosts."""
        self.start("gen", "long.toml", "--policy", "mltcp", "--serve", "unix:c")
        self.until((self.folder / "c").exists, "the coordinator listens")
        port = 20000 + os.getpid() % 20000
        hosts = []
        for number in range(3):
            own = words if number == 0 else ()
            hosts.append(self.start("gen", "--join", "unix:c", "--ip", f"127.0.0.{number + 1}/8", "--host", str(number),
                                    "--udp-port", str(port + 100 * number), "--idle", "sleep", *own))
        return hosts

    def test_gen__top_metrics_and_capture(self):
        port = free_port()
        metrics = ["--metrics", str(port)] if MODULE.exists() else []
        hosts = self.start_gen("--pcap", "gen.pcapng,snap=200", *metrics)

        def jobs():
            for host in hosts:
                self.assertIsNone(host.poll(), host.said())
            processes = self.top()["processes"]
            rows = [job for process in processes for job in process["jobs"]]
            return processes if len(rows) >= 2 and all(job["iteration"] > 3 for job in rows) else None

        processes = self.until(jobs, "all jobs iterate")
        self.assertEqual({process["kind"] for process in processes}, {"gen"})
        self.assertEqual({process["pid"] for process in processes}, {host.pid for host in hosts})
        connections = [one for process in processes for one in process["connections"]]
        self.assertTrue(all(one["rtt_seconds"] > 0 for one in connections if one["sent_packets"] > 100))
        self.assertTrue(any(one["cwnd_bytes"] > 0 for one in connections))

        text = self.run_program("top", "--once", "--every", "500ms").stdout
        self.assertIn("gen host 0 at 127.0.0.1/8", text)
        self.assertNotIn("\x1b", text)

        if metrics:
            answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).read().decode()
            self.assertRegex(answer, r'mltcp_process_info\{kind="gen",name="host 0 at 127.0.0.1/8",policy="mltcp"\} 1')
            self.assertIn("mltcp_answers 1", answer)
            self.assertRegex(answer, r'mltcp_port_sent_packets_total\{port="udp:"\} [1-9]')

        hosts[0].send_signal(signal.SIGTERM)
        hosts[0].wait(PATIENCE)
        self.assertRegex(hosts[0].said(), r"captured: \d+ packets in gen.pcapng")
        self.assertEqual(self.tshark("gen.pcapng", "-Y", "mltcp.malformed"), [])
        protocols = self.fields("gen.pcapng", ["frame.protocols", "ip.src", "ip.dst"])
        self.assertGreater(len(protocols), 100)
        self.assertEqual({line[0] for line in protocols}, {"raw:ip:udp:mltcp"})
        self.assertTrue(all("127.0.0.1" in line[1:] for line in protocols))
        self.until(lambda: self.top()["processes"] == [], "all are gone, and so are their sockets")

    def test_gen__busy_metrics_port(self):
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = busy.getsockname()[1]
            said = self.run_program("gen", "--join", "unix:c", "--ip", "127.0.0.1/8", "--metrics", str(port),
                                    status=1).stderr
        self.assertEqual(
            said, f"mltcp: --metrics: cannot listen on 127.0.0.1:{port} (Address already in use); give another port\n")

    # ---- Endpoints ----

    def test_endpoint__by_the_environment(self):
        port = free_port()
        more = {"MLTCP_PCAP": "server.pcapng,snap=128", "MLTCP_LIVE": "1"}
        if MODULE.exists():
            more["MLTCP_METRICS"] = str(port)
        server = self.start("perf", "--listen", "unix:s", "--ip", "127.0.0.1", **more)
        self.until((self.folder / "s").exists, "the server listens")
        client = self.start("perf", "unix:s", "--ip", "127.0.0.1", "--for", "5s", "--tests", "out", "--min",
                            "64kB", "--max", "64kB", MLTCP_PCAP="client-%p.pcapng,snap=128")
        self.until(lambda: any(process["connections"] for process in self.top()["processes"]) or
                   client.poll() is not None, "top sees the server's connections")
        self.assertIsNone(client.poll(), client.said())
        process = self.top()["processes"][0]
        self.assertEqual((process["kind"], process["pid"]), ("endpoint", server.pid))
        if MODULE.exists():
            answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).read().decode()
            self.assertRegex(answer, r'mltcp_connections_received_packets_total\{job=""\} [1-9]')
        self.assertEqual(client.wait(PATIENCE), 0, client.said())
        server.terminate()
        server.wait(PATIENCE)
        for file in self.folder.glob("*.pcapng"):
            # reads only the first packets, because there are very many
            packets = self.fields(file.name, ["frame.protocols"], "-c", "2000")
            self.assertGreater(len(packets), 10, file)
            self.assertEqual({packet[0] for packet in packets}, {"raw:ip:udp:mltcp"})
        self.assertTrue((self.folder / f"client-{client.pid}.pcapng").exists())
        self.assertEqual(self.top(), {"schema": "mltcp.top/1", "processes": [], "problems": []})

    def test_endpoint__wrong_values(self):
        self.start("perf", "--listen", "unix:s", "--ip", "127.0.0.1")
        self.until((self.folder / "s").exists, "the server listens")
        for name, value, expected in (("MLTCP_PCAP", "x,snap=7", "MLTCP_PCAP: snap is \"7\""),
                                      ("MLTCP_METRICS", "nowhere", "MLTCP_METRICS: \"nowhere\" is not a valid address for metrics"),
                                      ("MLTCP_LIVE", "yes", "MLTCP_LIVE is \"yes\"; give 0 or 1")):
            done = subprocess.run([PROGRAM, "perf", "unix:s", "--ip", "127.0.0.1", "--for", "100ms"], cwd=self.folder,
                                  env=dict(self.environment, **{name: value}), capture_output=True, text=True,
                                  timeout=PATIENCE)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected, done.stderr)

    # ---- A switch ----

    def test_switch__frames_of_both_ports(self):
        doctor = subprocess.run([PROGRAM, "switch", "--help"], capture_output=True, text=True)
        if os.geteuid() != 0 or doctor.returncode != 0:
            skip(self, "namespaces and ports need root")
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            skip(self, "there are no namespaces here")
        script = f"""
ip link set lo up
ip link add p0 type veth peer name q0 && ip link add p1 type veth peer name q1
for i in p0 p1 q0 q1; do ip link set $i up; done
{PROGRAM} switch --port af_packet:p0 --port af_packet:p1 --for 6s --pcap switch.pcapng > out 2>&1 &
switch=$!
until grep -q ^ready out || ! kill -0 $switch; do sleep 0.05; done
{PROGRAM} top --json > top.json
python3 - <<END
import socket, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("q0", 0))
for n in range(20):
    s.send(bytes([0xff] * 6 + [2, 0, 0, 0, 0, 1, 0x88, 0xb5]) + b"frame %02d" % n + bytes(60))
    time.sleep(0.005)
END
wait $switch
"""
        done = subprocess.run(["unshare", "-n", "sh", "-c", script], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE)
        said = (self.folder / "out").read_text() if (self.folder / "out").exists() else ""
        if "No supported" in said or "hugepages" in said or done.returncode != 0:
            skip(self, f"no switch here: {said.strip().splitlines()[-1:]} {done.stderr.strip()}")
        self.assertRegex(said, r"captured \d+ packets in switch.pcapng")
        frames = self.fields("switch.pcapng", ["frame.interface_name", "frame.packet_flags_direction"], "-Y",
                             "eth.type == 0x88b5")
        self.assertEqual(frames.count(["af_packet:p0", "0x00000001"]), 20, frames)
        self.assertEqual(frames.count(["af_packet:p1", "0x00000002"]), 20, frames)
        top = json.loads((self.folder / "top.json").read_text())
        self.assertEqual([process["kind"] for process in top["processes"]], ["switch"])
        self.assertEqual([port["name"] for port in top["processes"][0]["ports"]], ["af_packet:p0", "af_packet:p1"])

    def test_switch__claims(self):
        """Sends packets of two jobs as their transports send them. One job claims half of the bytes of its
        iterations."""
        if os.geteuid() != 0:
            skip(self, "namespaces and ports need root")
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            skip(self, "there are no namespaces here")
        port = 9470
        metrics = f"--metrics {port}" if MODULE.exists() else ""
        (self.folder / "send.py").write_text(CLAIMING_PACKETS)
        script = f"""
ip link set lo up
ip link add p0 type veth peer name q0 && ip link add p1 type veth peer name q1
for i in p0 p1 q0 q1; do ip link set $i up; done
{PROGRAM} switch --port af_packet:p0 --port af_packet:p1 --idle sleep --claims {metrics} --json c.json --pcap c.pcapng \
  > out 2> err &
switch=$!
until grep -q ^ready out || ! kill -0 $switch; do sleep 0.05; done
python3 send.py
patiently() {{  # where the machine is busy, a switch does not answer in time
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    sleep 0.3; "$@" > asked; grep -q '"8"' asked && break
  done
}}
patiently {PROGRAM} top --json
mv asked top.json
[ -z "{metrics}" ] || patiently python3 -c 'from urllib.request import urlopen
print(urlopen("http://127.0.0.1:{port}/metrics", timeout=10).read().decode())'
[ ! -f asked ] || mv asked metrics.txt
kill $switch
wait $switch
"""
        done = subprocess.run(["unshare", "-n", "sh", "-c", script], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE)
        said, err = ((self.folder / name).read_text() if (self.folder / name).exists() else "" for name in ("out", "err"))
        if "No supported" in err or "hugepages" in err or done.returncode != 0:
            skip(self, f"no switch here: {err.strip().splitlines()[-1:]} {done.stderr.strip()}")
        cheater, honest = json.loads((self.folder / "c.json").read_text())["claims"]
        self.assertEqual([cheater["job"], cheater["iterations"], cheater["packets"], cheater["verdict"]],
                         [7, 12, 240, "understated"])
        self.assertEqual(cheater["bytes"], 240 * 600)
        self.assertEqual(cheater["bytes_at_end"], 120 * 600)
        self.assertAlmostEqual(cheater["mean_progress"], (0.45 + 1) / 2, 3)
        self.assertEqual([honest["job"], honest["bytes_at_end"], honest["verdict"]], [8, 0, "consistent"])
        self.assertAlmostEqual(honest["mean_progress"], 0.475, 3)
        self.assertRegex(said, r"(?m)^7 +12 +144 kB +12 kB +50.0% +0.725 +understated$")
        self.assertRegex(said, r"(?m)^8 +12 +132 kB +11 kB +0.0% +0.475 +consistent$")
        self.assertIn("warning: job 7 sends more than its iterations state: 50.0% of its bytes pass after", err)
        self.assertNotIn("job 8", err)
        self.assertRegex(said, r"captured \d+ packets in c.pcapng")
        views = json.loads((self.folder / "top.json").read_text())["processes"][0]["claims"]
        self.assertEqual([(view["job"], view["is_overstated"]) for view in views], [("7", True), ("8", False)])
        if metrics:
            answer = (self.folder / "metrics.txt").read_text()
            self.assertIn('mltcp_claims_bytes_at_end_total{job="7"} 72000\n', answer)
            self.assertIn('mltcp_claims_overstated{job="7"} 1\n', answer)
            self.assertIn('mltcp_claims_overstated{job="8"} 0\n', answer)

    # ---- Top on a terminal ----

    def start_top(self, *words):
        """Starts mltcp top on a terminal of 80 columns and 24 lines. Returns the process number, the terminal's file
        descriptor and the terminal's original settings."""
        child, terminal = pty.fork()
        if child == 0:
            try:
                os.chdir(self.folder)
                os.execve(PROGRAM, [str(PROGRAM), "top", "--every", "200ms", *words], self.environment)
            finally:
                os._exit(127)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.addCleanup(os.close, terminal)
        return child, terminal, termios.tcgetattr(terminal)

    def read_until(self, terminal, text):
        seen = b""
        end = time.monotonic() + PATIENCE
        while text not in seen and time.monotonic() < end:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # the program has ended
                break
        self.assertIn(text, seen)
        return seen

    def test_top__keys_and_a_clean_terminal(self):
        child, terminal, before = self.start_top()
        self.read_until(terminal, b"no MLTCP process")
        os.write(terminal, b"s")
        self.read_until(terminal, b"by retransmits")
        os.write(terminal, b"p")
        self.read_until(terminal, b"paused")
        os.write(terminal, b"q")
        self.read_until(terminal, b"\x1b[?25h\x1b[?1049l")
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(termios.tcgetattr(terminal), before)

    def test_top__signal_leaves_a_clean_terminal(self):
        child, terminal, before = self.start_top()
        self.read_until(terminal, b"q quit")
        os.kill(child, signal.SIGTERM)
        self.read_until(terminal, b"\x1b[?25h\x1b[?1049l")
        os.waitpid(child, 0)
        self.assertEqual(termios.tcgetattr(terminal), before)

    def test_top__no_colour(self):
        self.environment["NO_COLOR"] = "1"
        child, terminal, _ = self.start_top()
        seen = self.read_until(terminal, b"q quit")
        self.assertNotIn(b"\x1b[1m", seen)
        os.write(terminal, b"q")
        self.read_until(terminal, b"\x1b[?1049l")
        os.waitpid(child, 0)

    def test_top__no_terminal(self):
        said = self.run_program("top", status=2).stderr
        self.assertIn("mltcp top needs a terminal, but standard output is not one; add --once or --json", said)
        self.assertIn("no MLTCP process", self.run_program("top", "--once", "--every", "100ms").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
