"""Tests `mltcp replay` as users run it: traces in virtual time, its output and error messages, and runs across hosts
over the kernel's UDP sockets on the loopback.

Usage: replay_test.py MLTCP"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)
TRACES = [str(ROOT / f"examples/traces/data-parallel.{rank}.json") for rank in range(2)]
PATIENCE = 120  # time limit in s, long enough for a busy machine


def mltcp(*words, status=0):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def first_lines(*words):
    """Runs a command until it has printed its headline, and then ends it. Returns the output."""
    with subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lines = ""
        for line in process.stdout:
            lines += line
            if "virtual time" in line:
                break
        process.kill()
    return lines


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_trace_takes_as_long_as_recorded_on_such_links(self):
        file, timeline = self.folder / "results.json", self.folder / "timeline.json"
        out = mltcp("replay", *TRACES, "--rate", "10 Gbps", "--json", str(file), "--timeline", str(timeline)).stdout
        self.assertIn("compared with its recording", out)
        job = json.loads(file.read_text())["runs"][0]["jobs"][0]
        self.assertEqual(job["name"], "data-parallel")
        replay = job["replay"]
        self.assertEqual(len(replay["steps"]), 1)
        self.assertEqual([(one["name"], one["count"], one["bytes"]) for one in replay["collectives"]],
                         [("all-reduce", 3, 26_000_000)])
        self.assertEqual(replay["steps"][0]["recorded_ns"], 46_600_000)
        self.assertLess(abs(replay["steps"][0]["replayed_ns"] / 46.6e6 - 1), 0.03)
        self.assertEqual(replay["sources"], TRACES)
        events = json.loads(timeline.read_text())["traceEvents"]
        names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(names, {f"data-parallel {what}: rank {rank}" for what in ("recorded", "replayed") for rank in (0, 1)})

    def test_flows_take_as_long_as_packets(self):
        means = []
        for datapath in ("sim", "flow"):
            file = self.folder / f"{datapath}.json"
            mltcp("replay", *TRACES, "--rate", "10 Gbps", "--datapath", datapath, "--json", str(file))
            means.append(json.loads(file.read_text())["runs"][0]["jobs"][0]["mean_ns"])
        self.assertLess(abs(means[0] / means[1] - 1), 0.03)

    def test_options_change_what_is_replayed(self):
        def job_of(*words):
            file = self.folder / "results.json"
            mltcp("replay", *TRACES, "--datapath", "flow", "--json", str(file), *words)
            return json.loads(file.read_text())["runs"][0]["jobs"][0]

        plain = job_of()
        self.assertEqual(job_of("--bytes-scale", "2")["bytes_per_iteration"], 2 * plain["bytes_per_iteration"])
        self.assertEqual(job_of("--compute-scale", "2")["compute_ns"], 2 * plain["compute_ns"])
        # Both ranks are on one island, and communication within an island does not cross the network.
        done = mltcp("replay", *TRACES, "--datapath", "flow", "--islands", "2", status=2)
        self.assertIn("nothing is sent", done.stderr)
        # There are four ranks on two islands. For S bytes of all-reduces, each rank sends S/2 bytes to its peer on the
        # other island.
        four = []
        for rank in range(4):
            four.append(str(self.folder / f"four.{rank}.json"))
            Path(four[-1]).write_text(Path(TRACES[0]).read_text())
        file = self.folder / "results.json"
        mltcp("replay", *four, "--datapath", "flow", "--islands", "2", "--json", str(file))
        job = json.loads(file.read_text())["runs"][0]["jobs"][0]
        self.assertEqual(job["bytes_per_iteration"], 4 * 26_000_000 // 2)
        mltcp("replay", *four, "--datapath", "flow", "--json", str(file))
        job = json.loads(file.read_text())["runs"][0]["jobs"][0]
        self.assertEqual(job["bytes_per_iteration"], 4 * 26_000_000 * 3 // 2)
        self.assertEqual(job_of("--algorithm", "tree")["bytes_per_iteration"], plain["bytes_per_iteration"])
        self.assertEqual(len(job_of("--iterations", "7")["iteration_ns"]), 7)

    def test_what_would_take_long_by_packets_is_replayed_by_flows(self):
        large = (*TRACES, "--bytes-scale", "3000", "--iterations", "2")
        out = mltcp("replay", *large).stdout
        self.assertRegex(out, r"^Simulating flows, since \d+ GB would take long as packets \(for packets, give --datapath sim")
        self.assertIn(", on flow (virtual time", out)
        out = mltcp("replay", *TRACES).stdout
        self.assertNotIn("Simulating flows", out)
        self.assertIn(", on sim (virtual time", out)
        # Options that need packets select the packet simulation, however long it takes.
        for words in (("--datapath", "sim"), ("--policy", "priority"), ("--ecn", "60 kB"), ("--buffer", "2 MB"), ("--mtu", "9000"),
                      ("--verify",), ("--series", str(self.folder / "s.json"))):
            self.assertIn("on sim", first_lines("replay", *large, *words), words)

    def test_several_jobs_share_the_network(self):
        file, page = self.folder / "results.json", self.folder / "page.html"
        traces = ",".join(TRACES)
        done = mltcp("replay", f"a={traces}", f"b={traces}@5ms", "--rate", "10 Gbps", "--datapath", "flow", "--policy",
                     "fair,mltcp", "--iterations", "12", "--json", str(file), "--report", str(page))
        self.assertTrue(done.stdout.endswith(f"\n{page}\n"), done.stdout)
        later = self.folder / "later.html"
        mltcp("report", str(file), "-o", str(later))
        self.assertEqual(page.read_text(), later.read_text())
        runs = json.loads(file.read_text())["runs"]
        self.assertEqual([run["policy"] for run in runs], ["fair", "mltcp"])
        self.assertEqual([job["start_ns"][0] for job in runs[0]["jobs"]], [0, 5_000_000])
        self.assertGreater(runs[0]["jobs"][0]["slowdown"], 1.05)

    def test_jobs_that_nothing_parts_are_named(self):
        files = ",".join(TRACES)
        for datapath in ("flow", "sim"):
            words = ("replay", f"a={files}", "--datapath", datapath, "--iterations", "1", "--policy", "mltcp")
            said = mltcp(*words, f"b={files}").stderr
            self.assertEqual(said.count('jobs "a", "b" are alike and start together'), 1, said)
            self.assertEqual(mltcp(*words, f"b={files}@5ms").stderr, "")

    def test_timeline_is_of_the_run_that_is_compared(self):
        timeline, series = self.folder / "timeline.json", self.folder / "series.json"
        traces = ",".join(TRACES)
        done = mltcp("replay", f"a={traces}", f"b={traces}", "--rate", "10 Gbps", "--datapath", "flow", "--policy", "fair,schedule",
                     "--iterations", "8", "--timeline", str(timeline), "--series", str(series))
        self.assertIn("a under fair, compared with its recording", done.stdout)
        self.assertIn(f"{timeline} shows the run under fair.", done.stdout)
        self.assertIn("not of replayed connections", done.stderr)
        alone = self.folder / "alone.json"
        mltcp("replay", f"a={traces}", f"b={traces}", "--rate", "10 Gbps", "--datapath", "flow", "--policy", "fair",
              "--iterations", "8", "--timeline", str(alone))
        self.assertEqual(timeline.read_text(), alone.read_text())

    def test_network_is_that_of_an_experiment(self):
        out = mltcp("replay", *TRACES, "--network-of", str(ROOT / "examples/two-rings.toml"), "--policy", "fair",
                    "--iterations", "2").stdout
        self.assertIn("two-rings: 1 job, 2 iterations", out)
        mltcp("replay", *TRACES, "--network-of", str(ROOT / "examples/two-rings.toml"), "--rate", "1 Gbps", status=2)

    def test_what_can_not_be_is_one_line(self):
        for words, line in [
            (["none.json"], "none.json"),
            ([f"a={TRACES[0]}", TRACES[1]], "names no job"),
            ([f"a={TRACES[0]}@soon"], "has a start that is not a time"),
            ([*TRACES, "--steps", "3-1"], "--steps: \"3-1\" are not steps"),
            ([*TRACES, "--steps", "4"], "there are no steps 4 to 4"),
            ([*TRACES, "--ranks", "0-5"], "there is no rank 2"),
            ([*TRACES, "--datapath", "hose"], "--datapath \"hose\""),
            ([*TRACES, "--policy", "kind"], "--policy \"kind\""),
            ([*TRACES, "--rate", "0 Gbps"], "--rate 0"),
            ([*TRACES, "--report", "x", "--json", "x"], "--report"),
            ([*TRACES, "--report", "-", "--timeline", "-"], "only one of these options can write to standard output"),
            ([*TRACES, "--wait", "3s"], "--wait: an option of the coordinator"),
            ([*TRACES, "--serve", "unix:x", "--timeline", "t.json"], "--timeline: hosts do not report"),
        ]:
            done = mltcp("replay", *words, status=2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(line, done.stderr)

    def test_hosts_are_told_their_programs(self):
        socket, file = f"unix:{self.folder}/socket", self.folder / "results.json"
        coordinator = subprocess.Popen([PROGRAM, "replay", *TRACES, "--serve", socket, "--iterations", "3", "--json", str(file)],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        hosts = [subprocess.Popen([PROGRAM, "gen", "--join", socket, "--port", "udp:", "--ip", f"127.0.0.{host + 2}/8", "--host",
                                   str(host), "--idle", "sleep"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for host in range(2)]
        for process in (coordinator, *hosts):
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                for one in (coordinator, *hosts):
                    one.kill()
                raise
            self.assertEqual(process.returncode, 0, said)
        run = json.loads(file.read_text())["runs"][0]
        job = run["jobs"][0]
        self.assertEqual(run["datapath"], "hosts")
        self.assertEqual(len(job["iteration_ns"]), 3)
        self.assertEqual(job["bytes_per_iteration"], 2 * 26_000_000)
        self.assertEqual(job["checksum_errors"], 0)
        self.assertGreater(job["verified_messages"], 0)
        # No load makes an iteration shorter than its computations.
        self.assertGreater(min(job["iteration_ns"]), 39_000_000)
        self.assertEqual(job["replay"]["steps"][0]["replayed_ns"], job["mean_ns"])


if __name__ == "__main__":
    unittest.main()
