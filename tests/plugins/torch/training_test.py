"""Tests that the same script of DistributedDataParallel gives bit-identical results over MLTCP and over Gloo's TCP.
Exit status 77: this interpreter has no PyTorch with Gloo."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from forked import Forked

RANK = Path(__file__).with_name("rank.py")


def train(ranks, transport, fresh=True, **environment):
    """Runs a training. Returns for each rank: (exit status, standard output, standard error). Ranks are new processes
    if `fresh` is true, and forks of this process if `fresh` is false."""
    with tempfile.TemporaryDirectory() as folder:
        base = dict(os.environ, **{"GLOO_DEVICE_TRANSPORT": transport, "GLOO_SOCKET_IFNAME": "lo", **environment})
        started = []
        for rank in range(ranks):
            words = [str(RANK), str(rank), str(ranks), os.path.join(folder, "store")]
            started.append(subprocess.Popen([sys.executable, *words], env=base, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            text=True)
                           if fresh else Forked(words, base))
        ended = []
        try:
            for one in started:
                out, error = one.communicate(timeout=100) if fresh else one.communicate()
                ended.append((one.returncode, out, error))
        finally:
            for one in started:
                if one.poll() is None:
                    one.kill()
                    one.communicate()
        return ended


class TrainingTest(unittest.TestCase):
    def test_the_same_parameters_as_over_tcp_to_the_bit(self):
        for ranks in (2, 3):
            results = {}
            for transport in ("TCP", "MLTCP"):
                # With two ranks, each rank runs in a new interpreter, which ends as in a user's program.
                ended = train(ranks, transport, fresh=ranks == 2)
                for status, _, error in ended:
                    self.assertEqual(status, 0, error)
                results[transport] = [json.loads(out.splitlines()[-1]) for _, out, _ in ended]
            checksums = {one["checksum"] for transport in results.values() for one in transport}
            self.assertEqual(len(checksums), 1, results)
            self.assertTrue(all(one["state"] == [] for one in results["TCP"]))
            for one in results["MLTCP"]:
                self.assertEqual(len(one["state"]), 1, "one device for the process group")
                self.assertEqual(one["state"][0]["connections"], 2 * (ranks - 1))
                # The model has 596,490 parameters of 4 bytes. In each of 6 steps, each of n ranks sends 2 (n - 1) / n
                # times these bytes.
                self.assertGreater(one["gradient_bytes"], 6 * 4 * 596_490 * 2 * (ranks - 1) / ranks)

    def test_a_wrong_interface_is_named_with_the_cure(self):
        ended = train(2, "MLTCP", fresh=False, GLOO_SOCKET_IFNAME="nowhere0")
        for status, _, error in ended:
            self.assertNotEqual(status, 0)
            self.assertIn("nowhere0", error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
