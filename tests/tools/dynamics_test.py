"""Tests bench/dynamics/dynamics: its list of cases, their experiment files, a table and errors. Usage: dynamics_test.py MLTCP"""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/bin/mltcp"
QUICK = ["--only", "short-10us-reno", "--seeds", "1"]  # a case that takes about a second


def dynamics(*words):
    command = [sys.executable, ROOT / "bench/dynamics/dynamics", "--mltcp", PROGRAM, *words]
    return subprocess.run(command, capture_output=True, text=True)


class Dynamics(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="mltcp-dynamics-test-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)

    def test_halves_have_the_same_kinds_and_names_differ(self):
        rows = [(line[:9].strip(), line[10:34].strip(), line[35:]) for line in dynamics("--list").stdout.splitlines()]
        self.assertGreaterEqual(len(rows), 84)
        self.assertEqual(len({name for _, _, name in rows}), len(rows))
        self.assertEqual({kind for half, kind, _ in rows if half == "tuned"}, {kind for half, kind, _ in rows if half == "held-out"})

    def test_every_experiment_file_is_accepted(self):
        self.assertEqual(dynamics("--write", self.folder / "cases").returncode, 0)

        def check(path):
            # Datapath flow is faster. It has no traffic from which it could learn iterations, and no hosts.
            datapath = "sim" if any(word in path.read_text() for word in ("learned", "host_model")) else "flow"
            return subprocess.run([PROGRAM, "run", path, "--policy", "fair", "--iterations", "1", "--datapath", datapath],
                                  capture_output=True, text=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            paths = sorted((self.folder / "cases").iterdir())
            for path, done in zip(paths, pool.map(check, paths)):
                self.assertEqual(done.returncode, 0, f"{path.name}: {done.stderr}")

    def test_table_and_values_of_a_case(self):
        file = self.folder / "values.json"
        done = dynamics(*QUICK, "--json", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        jobs = json.loads(file.read_text())["short-10us-reno"]["fair"]["100"]
        slow_down = sum(job["mean_ns"] / job["isolated_ns"] for job in jobs) / len(jobs)
        self.assertIn(f"\n| short-10us-reno | {slow_down:.3f} (", done.stdout)
        self.assertIn("\n- **tuned, mltcp** (1 cases): ", done.stdout)

    def test_failed_run_is_reported(self):
        done = dynamics(*QUICK, "--policies", "fair,unheard")
        self.assertEqual(done.returncode, 1)
        self.assertIn('dynamics: short-10us-reno: mltcp: --policy: "unheard"', done.stderr)

    def test_change_that_fails_leaves_the_other_rows(self):
        done = dynamics("--ablation", *QUICK, "--vary", "hold_rat = 0.1",
                        "--vary", "hold_rate = 0.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("hold_rat", done.stderr)
        self.assertRegex(done.stdout, r"\n\| none \| [01]\.[0-9]+ .*\n\| `hold_rat = 0\.1` \| - .*\n\| `hold_rate = 0\.1` \| [01]\.")

    def test_wrong_usage_is_reported_in_one_line(self):
        for words in [("--half", "left"), ("--seeds", "0"), ("--only", "nothing"), ("--mltcp", "nowhere"), ("--policies", ","),
                      ("--json", "nowhere/values.json"), ("--json", "/"), ("--write", __file__), ("--unknown",),
                      ("--vary", "hold_rate = 0.1"), ("--ablation", "--policies", "mltcp"), ("--ablation", "--write", "x")]:
            done = dynamics(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, r"^dynamics: [^\n]+; [^\n]+\n$")


if __name__ == "__main__":
    unittest.main()
