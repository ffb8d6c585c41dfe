"""The laboratory itself: what goes into a guest, by kernels and programs of the test's own; and guests that end well, late
and not at all."""
import io
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import guest_lab  # noqa: E402

LAB = [sys.executable, f"{HERE}/lab"]


def members(archive):
    """What a cpio archive holds: name to (mode, content), in order."""
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
        self.write("boot/vmlinuz-10.1-amd64", "image")  # without modules
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


class GuestWordsTest(unittest.TestCase):
    """Of what is looked at once there are QEMU and a kernel."""

    def test_nic_that_can_not_be_read(self):
        done = lab("--nic", "e1000e", "-c", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--nic e1000e: write KIND:WIRE", done.stderr)

    def test_program_that_is_not_there(self):
        done = lab("-p", "no-such-program", "-c", "true")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("no-such-program", done.stderr)


class GuestTest(Files):
    def test_commands_run_and_their_files_come_back(self):
        os.makedirs(f"{self.folder}/in")
        self.write("in/given", "from here\n")
        commands = """
            set -e
            uname -r
            cat /given/given
            ip link add va type veth peer name vb     # iproute2's: busybox's can't
            ip -br link show va | cut -d' ' -f1
            lsmod | grep -q ^veth
            mkdir /out/folder
            echo back >/out/folder/file
            monitor info name
            monitor no_such_command
            echo on standard error >&2
            ! ls /home 2>/dev/null
            exit 7
            """
        done = subprocess.run([*LAB, "-m", "veth", "-p", "ip", "-f", f"{self.folder}/in=/given", "--out", f"{self.folder}/out",
                               "--console", f"{self.folder}/console", "-c", commands],
                              capture_output=True, text=True, check=False, timeout=120)
        lines = done.stdout.split("\n")
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertEqual(lines[0], guest_lab.find_kernel().version)
        self.assertEqual(lines[1:3], ["from here", "va@vb"])
        self.assertIn("mltcp-", lines[3])
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
        begun = time.monotonic()
        done = subprocess.run([*LAB, "--seconds", "12", "-c", "echo begun; cat /dev/ttyS2; sleep 1000"], capture_output=True, text=True,
                              check=False, timeout=120)
        self.assertEqual(done.returncode, 124, done.stdout + done.stderr)
        self.assertIn("begun", done.stdout)
        self.assertRegex(done.stdout, r"--- \d+ (cat /dev/ttyS2|sleep 1000) ?, thread \d+")
        self.assertIn("did not end in time", done.stderr)
        self.assertLess(time.monotonic() - begun, 90)

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
