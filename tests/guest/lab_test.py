"""Tests guest_lab.py and the program `lab`. Checks the content of guests with kernels and programs that the tests
create, and guests that end normally, late or not at all."""
import contextlib
import fcntl
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guest_lab  # noqa: E402

LAB = [sys.executable, f"{HERE}/lab"]
LONGEST_S = 280  # limit for a guest that starts up to three times


def members(archive):
    """Returns the content of a cpio archive in its order: name -> (mode, content)."""
    out = io.BytesIO()
    archive.write(out)
    data = out.getvalue()
    found = {}
    at = 0
    while True:
        assert data[at:at + 6] == b"070701", data[at:at + 6]
        fields = [int(data[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = data[at + 110:at + 110 + name_size - 1].decode()
        at = (at + 110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (mode, data[at:at + size])
        at = (at + size + 3) // 4 * 4


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="mltcp-lab-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, path, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{path}"), exist_ok=True)
        with open(f"{self.folder}/{path}", "w", encoding="utf-8") as stream:
            stream.write(text)
        return f"{self.folder}/{path}"


class ArchiveTest(Files):
    def test_parents_come_first(self):
        archive = guest_lab.Archive()
        archive.text("/a/b/c", "text")
        names = list(members(archive))
        self.assertLess(names.index("a"), names.index("a/b"))
        self.assertLess(names.index("a/b"), names.index("a/b/c"))

    def test_content_of_any_length_is_kept(self):
        archive = guest_lab.Archive()
        for length in range(9):
            archive.text(f"/f{length}", "x" * length)
        found = members(archive)
        for length in range(9):
            self.assertEqual(found[f"f{length}"][1], b"x" * length)

    def test_root_is_not_for_all_to_write(self):
        mode, _ = members(guest_lab.Archive())["."]
        self.assertEqual(stat.S_IMODE(mode), 0o755)

    def test_file_comes_with_what_it_links_to(self):
        target = self.write("lib/real.so.1", "code")
        os.symlink("real.so.1", f"{self.folder}/lib/real.so")
        archive = guest_lab.Archive()
        archive.file(f"{self.folder}/lib/real.so")
        found = members(archive)
        mode, content = found[f"{self.folder}/lib/real.so".strip("/")]
        self.assertTrue(stat.S_ISLNK(mode))
        self.assertEqual(content.decode(), target)
        self.assertEqual(found[target.strip("/")][1], b"code")

    def test_lib_is_debians_link(self):
        archive = guest_lab.Archive()
        self.assertEqual(archive.place("/lib/x86_64-linux-gnu/libc.so.6"), "/usr/lib/x86_64-linux-gnu/libc.so.6")
        self.assertEqual(archive.place("/library/a"), "/library/a")
        self.assertEqual(members(archive)["lib"][1], b"usr/lib")

    def test_program_brings_its_loader_and_libraries(self):
        archive = guest_lab.Archive()
        archive.program("/bin/dash")
        names = set(members(archive))
        self.assertIn("usr/bin/dash", names)
        self.assertTrue(any(name.endswith("/libc.so.6") for name in names), names)
        self.assertTrue(any("ld-linux" in name for name in names), names)

    def test_file_that_can_not_be_read_is_named(self):
        archive = guest_lab.Archive()
        path = self.write("file", "text")
        archive.file(path, "/file")
        os.remove(path)
        with self.assertRaisesRegex(guest_lab.Failed, f"{path}: No such file or directory"):
            archive.write(io.BytesIO())

    def test_tree_has_all_of_a_folder(self):
        self.write("d/a", "1")
        self.write("d/e/b", "2")
        archive = guest_lab.Archive()
        archive.tree(f"{self.folder}/d", "/there")
        found = members(archive)
        self.assertEqual((found["there/a"][1], found["there/e/b"][1]), (b"1", b"2"))


class ModulesTest(Files):
    def setUp(self):
        super().setUp()
        self.write("boot/vmlinuz-9.9-amd64", "image")
        folder = "lib/modules/9.9-amd64"
        self.write(f"{folder}/modules.dep", "kernel/net/a-b.ko: kernel/net/c.ko kernel/lib/d.ko\nkernel/net/c.ko: "
                   "kernel/lib/d.ko\nkernel/lib/d.ko:\nkernel/x/rdma_rxe.ko:\nkernel/x/crc32_generic.ko.xz:\n")
        self.write(f"{folder}/modules.softdep", "# comment\nsoftdep c pre: crc32_generic nosuch post: z\n")
        self.write(f"{folder}/modules.builtin", "kernel/lib/built-in.ko\n")
        self.kernel = guest_lab.Kernel(self.folder, "9.9-amd64")

    def names(self, *wanted):
        return [guest_lab.module_name(path) for path, _ in guest_lab.module_order(self.kernel, wanted)]

    def test_what_is_needed_comes_first_and_once(self):
        self.assertEqual(self.names("a-b", "c"), ["d", "crc32_generic", "c", "a_b"])

    def test_options_are_kept(self):
        self.assertEqual(guest_lab.module_order(self.kernel, ["d n=2 m=x"]), [("kernel/lib/d.ko", "n=2 m=x")])

    def test_what_is_used_later_is_loaded_before(self):
        self.assertEqual(self.names("rdma_rxe"), ["crc32_generic", "rdma_rxe"])

    def test_what_is_built_in_is_left_out(self):
        self.assertEqual(self.names("built_in"), [])

    def test_unknown_module_is_named(self):
        with self.assertRaisesRegex(guest_lab.Failed, "kernel 9.9-amd64 has no module nosuch; "):
            self.names("nosuch")

    def test_newest_kernel_that_is_complete_is_taken(self):
        self.write("boot/vmlinuz-10.1-amd64", "image")  # this kernel has no modules
        self.write("boot/vmlinuz-9.10-cloud-amd64", "image")
        self.write("boot/vmlinuz-9.10-amd64", "image")
        self.write("lib/modules/9.10-amd64/modules.dep", "kernel/lib/d.ko:\n")
        before = os.environ.get("MLTCP_GUEST_CACHE")
        os.environ["MLTCP_GUEST_CACHE"] = self.folder
        self.addCleanup(lambda: os.environ.pop("MLTCP_GUEST_CACHE") if before is None
                        else os.environ.update(MLTCP_GUEST_CACHE=before))
        self.assertEqual(guest_lab.find_kernel("9.10-amd64").version, "9.10-amd64")
        self.assertEqual(max(["9.9-amd64", "9.10-amd64"], key=guest_lab.version_key), "9.10-amd64")
        with self.assertRaisesRegex(guest_lab.Lacking, "no kernel 10.1-amd64 here; get one: tools/setup --with guest"):
            guest_lab.find_kernel("10.1-amd64")


def lab(*words):
    return subprocess.run([*LAB, *words], capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)


class WordsTest(unittest.TestCase):
    def test_neither_script_nor_command(self):
        done = lab()
        self.assertEqual(done.returncode, 2)
        self.assertIn("give a SCRIPT or --command", done.stderr)

    def test_script_that_is_not_there(self):
        done = lab("/nowhere/script")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere/script: No such file or directory", done.stderr)


    def refused(self, words, line):
        done = lab(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(line, done.stderr)
        self.assertLessEqual(done.stderr.count("\n"), 2)

    def test_both_script_and_command(self):
        self.refused(["-c", "true", "script"], "give a SCRIPT or --command, not both")

    def test_numbers_are_above_0(self):
        for option in ("--seconds", "--memory", "--processors"):
            for number in ("0", "-5", "x"):
                self.refused([f"{option}={number}", "-c", "true"], f'{option}: "{number}" is not a whole number above 0')

    def test_what_can_not_be_written_is_told_before_the_guest(self):
        self.refused(["--out", __file__, "-c", "true"], f"--out {__file__}: File exists; name another folder")
        self.refused(["--out", "/proc/folder", "-c", "true"], "--out /proc/folder: No such file or directory")
        self.refused(["--console", "/nowhere/file", "-c", "true"], "the folder /nowhere is not there or can't be written to")
        self.refused(["--console", "/tmp", "-c", "true"], "--console /tmp: is a folder; name a file")

    def test_script_for_another_interpreter(self):
        self.refused([LAB[-1]], "is for python3, and the guest has sh")


class FakeQemu:
    """Imitates a running QEMU that the test controls. `answer(number, line)` returns the answer to a line for the
    monitor, or None to give no answer. `asks` contains the requests of the guest. The output of the program `command`
    takes the place of the output of QEMU."""

    def __init__(self, folder, command=("sleep", "1000"), answer=lambda number, line: "", asks=b"", greets=True):
        self.answer = answer
        self.heard = []
        self.replies = b""
        self.threads = []
        self.listeners = []
        self.ended = threading.Event()
        for name, serve in (("qmp", self.serve_monitor), ("asked", self.serve_port)):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(f"{folder}/{name}")
            listener.listen()
            self.listeners.append(listener)
            self.threads.append(threading.Thread(target=serve, args=(listener, greets if name == "qmp" else asks)))
            self.threads[-1].start()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def serve_monitor(self, listener, greets):
        connection, _ = listener.accept()
        with connection, connection.makefile("r") as lines:
            if not greets:
                self.ended.wait()
                return
            connection.sendall(b'{"QMP": {}}\n')
            for line in lines:
                request = json.loads(line)
                if "id" not in request:
                    continue
                self.heard.append(request["arguments"]["command-line"])
                answer = self.answer(request["id"], self.heard[-1])
                if answer is None:
                    continue
                connection.sendall((answer or '{"return": "", "id": %d}\n' % request["id"]).encode())

    def serve_port(self, listener, asks):
        connection, _ = listener.accept()
        with connection:
            connection.sendall(asks)
            while part := connection.recv(65536):
                self.replies += part

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.ended.set()
        for thread in self.threads:
            thread.join()
        for listener in self.listeners:
            listener.close()


class ExchangeTest(Files):
    """Tests Exchange with an imitated QEMU that continues, hangs, gives false answers or does not answer."""

    def setUp(self):
        super().setUp()
        os.makedirs(f"{self.folder}/lab")
        self.write("console", "Linux version\nSome driver\n")

    def exchange(self, qemu, seconds=1, output=None, may_stand_still=True):
        exchange = guest_lab.Exchange(qemu.process, self.folder, seconds, output, may_stand_still)
        exchange.STILL_S = exchange.END_S = exchange.GRACE_S = exchange.SPEAK_S = 1
        begun = time.monotonic()
        exchange.run()
        self.assertLess(time.monotonic() - begun, 60)
        return exchange, guest_lab.Result(types.SimpleNamespace(accelerator="tcg"), self.folder, exchange, 1)

    def test_kernel_that_stands_still_is_ended_before_its_commands(self):
        def answer(number, line):
            self.assertEqual(line, "info registers -a")
            return json.dumps({"return": "CPU#0\r\nRIP=ffff81 RFL=2 HLT=1\r\n\r\nCPU#1\r\nRIP=ffff82 RFL=2 HLT=0", "id": number}) + "\n"
        with FakeQemu(self.folder, answer=answer) as qemu:
            exchange, result = self.exchange(qemu)
        self.assertEqual(exchange.ended, exchange.STOOD_STILL)
        self.assertEqual(result.problem, "the guest stood still while it started; its kernel's last line: Some driver (its "
                                         "processors were at ffff81 halted, ffff82; ffff81 halted, ffff82)")
        self.assertFalse(result.timed_out)

    def test_kernel_that_must_not_stand_still_has_its_time(self):
        with FakeQemu(self.folder) as qemu:
            guest_lab.Exchange.BOOT_S, boot = 3, guest_lab.Exchange.BOOT_S
            try:
                exchange, result = self.exchange(qemu, may_stand_still=False)
            finally:
                guest_lab.Exchange.BOOT_S = boot
        self.assertEqual(exchange.ended, exchange.TOO_LATE)
        self.assertIn("the guest did not get to its commands; its kernel's last line: Some driver", result.problem)

    def test_end_that_does_not_come_is_not_waited_for(self):
        self.write("lab/booted", "booted\n")
        self.write("lab/status", "7\n")
        with FakeQemu(self.folder) as qemu:
            exchange, result = self.exchange(qemu, seconds=1000)
        self.assertEqual((exchange.ended, result.status, result.problem), (exchange.BY_ITSELF, 7, ""))

    def test_output_is_whole_for_a_slow_reader(self):
        self.write("lab/booted", "booted\n")
        self.write("lab/status", "0\n")
        with FakeQemu(self.folder, ("sh", "-c", "head -c 300000 /dev/zero; exec sleep 1000")) as qemu:
            _, result = self.exchange(qemu, seconds=1000, output=lambda _: time.sleep(0.6))
        self.assertEqual(len(result.output), 300000)

    def test_monitor_that_says_nothing_does_not_put_off_the_end(self):
        for greets, silent in ((False, False), (True, True)):
            with self.subTest(greets=greets):
                with FakeQemu(self.folder, answer=lambda number, line: None, asks=b"1 device_del nic0\n", greets=greets) as qemu:
                    self.write("lab/booted", "booted\n")
                    exchange, result = self.exchange(qemu)
                self.assertEqual(exchange.ended, exchange.TOO_LATE)
                self.assertTrue(result.timed_out)
                self.assertIn("did not end in time, and the guest did not say where they hang", result.problem)
                self.assertTrue(not greets or "sendkey alt-sysrq-t" in qemu.heard)
            for name in ("qmp", "asked"):
                os.unlink(f"{self.folder}/{name}")

    def test_monitor_that_breaks_off_is_no_error_of_ours(self):
        self.write("lab/booted", "booted\n")
        self.write("lab/status", "3\n")
        with FakeQemu(self.folder, ("sleep", "2"), answer=lambda number, line: '{"return": "unfinished\n',
                      asks=b"1 info name\n") as qemu:
            _, result = self.exchange(qemu)
        self.assertEqual((result.status, result.problem), (3, ""))

    def test_answers_carry_the_number_of_their_request(self):
        def answer(number, line):
            return json.dumps({"return": f"of {line}\r\n\r\nmore\r\n", "id": number}) + "\n"
        self.write("lab/booted", "booted\n")
        self.write("lab/status", "0\n")
        with FakeQemu(self.folder, answer=answer, asks=b"12 info a\n7 info b\n") as qemu:
            self.exchange(qemu)
        self.assertEqual(qemu.replies, b"12 of info a\n12 more\n12.\n7 of info b\n7 more\n7.\n")


class FoldersTest(Files):
    def test_left_ones_go_and_others_stay(self):
        names = [f"{self.folder}/{guest_lab.FOLDER}{name}" for name in ("left", "used", "new")]
        for name in names:
            os.makedirs(f"{name}/lab")
        for name in names[:2]:
            os.utime(name, (0, 0))
        lock = os.open(names[1], os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = tempfile.tempdir
        try:
            tempfile.tempdir = self.folder
            guest_lab.remove_left_folders()
        finally:
            tempfile.tempdir = before
            os.close(lock)
        self.assertEqual([os.path.exists(name) for name in names], [False, True, True])

    def test_what_is_no_file_is_left_out(self):
        os.makedirs(f"{self.folder}/out/sub")
        self.write("out/sub/file", "text")
        os.mkfifo(f"{self.folder}/out/sub/pipe")
        os.symlink("file", f"{self.folder}/out/sub/link")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            guest_lab.copy_out(f"{self.folder}/out", f"{self.folder}/copy")
        self.assertEqual(sorted(os.listdir(f"{self.folder}/copy/sub")), ["file", "link"])
        self.assertIn("left out of", said.getvalue())
        self.assertIn("sub/pipe", said.getvalue())


class GuestWordsTest(unittest.TestCase):
    """Tests that need QEMU and a kernel."""

    def test_nic_that_can_not_be_read(self):
        done = lab("--nic", "e1000e", "-c", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--nic e1000e: write KIND:WIRE", done.stderr)

    def test_wire_that_can_not_be_joined(self):
        for words in ("1:here", "one:here:there", "1::there"):
            done = lab("--join", words, "-c", "true")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"--join {words}: write WIRE:HERE:THERE", done.stderr)
        done = lab("--join", f"1:here:{'there' * 30}", "-c", "true")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("can't be the path of a socket; give one of 107 bytes", done.stderr)

    def test_program_that_is_not_there(self):
        done = lab("-p", "no-such-program", "-c", "true")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("no-such-program", done.stderr)


def run_lab(*words, seconds):
    """Runs the program `lab` as subprocess.run() would. After a timeout, stops `lab` with SIGTERM, so that it can clean
    up, and keeps its output."""
    process = subprocess.Popen([*LAB, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        output, errors = process.communicate(timeout=60)
        raise AssertionError(f"lab took more than {seconds} s; it said:\n{output}\n{errors}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


class GuestTest(Files):
    def test_commands_run_and_their_files_come_back(self):
        os.makedirs(f"{self.folder}/in")
        self.write("in/given", "from here\n")
        commands = """
            set -e
            uname -r
            cat /given/given
            cat /sys/bus/pci/devices/*/class | grep -c ^0x02
            ip link add va type veth peer name vb     # iproute2's: busybox's can't
            ip -br link show va | cut -d' ' -f1
            lsmod | grep -q ^veth
            mkdir /out/folder
            echo back >/out/folder/file
            monitor info name
            monitor no_such_command
            timeout 0.01 monitor info qtree >/dev/null || true     # is not waited for
            monitor info name & monitor info name; wait
            echo on standard error >&2
            ! ls /home 2>/dev/null
            exit 7
            """
        # Some wires have only one NIC. Without wire_ends(), QEMU would warn about them.
        nics = [word for wire in (1, 1, 2, 3) for word in ("--nic", f"virtio-net-pci:{wire}")]
        nics += ["--join", f"3:{self.folder}/here:{self.folder}/there"]
        done = run_lab(*nics, "-m", "veth", "-p", "ip", "-f", f"{self.folder}/in=/given", "--out", f"{self.folder}/out",
                       "--console", f"{self.folder}/console", "--seconds", "80", "-c", commands, seconds=LONGEST_S)
        lines = done.stdout.split("\n")
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertEqual(lines[0], guest_lab.find_kernel().version)
        self.assertEqual(lines[1:4], ["from here", "4", "va@vb"])
        self.assertIn("mltcp-", lines[4])
        self.assertIn("unknown command", done.stdout)
        self.assertIn("on standard error", done.stdout)
        with open(f"{self.folder}/out/folder/file", encoding="utf-8") as stream:
            self.assertEqual(stream.read(), "back\n")
        with open(f"{self.folder}/console", encoding="utf-8") as stream:
            self.assertIn("Linux version", stream.read())

    def test_waiting_takes_no_time_in_virtual_time(self):
        begun = time.monotonic()
        done = subprocess.run([*LAB, "--virtual-time", "--seconds", "900", "-c", "date +%s; sleep 300; date +%s; nproc"],
                              capture_output=True, text=True, check=False, timeout=250)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        first, last, processors = (int(word) for word in done.stdout.split())
        self.assertIn(last - first, (300, 301))
        self.assertEqual(processors, 1)
        self.assertLess(time.monotonic() - begun, 240)

    def test_commands_that_hang_are_told_where(self):
        done = run_lab("--seconds", "3", "-c", "echo begun; cat /dev/ttyS2; sleep 1000", seconds=LONGEST_S)
        self.assertEqual(done.returncode, 124, done.stdout + done.stderr)
        self.assertIn("begun", done.stdout)
        self.assertRegex(done.stdout, r"--- \d+ (cat /dev/ttyS2|sleep 1000) ?, thread \d+")
        self.assertIn("did not end in time; the output ends with where they hang", done.stderr)

    def test_kernel_that_panics_is_told_of(self):
        guest = guest_lab.Guest()
        result = guest.run("echo before; echo c >/proc/sysrq-trigger; sleep 100")
        self.assertIn("before", result.output)
        self.assertIsNone(result.status)
        self.assertIn("the guest's kernel: Kernel panic", result.problem)

    def test_interrupted_it_leaves_nothing(self):
        lab = subprocess.Popen([*LAB, "-c", "sleep 1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               env=dict(os.environ, TMPDIR=self.folder))
        try:
            children = []
            deadline = time.monotonic() + 60
            while not any("qemu" in name for _, name in children):
                self.assertLess(time.monotonic(), deadline, "QEMU does not start")
                self.assertIsNone(lab.poll())
                children = children_of(lab.pid)
                time.sleep(0.02)
            lab.send_signal(signal.SIGTERM)
            self.assertEqual(lab.wait(30), 128 + signal.SIGTERM)
        finally:
            lab.kill()
            lab.wait()
        for process, name in children:
            self.assertFalse(name_of(process) == name, f"{name} is left")
        self.assertEqual(os.listdir(self.folder), [])


def name_of(process):
    try:
        with open(f"/proc/{process}/comm", encoding="utf-8") as stream:
            return stream.read().strip()
    except OSError:
        return None


def children_of(process):
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="utf-8") as stream:
            return [(int(word), name_of(int(word)) or "") for word in stream.read().split()]
    except OSError:
        return []


def main():
    reason = None
    try:
        guest_lab.Guest()
    except guest_lab.Lacking as lacking:
        reason = lacking
    names = [name for name, kind in globals().items() if isinstance(kind, type) and issubclass(kind, unittest.TestCase)]
    if reason:
        names.remove("GuestWordsTest")
        names.remove("GuestTest")
    program = unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or names)], exit=False)
    if not program.result.wasSuccessful():
        return 1
    if reason:
        print(f"Skipped: {reason}")
    return 77 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
