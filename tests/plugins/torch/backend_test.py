"""Tests backend "mltcp" of torch.distributed: the same results as from "gloo" over kernel TCP, statement of iterations,
errors. Exit status 77: this interpreter has no PyTorch with Gloo."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from forked import Forked

WORKER = Path(__file__).with_name("worker.py")


class Ranks:
    """The processes of a scenario, one per rank. They are forks of this process, or new processes if `fresh` or `user`
    is set."""

    def __init__(self, scenario, ranks, user=None, fresh=False, **environment):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o777)
        base = {name: value for name, value in os.environ.items() if not name.startswith(("GLOO_", "MLTCP_"))}
        base["MLTCP_TORCH_LIBRARY"] = os.environ["MLTCP_TORCH_LIBRARY"]
        base.update({"GLOO_SOCKET_IFNAME": "lo"}, **environment)
        self.processes = []
        for rank in range(ranks):
            words = [str(WORKER), scenario, str(rank), str(ranks), f"{self.folder.name}/store"]
            self.processes.append(
                subprocess.Popen([sys.executable, *words], env=base, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 user=user)
                if fresh or user is not None else Forked(words, base))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.processes:
            if one.poll() is None:
                one.kill()
            one.communicate()
        self.folder.cleanup()

    def end(self):
        """Waits for all processes. Returns for each process: (exit status, last line as JSON or None,
        standard error)."""
        found = []
        for one in self.processes:
            out, error = one.communicate()
            lines = out.splitlines()
            found.append((one.returncode, json.loads(lines[-1]) if lines else None, error))
        return found


def run(scenario, ranks, **environment):
    with Ranks(scenario, ranks, **environment) as started:
        return started.end()


def python(code, fresh=False, **environment):
    """Runs a program in a fork of this process, or in a new process if `fresh`. Returns (exit status, standard output,
    standard error)."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("GLOO_")}
    base.update(environment)
    if fresh:
        ended = subprocess.run([sys.executable, "-c", code], env=base, capture_output=True, text=True, timeout=100, check=False)
        return ended.returncode, ended.stdout, ended.stderr
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(code, encoding="utf-8")
        started = Forked([program], base)
        out, error = started.communicate()
    return started.returncode, out, error


def unprivileged_user():
    """If this process runs as root, returns the number of an unprivileged user who runs a test. Returns None if this
    process does not run as root. Also returns None, and prints a message, if the unprivileged user cannot read the
    files of the test."""
    if os.getuid() != 0:
        return None
    nobody = 65534
    for file in (WORKER, os.environ["MLTCP_TORCH_LIBRARY"]):
        if subprocess.run(["cat", file], user=nobody, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            print(f"as root, as user {nobody} can't read {file}")
            return None
    return nobody


class BackendTest(unittest.TestCase):
    def results(self, scenario, ranks, **environment):
        ended = run(scenario, ranks, **environment)
        for status, _, error in ended:
            self.assertEqual(status, 0, error)
        return [one for _, one, _ in ended]

    def test_every_collective_gives_what_gloo_gives_over_tcp(self):
        ours = self.results("collectives", 3)
        theirs = self.results("collectives", 3, WORKER_BACKEND="gloo")
        self.assertEqual([one["checksum"] for one in ours], [one["checksum"] for one in theirs])
        self.assertEqual({one["backend"] for one in ours}, {"mltcp"})
        self.assertEqual([one["groups"] for one in ours], [2, 2, 1], "new_group() has a device of its own")
        self.assertGreater(ours[0]["results"], 80)

    def test_variables_of_the_debug_mode_and_of_interfaces_work_as_with_gloo(self):
        detail = self.results("collectives", 2, TORCH_DISTRIBUTED_DEBUG="DETAIL", GLOO_SOCKET_IFNAME="lo,lo")
        plain = self.results("collectives", 2)
        self.assertEqual([one["checksum"] for one in detail], [one["checksum"] for one in plain])
        own = self.results("collectives", 2, GLOO_SOCKET_IFNAME="", MLTCP_DEVICE="udp:lo")
        self.assertEqual([one["checksum"] for one in own], [one["checksum"] for one in plain])

    def test_training_is_the_same_to_the_bit_and_says_who_tells_iterations(self):
        for ranks in (2, 3):
            tcp = self.results("train", ranks, WORKER_BACKEND="gloo")
            self.assertEqual(len({one["checksum"] for one in tcp}), 1)
            for mark, by in (("", "collectives"), ("hook", "hook"), ("program", "program")):
                with self.subTest(ranks=ranks, mark=mark):
                    ours = self.results("train", ranks, WORKER_MARK=mark)
                    self.assertEqual({one["checksum"] for one in ours}, {tcp[0]["checksum"]})
                    for one in ours:
                        self.assertEqual(one["states"][-1]["iterations_by"], by, one["states"])
                        if by == "program":
                            continue
                        # In a ring of n ranks, each rank sends 2 (n - 1) / n of all gradients. If collectives mark the
                        # iterations, the size also includes buffers that rank 0 broadcasts.
                        expected = 2 * (ranks - 1) / ranks * one["gradient_bytes"]
                        size = one["states"][-1]["bytes_per_iteration"]
                        self.assertLess(abs(size - expected), 0.02 * expected)
                    if by == "hook":
                        self.assertEqual([one["iteration"] for one in ours[0]["states"]], list(range(1, 25)))

    def test_iterations_are_those_of_the_group_that_is_trained_or_named(self):
        for debug in ("OFF", "DETAIL"):
            with self.subTest(debug=debug):
                for one in self.results("groups", 2, TORCH_DISTRIBUTED_DEBUG=debug):
                    self.assertEqual(one["trained"][1], "hook")
                    self.assertNotIn(one["trained"][0], ("hook", "program"))
                    self.assertEqual(one["named"], ["program", "hook"])
                    self.assertEqual(one["every"], ["program", "program"])
                    self.assertEqual(one["refused"], 2 * [
                        'the process group does not use MLTCP; create it with backend "mltcp"'])

    def test_gradients_as_views_of_buckets_are_averaged_as_without_the_hook(self):
        for ranks in (2, 3):
            tcp = self.results("train", ranks, WORKER_BACKEND="gloo", WORKER_VIEW="1")
            ours = self.results("train", ranks, WORKER_MARK="hook", WORKER_VIEW="1")
            self.assertEqual({one["checksum"] for one in ours + tcp}, {tcp[0]["checksum"]})

    def test_a_hook_of_the_users_is_what_it_is_alone(self):
        tcp = self.results("train", 2, WORKER_BACKEND="gloo", WORKER_MARK="fp16")
        ours = self.results("train", 2, WORKER_MARK="fp16")
        self.assertEqual({one["checksum"] for one in ours}, {tcp[0]["checksum"]})
        last = ours[0]["states"][-1]
        self.assertEqual(last["iterations_by"], "hook")
        self.assertLess(abs(last["bytes_per_iteration"] - ours[0]["gradient_bytes"] / 2), 1000, "half of each gradient")

    def test_the_variable_does_not_matter_and_gloo_goes_by_it(self):
        for name in ("TCP", "MLTCP"):
            with self.subTest(GLOO_DEVICE_TRANSPORT=name):
                self.assertEqual(self.results("collectives", 2, GLOO_DEVICE_TRANSPORT=name)[0]["groups"], 2)

    def test_a_rank_that_is_killed_is_named_by_the_others(self):
        with Ranks("reduce_for_ever", 3, MLTCP_PEER_TIMEOUT_MS="1000") as started:
            pids = [json.loads(one.stdout.readline())["pid"] for one in started.processes]
            os.kill(pids[2], signal.SIGKILL)
            begun = time.monotonic()
            ended = started.end()
            took = time.monotonic() - begun
        self.assertEqual(ended[2][0], -signal.SIGKILL)
        for rank in (0, 1):
            self.assertEqual(ended[rank][0], 3, ended[rank])
            self.assertIn("rank 2", ended[rank][1]["error"])
        self.assertLess(took, 15, "a peer that was not heard for 1 s is gone, 1.5 s at most; the rest is Python")

    def test_an_interface_that_is_not_there_is_named_with_the_cure(self):
        for status, _, error in run("collectives", 2, GLOO_SOCKET_IFNAME="nowhere0"):
            self.assertEqual(status, 1)
            line = error.splitlines()[-1]
            self.assertIn("GLOO_SOCKET_IFNAME=nowhere0", line)
            self.assertRegex(line, r'this machine has no interface "nowhere0"; use one of these: .*\blo\b')
            self.assertIn("docs/how-to/torch.md", line)

    def test_settings_that_are_wrong_are_named(self):
        for name, value in (("MLTCP_CC", "nonsense"), ("MLTCP_JOB_FUNCTION", "F9"), ("MLTCP_PEER_TIMEOUT_MS", "soon")):
            with self.subTest(name=name):
                for status, _, error in run("collectives", 2, **{name: value}):
                    self.assertEqual(status, 1)
                    self.assertIn(value, error.splitlines()[-1])

    def test_the_process_grows_by_less_than_64_mb_and_its_threads_stay_as_they_are_without_privileges(self):
        tcp = self.results("footprint", 2, fresh=True, WORKER_BACKEND="gloo")
        user = unprivileged_user()
        for one in self.results("footprint", 2, fresh=True, user=user):
            self.assertEqual(one["user"], os.getuid() if user is None else user)
            print(f"resident: {one['memory'] / 1e6:.1f} MB more, over TCP {tcp[0]['memory'] / 1e6:.1f}; "
                  f"threads: {one['added']} more, over TCP {tcp[0]['added']}")
            self.assertLess(one["memory"], 64_000_000)
            self.assertEqual(one["changed"], [])
            self.assertEqual(one["intra_op"], [2, 2])
            self.assertLessEqual(one["added"], tcp[0]["added"] + 2)

    def test_a_thread_that_drops_the_last_of_a_tensor_does_not_end_the_process_with_the_interpreter(self):
        self.results("last_hold", 2, fresh=True)
        self.results("last_hold", 2, fresh=True, WORKER_HOLDS="1")

    def test_children_of_multiprocessing_that_have_their_parents_groups_end(self):
        for one in self.results("fork", 2, fresh=True):
            self.assertEqual(one["exitcode"], 0)

    def test_children_of_multiprocessing_leave_their_groups(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method), tempfile.TemporaryDirectory() as folder:
                program = Path(folder) / "program.py"
                program.write_text(
                    "import multiprocessing.util, os, sys\n"
                    "import torch.distributed as dist\n"
                    "import mltcp.torch\n"
                    "def last():\n"
                    "    os.write(1, f'{dist.is_initialized()}\\n'.encode())  # at once: both write\n"
                    "def rank(number):\n"
                    "    multiprocessing.util.Finalize(None, last, exitpriority=-1)\n"
                    f"    dist.init_process_group('mltcp', init_method='file://{folder}/store', rank=number, world_size=2)\n"
                    "    dist.barrier()\n"
                    "if __name__ == '__main__':\n"
                    f"    make = multiprocessing.get_context('{method}').Process\n"
                    "    ranks = [make(target=rank, args=(one,)) for one in range(2)]\n"
                    "    for one in ranks: one.start()\n"
                    "    for one in ranks: one.join()\n"
                    "    sys.exit(any(one.exitcode for one in ranks))\n", encoding="utf-8")
                ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=100,
                                       env=dict(os.environ, GLOO_SOCKET_IFNAME="lo"))
                self.assertEqual((ended.returncode, ended.stdout), (0, "False\nFalse\n"), ended.stderr)


class ImportTest(unittest.TestCase):
    def test_importing_again_in_another_way_finds_it_there(self):
        status, out, error = python("import sys, mltcp.torch, importlib\n"
                                    "importlib.reload(mltcp.torch)\n"
                                    "del sys.modules['mltcp.torch']\n"
                                    "import mltcp.torch\n"
                                    "print(mltcp.torch.state())")
        self.assertEqual((status, out), (0, "[]\n"), error)

    def test_the_library_of_gloo_may_be_loaded_beside_it(self):
        gloo = Path(os.environ["MLTCP_TORCH_LIBRARY"]).with_name("libmltcp-gloo.so.0")
        for code in (f"import ctypes; ctypes.CDLL('{gloo}'); import mltcp.torch",
                     f"import mltcp.torch, ctypes; ctypes.CDLL('{gloo}')"):
            status, _, error = python(code)
            self.assertEqual(status, 0, error)

    def test_another_copy_of_the_library_is_refused(self):
        library = Path(os.environ["MLTCP_TORCH_LIBRARY"])
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / library.name
            copy.write_bytes(library.read_bytes())
            # A new process is needed, because the dynamic linker reads LD_LIBRARY_PATH only when a process starts.
            status, _, error = python("import os, sys, mltcp.torch\n"
                                      "del sys.modules['mltcp.torch']\n"
                                      f"os.environ['MLTCP_TORCH_LIBRARY'] = '{copy}'\n"
                                      "import mltcp.torch", fresh=True, LD_LIBRARY_PATH=str(library.parent))
        self.assertNotEqual(status, 0)
        self.assertIn("another copy of libmltcp-torch.so.0", error.splitlines()[-1])

    def test_another_release_of_pytorch_is_refused(self):
        status, _, error = python("import torch; torch.__version__ = '9.9.0'; import mltcp.torch")
        self.assertNotEqual(status, 0)
        self.assertRegex(error.splitlines()[-1], r"was built with PyTorch 1\.13\S*, but this is 9\.9\.0; build it again")

    def test_what_is_no_library_is_named(self):
        status, _, error = python("import mltcp.torch", MLTCP_TORCH_LIBRARY="/nowhere/libmltcp-torch.so.0")
        self.assertNotEqual(status, 0)
        self.assertIn("/nowhere/libmltcp-torch.so.0", error.splitlines()[-1])

    def test_mark_iterations_wants_a_model_that_is_wrapped(self):
        status, _, error = python("import mltcp.torch, torch; mltcp.torch.mark_iterations(torch.nn.Linear(1, 1))")
        self.assertNotEqual(status, 0)
        self.assertIn("DistributedDataParallel, not a Linear", error.splitlines()[-1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
