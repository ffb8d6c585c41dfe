"""Tests bench/uet: plans, traffic matrices, topologies, runs and errors. Usage: uet_test.py MLTCP"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/bin/mltcp"
TRACES = ROOT.parent / "shared/traces/uet-htsim"

MATRIX = "Nodes 16\nConnections 2\n0->13 id 1 start 0 size 200000\n3->13 id 2 start 2000000 size 100000\n"
PLAN = "two.cm \r\n!Experiment Two flows\r\n!Binary ./htsim_uec\r\n!Param -sender_cc_only\r\n!Param -end 1000\r\n!tailFCT 60\r\n"
TOPOLOGY = """Nodes 16
Tiers 2
Podsize 16

# hosts
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 1000
Oversubscribed 2

Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 500
"""


class Uet(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="mltcp-uet-test-")
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name) / "root"
        self.folder.mkdir()
        self.write("two.cm", MATRIX)
        self.write("plan.txt", PLAN)
        self.write("tree.topo", TOPOLOGY)

    def write(self, name, text):
        (self.folder / name).write_bytes(text.encode())

    def uet(self, *words, plan="plan.txt"):
        command = [sys.executable, ROOT / "bench/uet", self.folder / plan, "--root", self.folder, "--mltcp", PROGRAM, *words]
        return subprocess.run(command, capture_output=True, text=True)

    def settings(self, parameters):
        """Returns the experiment file and the links of a plan with these parameters."""
        self.write("plan.txt", PLAN + "".join(f"!Param {word}\n" for word in parameters))
        done = self.uet("--write", self.folder / "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.folder / "out/1"
        return (out / "uet.toml").read_text(), (out / "links.csv").read_text().splitlines()

    def refused(self, file, text, *parts, **options):
        before = (self.folder / file).read_bytes()
        self.write(file, text)
        done = self.uet(**options)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertRegex(done.stderr, r"^uet: [^\n]+; [^\n]+\n$")
        for part in parts:
            self.assertIn(part, done.stderr)
        (self.folder / file).write_bytes(before)

    def test_runs_a_plan_and_compares(self):
        self.write("plan.txt", "# a comment\n\n" + PLAN + "!FCT Uec_3_13 1\ntwo.cm\n!Experiment Credits\n!Param -receiver_cc_only\n")
        self.write("theirs.out", "Experiment: Two flows \n[PASS] Tail FCT 40 us below the target of 60 us\n")
        done = self.uet("--published", self.folder / "theirs.out", "--json", self.folder / "results.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = json.loads((self.folder / "results.json").read_text())["experiments"]
        self.assertEqual((first["name"], first["connections"], first["finished"], first["target_us"]), ("Two flows", 2, 2, 60))
        # 300 kB and a round trip of 12 us need 36 us at 100 Gbps. The second flow's time includes its start at 2 us.
        self.assertTrue(36 < first["tail_fct_us"] < 60, first)
        self.assertEqual(first["tail_fct_us"], max(first["fct_us"].values()))
        self.assertFalse(first["passed"])  # because of !FCT
        self.assertEqual(first["flow_targets"]["Uec_3_13"]["target_us"], 1)
        self.assertEqual((first["published_us"], second["published_us"]), (40, None))
        self.assertTrue(second["passed"])
        self.assertEqual(second["not_modelled"], ["receiver credits, so the sender controls"])
        self.assertIn("\n| Two flows | 2 of 2 | 60 | 40.0 | ", done.stdout)

    def test_equal_pairs_have_their_own_jobs(self):
        self.write("two.cm", "Nodes 16\nConnections 2\n0->13 start 0 size 5000\n0->13 start 0 size 5000\n")
        text, _ = self.settings([])
        self.assertIn('name = "Uec_0_13"\n', text)
        self.assertIn('name = "Uec_0_13#2"\n', text)

    def test_settings(self):
        text, links = self.settings(["-paths 128", "-load_balancing_algo oblivious"])
        for line in ('paths = 128', 'balance = "spray"', 'buffer = "178450 B"', 'ecn = { kmin = "37350 B", kmax = "145250 B" }',
                     'start = "2000 ns"', 'stop = true'):
            self.assertIn(line + "\n", text)
        self.assertEqual(len(links), 1 + 6 * 16)  # a fat tree with k = 4
        self.assertEqual(links[1], "host-0,tor-0,100000 Mbps,1000 ns,one-way")
        text, links = self.settings(["-q 10", "-failed 1", "-paths 1"])
        self.assertIn('buffer = "41500 B"', text)
        self.assertIn('balance = "one"', text)
        self.assertEqual([line for line in links if "25000 Mbps" in line], ["core-0,agg-0,25000 Mbps,1000 ns,one-way"])
        _, links = self.settings(["-topo tree.topo", "-failed 1"])
        self.assertEqual(len(links), 1 + 2 * (16 + 4 * 2))
        self.assertEqual(len([line for line in links if "25000 Mbps,500 ns" in line and "agg-0" in line]), 8)

    def test_invalid_plans(self):
        for text, *parts in [
                ("", "there are no experiments"), ("!Param -end 1\n", "plan.txt:1:", "no experiment yet"),
                (PLAN + "!Param -unknown\n", 'plan.txt:7: "-unknown"', "-load_balancing_algo"),
                (PLAN + "!Param -end -5\n", "line 5 has this parameter too"), (PLAN + "!Param -q -5\n", "plan.txt:7: -q", "-5"),
                (PLAN + "!Param -paths 257\n", "1 to 256"), (PLAN + "!Param -load_balancing_algo best\n", "oblivious, bitmap"),
                (PLAN + "!Param -q\n", "no value"), (PLAN + "!Other\n", "plan.txt:7:", "!Experiment NAME"),
                (PLAN + "!FCT Uec_1_2 5\n", "Uec_1_2"), (PLAN + "!tailFCT x\n", "plan.txt:7: !tailFCT"),
                (PLAN.replace("htsim_uec", "htsim_tcp"), "plan.txt:3: !Binary"), ("missing.cm\n", "plan.txt:1: matrix", "no file"),
                ("../root/../../two.cm\n", "is not below"), ("/etc/passwd\n", "is not below"),
                (PLAN + "!Param -topo ../tree.topo\n", "plan.txt:7: -topo", "is not below")]:
            self.refused("plan.txt", text, *parts)

    def test_invalid_matrices(self):
        header = "Nodes 16\nConnections 1\n"
        for text, *parts in [
                ("", "Nodes"), ("Nodes 16\n0->1 start 0 size 5\n", "Connections"), (MATRIX.replace("Connections 2", "Connections 3"), "2 follow"),
                ("Nodes 20\nConnections 1\n0->1 start 0 size 5\n", "plan.txt:1: matrix", "no fat tree of 20"),
                (header + "0->16 start 0 size 5\n", "two.cm:3:", "0 to 15"), (header + "-1->2 start 0 size 5\n", "two.cm:3:"),
                (header + "2->2 start 0 size 5\n", "to itself"), (header + "0->1 start 0 size -5\n", "two.cm:3: size"),
                (header + "0->1 start -1 size 5\n", "two.cm:3: start"), (header + "0->1 start 0 size 0\n", "size"),
                (header + "0->1 size 5\n", "has start, size"), (header + "0->1 id 1 trigger 1 size 5\n", "triggers"),
                (header + "trigger id 1 oneshot\n", "two.cm:3:", "triggers"), (header + "0->1 start 0 size\n", "each with a value"),
                (MATRIX.replace("id 2", "id 1"), "two.cm:4: id"), ("0->1 start 0 size 5\n", "above the number of nodes"),
                ("Nodes 16\nNodes 16\n", "two.cm:2:"), ("Nodes 16\nConnections 5000\n", "two.cm:2: Connections")]:
            self.refused("two.cm", text, *parts)

    def test_invalid_topologies(self):
        self.write("topo.txt", PLAN + "!Param -topo tree.topo\n")
        for text, *parts in [
                ("", "nodes is missing"), (TOPOLOGY.replace("Nodes 16", "Nodes 32"), "do not fit"),
                (TOPOLOGY.replace("Nodes 16", "Nodes 32").replace("Podsize 16", "Podsize 32").replace("Radix_Down 4\nDownlink_L", "Radix_Down 8\nDownlink_L"),
                 "32 nodes, and the matrix 16"),
                (TOPOLOGY.replace("Tiers 2", "Tiers 3"), "3 are announced"), (TOPOLOGY + "Bundle 2\n", '"Bundle"', "unknown"),
                (TOPOLOGY.replace("Radix_Up 2\n", ""), "radix_up is missing"), (TOPOLOGY.replace("Up 2", "Up -2"), "tree.topo:9:"),
                (TOPOLOGY.replace("Tier 1", "Tier 2"), "tree.topo:13:")]:
            self.refused("tree.topo", text, *parts, plan="topo.txt")

    def test_wrong_usage_is_reported_in_one_line(self):
        for words in [("--root", "nowhere"), ("--only", "nothing"), ("--mltcp", "nowhere"), ("--seed", "-1"), ("--json", "/"),
                      ("--published", "nowhere"), ("--published", self.folder / "plan.txt"), ("--unknown",)]:
            done = self.uet(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, r"^uet: [^\n]+; [^\n]+\n$")

    def test_their_plans_are_read(self):
        if not TRACES.is_dir():
            self.skipTest(f"no folder {TRACES}")
        plans = sorted((TRACES / "validate").iterdir())
        self.assertTrue(plans)
        for plan in plans:
            command = [sys.executable, ROOT / "bench/uet", plan, "--root", TRACES, "--write", self.folder / plan.stem]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
