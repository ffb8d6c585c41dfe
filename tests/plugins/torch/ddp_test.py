"""Tests tools/ddp as users run it. Usage: ddp_test.py DDP MLTCP. Exit status 77: this machine does not support the
test."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DDP, MLTCP = sys.argv.pop(1), sys.argv.pop(1)


def ddp(*arguments, limit=500):
    return subprocess.run([DDP, "--mltcp", MLTCP, *arguments], capture_output=True, text=True, timeout=limit)


class DdpTest(unittest.TestCase):
    def test_quick__runs_all_and_writes_results_and_a_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            file, picture = Path(folder) / "results.json", Path(folder) / "picture.svg"
            ended = ddp("--quick", "--json", str(file), "--svg", str(picture))
            self.assertEqual(ended.returncode, 0, ended.stderr)
            results = json.loads(file.read_text())
            svg = picture.read_text()
        self.assertEqual(results["schema"], "mltcp.ddp/1")
        self.assertTrue(results["checksums_equal"])
        self.assertEqual([one["transport"] for one in results["transports"]], ["tcp", "mltcp"])
        for entry in results["transports"]:
            for job in entry["jobs"]:
                self.assertEqual(len(job["iteration_ns"]), results["settings"]["iterations"])
                self.assertGreater(job["isolated_ns"], results["settings"]["compute"] * 1e9)
                self.assertGreater(job["slow_down"], 0.5)
            carried = [sum(one) for one in entry["runs"][0]["link"]["jobs"].values()]
            sent = results["settings"]["iterations"] * entry["jobs"][0]["gradient_bytes"]
            for bytes_on_wire in carried:
                self.assertGreater(bytes_on_wire, sent)
                self.assertLess(bytes_on_wire, 1.5 * sent)
        for entry in results["single"]:
            for one in entry["transports"]:
                ranks, iterations = entry["ranks"], results["settings"]["alone"]
                expected = iterations * 2 * (ranks - 1) / ranks * one["gradient_bytes"]
                segments = one["kernel"]["tcp_segments"]
                if one["transport"] == "mltcp":
                    # MLTCP carries all gradients. The kernel's TCP carries only the store of torch.distributed, which
                    # is idle during training.
                    self.assertGreater(one["state"]["bytes_posted"], expected)
                    self.assertLess(segments, 50)
                else:
                    self.assertGreater(segments * 8948, expected)
        self.assertEqual(results["provenance"]["command"][0], "ddp")
        self.assertIn("prefers-color-scheme:dark", svg)
        self.assertRegex(svg, r"mltcp")

    def test_what_is_wrong__is_said_in_a_line(self):
        for arguments, text in ((["--rate", "fast"], "is not a rate"), (["--parts", "all"], '"all" is none of single, shared'),
                                (["--compute", "12"], "is not a time"), (["--model", "vgg"], "invalid choice"),
                                (["--json", "/nowhere/x.json"], "/nowhere/x.json cannot be written"),
                                (["--mltcp", "/nowhere"], "/nowhere is not a program; build it")):
            with self.subTest(arguments=arguments):
                ended = subprocess.run([DDP, "--mltcp", MLTCP, *arguments], capture_output=True, text=True, timeout=60)
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(text, ended.stderr)
                self.assertEqual(len(ended.stderr.splitlines()), 1)

    def test_help__says_what_is_run(self):
        ended = ddp("--help")
        self.assertEqual(ended.returncode, 0)
        for word in ("--json", "--svg", "--repeats", "is simulated", "Exit status"):
            self.assertIn(word, ended.stdout)


if __name__ == "__main__":
    ready = subprocess.run([MLTCP, "testbed", "--hosts", "2", "--device", "udp", "--command", "true"], capture_output=True,
                           text=True)
    if ready.returncode != 0:
        print(f"skipped: no testbed here: {ready.stderr.strip().splitlines()[-1]}")
        sys.exit(77)
    try:
        import torch.distributed  # noqa: F401
    except ImportError as error:
        print(f"skipped: {sys.executable} has no PyTorch ({error}); install Debian's python3-torch")
        sys.exit(77)
    unittest.main(verbosity=2)
