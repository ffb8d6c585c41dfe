"""Runs a guest with Debian's kernel under QEMU. Users call tests/guest/lab, and programs use the class `Guest`. See
docs/how-to/guest.md.

A guest consists of the kernel and modules of the package linux-image-amd64, busybox, and the requested programs with
all that they load. This module writes them into an initramfs (format "newc", Documentation/driver-api/early-userspace).
A folder of this machine is the guest's /lab, over 9P. It contains the commands, and the files that the commands write
below /out. The first serial line carries the output of the kernel, and the second one the output of the commands. A
port of virtio-serial carries the guest's requests to QEMU (command `monitor` in the guest).
"""
import ctypes
import fcntl
import glob
import json
import lzma
import os
import re
import select
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"
# Modules that connect the guest to its folder and to QEMU.
OWN_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "virtio_console")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/busybox"
DPDK_DRIVERS = "/usr/lib/x86_64-linux-gnu/dpdk/pmds-*"
VERBS = ("/etc/libibverbs.d", "/usr/lib/x86_64-linux-gnu/libibverbs")
# Modules that a kernel loads on demand through modprobe. The guest has no modprobe, so they are loaded at the start.
LATER = {"rdma_rxe": ("crc32_generic",), "vfio_pci": ("vfio_iommu_type1",)}
STARTERS = ("chroot", "env", "nice", "nohup", "nsenter", "setsid", "timeout", "unshare", "xargs")
MAX_OUTPUT = 64 << 20
FOLDER = "mltcp-guest-"
ATTEMPTS = 3  # maximum number of starts if a guest hangs before its commands run
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failed(Exception):
    """An error that is reported to the user in one line."""


class Lacking(Failed):
    """An error because a program or file is missing on this machine. The text says how to install what is missing."""


# ---- The kernel ----


def cache_folder():
    """Returns the folder for kernels that were unpacked but not installed."""
    return os.environ.get("MLTCP_GUEST_CACHE") or f"{ROOT}/build/guest"


class Kernel:
    """A Linux kernel with its modules. `root` is the folder that contains boot/ and lib/modules/."""

    def __init__(self, root, version):
        self.root = root
        self.version = version
        self.image = f"{root}/boot/vmlinuz-{version}"
        for folder in (f"{root}/lib/modules/{version}", f"{root}/usr/lib/modules/{version}"):
            if os.path.isdir(folder):
                self.modules = folder

    def read(self, name):
        try:
            with open(f"{self.modules}/{name}", encoding="utf-8") as stream:
                return stream.read()
        except FileNotFoundError:
            return ""

    def is_complete(self):
        return os.access(self.image, os.R_OK) and hasattr(self, "modules") and bool(self.read("modules.dep"))


def boot_image(kernel):
    """Returns the path of the uncompressed kernel image. With this image, an interpreted processor need not decompress
    the kernel. Stores the image in the cache. See PVH, and Linux/x86 boot protocol 2.08, section "Details of Header
    Fields", payload_offset."""
    # The file name includes the size and time of the compressed image, because Debian updates kernels without changing
    # their version.
    image = os.stat(kernel.image)
    path = f"{cache_folder()}/boot/vmlinux-{kernel.version}-{image.st_size:x}-{int(image.st_mtime):x}"
    if os.path.exists(path):
        return path
    with open(kernel.image, "rb") as stream:
        data = stream.read()
    setup_sectors = data[0x1F1] or 4
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    try:
        unpacked = lzma.LZMADecompressor().decompress(data[start:start + length])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
            with open(f"{folder}/vmlinux", "wb") as stream:
                stream.write(unpacked)
            os.rename(f"{folder}/vmlinux", path)
    except (lzma.LZMAError, OSError):
        return kernel.image  # unknown compression, or no space: the guest decompresses the kernel
    return path


def version_key(version):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", version)]


def find_kernel(wanted=None):
    """Returns Debian's kernel of version `wanted`, or the newest one if `wanted` is empty. Prefers installed kernels to
    those that fetch_kernel() unpacked."""
    found = []
    for root in ("", cache_folder()):
        for image in glob.glob(f"{root}/boot/vmlinuz-*-amd64"):
            version = os.path.basename(image).removeprefix("vmlinuz-")
            if "-cloud-" in version or "-rt-" in version or (wanted and version != wanted):
                continue
            kernel = Kernel(root, version)
            if kernel.is_complete():
                found.append(kernel)
        if found:
            return max(found, key=lambda kernel: version_key(kernel.version))
    named = f"kernel {wanted}" if wanted else "Debian kernel"
    raise Lacking(f"there is no {named} here; get one: tools/setup --with guest")


def fetch_kernel(say=print):
    """Unpacks Debian's kernel into the cache without installing it. Does not change the system's packages or boot
    settings, and does not need root."""
    folder = cache_folder()
    if not shutil.which("apt-get"):
        raise Failed(f"this system has no apt; put a Debian kernel's boot/ and lib/modules/ into {folder}")
    os.makedirs(folder, exist_ok=True)

    def run(*words, cwd=None):
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, LC_ALL="C", PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"))
        if done.returncode:
            lines = [line for line in (done.stderr + done.stdout).strip().split("\n") if line] or ["no output"]
            raise Failed(f"{' '.join(words[:2])}: {lines[-1]} (is there a network, and a Debian mirror in apt's sources?)")
        return done.stdout

    depends = run("apt-cache", "depends", "linux-image-amd64")
    packages = re.findall(r"Depends: (linux-image-[0-9]\S*-amd64)", depends)
    if not packages:
        raise Failed("apt knows no linux-image-amd64; read its lists: apt-get update")
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=folder) as temporary:
        say(f"setup: unpacking {packages[0]} for guests")
        run("apt-get", "download", packages[0], cwd=temporary)
        [archive] = glob.glob(f"{temporary}/*.deb")
        run("dpkg-deb", "-x", archive, f"{temporary}/root")
        version = packages[0].removeprefix("linux-image-")
        for part in ("sound", "drivers/gpu", "drivers/media", "drivers/net/wireless", "drivers/staging"):
            # These folders contain half of the bytes of all modules.
            shutil.rmtree(f"{temporary}/root/lib/modules/{version}/kernel/{part}", ignore_errors=True)
        run("depmod", "-b", f"{temporary}/root", version)
        for part in (f"boot/vmlinuz-{version}", f"lib/modules/{version}"):
            os.makedirs(os.path.dirname(f"{folder}/{part}"), exist_ok=True)
            if not os.path.exists(f"{folder}/{part}"):
                os.rename(f"{temporary}/root/{part}", f"{folder}/{part}")
    return find_kernel()


def module_name(text):
    """Returns the name of a module as modprobe knows it: "veth" for "kernel/drivers/net/veth.ko"."""
    return re.sub(r"\.ko(\.\w+)?$", "", os.path.basename(text)).replace("-", "_")


def module_order(kernel, names):
    """Returns pairs of path and options for the modules `names` and the modules that these need, in the order of
    loading. A name may include options: "name key=value". Leaves out modules that are built into the kernel."""
    paths = {}
    needs = {}
    for line in kernel.read("modules.dep").splitlines():
        path, _, rest = line.partition(":")
        paths[module_name(path)] = path
        needs[module_name(path)] = [module_name(word) for word in rest.split()]
    # Some modules need another module although they use none of its symbols. An example of such another module is
    # crc32_generic.
    softly = {}
    for line in kernel.read("modules.softdep").splitlines():
        words = line.split()
        if len(words) > 3 and words[0] == "softdep" and words[2] == "pre:":
            softly[module_name(words[1])] = [module_name(word) for word in words[3:words.index("post:")
                                                                               if "post:" in words else len(words)]]
    built_in = {module_name(line) for line in kernel.read("modules.builtin").splitlines()}
    ordered = {}

    def add(name, options, wanted):
        if name in built_in:
            return
        if name not in paths:
            if wanted:
                raise Failed(f"kernel {kernel.version} has no module {name}; "
                             f"those that there are: ls {kernel.modules}/kernel")
            return
        for other in (*softly.get(name, ()), *LATER.get(name, ())):
            add(other, "", False)
        for other in reversed(needs[name]):
            add(other, "", True)
        ordered.setdefault(paths[name], options)

    for name in names:
        name, _, options = name.partition(" ")
        add(module_name(name), options, True)
    return list(ordered.items())


# ---- Content of the guest ----


class Archive:
    """An initramfs, that is a cpio archive in the format "newc". Writing it needs neither root nor the program cpio."""

    def __init__(self):
        # Maps a path to three values: the mode; the content, or the path of a file on this machine; the device numbers.
        # Sets the mode of /, because DPDK loads no drivers below a folder to which all users may write.
        self.entries = {".": (stat.S_IFDIR | 0o755, b"", None)}
        for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/local/bin", "usr/local/sbin", "busybox", "dev",
                       "proc", "sys", "tmp", "run", "root", "etc", "lab", "var"):
            self.folder(folder)
        # Debian's root folder contains the same links.
        for name in ("bin", "sbin", "lib", "lib64"):
            self.link(name, f"usr/{name}")
        self.link("var/run", "/run")
        self.link("var/tmp", "/tmp")
        self.entries["dev/console"] = (stat.S_IFCHR | 0o600, b"", (5, 1))
        self.entries["dev/null"] = (stat.S_IFCHR | 0o666, b"", (1, 3))

    def folder(self, path):
        path = path.strip("/")
        if path and path not in self.entries:
            self.folder(os.path.dirname(path))
            self.entries[path] = (stat.S_IFDIR | 0o755, b"", None)

    def link(self, path, target):
        self.folder(os.path.dirname(path.strip("/")))
        self.entries[path.strip("/")] = (stat.S_IFLNK | 0o777, target.encode(), None)

    def text(self, path, text, mode=0o644):
        self.folder(os.path.dirname(path.strip("/")))
        self.entries[path.strip("/")] = (stat.S_IFREG | mode, text.encode(), None)

    def place(self, path):
        """Returns the path in the guest for a path on this machine. In the guest, /bin, /sbin, /lib and /lib64 are
        links to folders in /usr, so paths below them become paths below /usr."""
        folder, name = os.path.split(os.path.normpath(path))
        for top in ("/bin", "/sbin", "/lib", "/lib64"):
            if folder == top or folder.startswith(top + "/"):
                folder = "/usr" + folder
        return f"{folder}/{name}"

    def file(self, source, path=None):
        """Adds a file of this machine. If the file is a link, also adds the target of the link."""
        path = self.place(path or source)
        if path.strip("/") in self.entries:
            return
        self.folder(os.path.dirname(path.strip("/")))
        if os.path.islink(source):
            target = os.path.realpath(source)
            real = self.place(target)
            if real != path:
                self.link(path, real)
                self.file(target)
                return
        mode = os.stat(source).st_mode
        self.entries[path.strip("/")] = (stat.S_IFREG | (mode & 0o777) | 0o444, source, None)

    def tree(self, source, path=None):
        """Adds a file, or a folder with its content."""
        path = path or source
        if not os.path.isdir(source):
            self.file(source, path)
            return
        self.folder(self.place(path))
        for name in sorted(os.listdir(source)):
            self.tree(f"{source}/{name}", f"{path}/{name}")

    def program(self, source, path=None):
        """Adds a program or shared object, and the shared objects to which it is linked."""
        self.file(source, path)
        for library in linked_to(source):
            self.file(library)

    def write(self, out):
        def entry(number, path, mode, size, device):
            name = path.encode() + b"\0"
            major, minor = device or (0, 0)
            links = 2 if stat.S_ISDIR(mode) else 1
            fields = (number, mode, 0, 0, links, 0, size, 0, 0, major, minor, len(name), 0)
            header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
            out.write(header + b"\0" * (-len(header) % 4))
        # Folders come before their content.
        for number, path in enumerate(sorted(self.entries), start=1):
            mode, content, device = self.entries[path]
            if isinstance(content, str):
                try:
                    with open(content, "rb") as stream:
                        content = stream.read()
                except OSError as error:
                    raise Failed(f"{content}: {error.strerror}; it should be in the guest") from error
            entry(number, path, mode, len(content), device)
            out.write(content + b"\0" * (-len(content) % 4))
        entry(0, "TRAILER!!!", 0, 0, None)


def linked_to(path):
    """Returns the shared objects that the loader would load for `path`, including the loader itself."""
    done = subprocess.run(["ldd", path], capture_output=True, text=True, check=False, env=dict(os.environ, LC_ALL="C"))
    missing = re.findall(r"(\S+) => not found", done.stdout)
    if missing:
        raise Failed(f"{path} is linked to {missing[0]}, which is not on this machine")
    return re.findall(r"(/\S+) \(0x", done.stdout)


def find_program(name):
    """Returns the path of a program on this machine. `name` is the name of the program or a path."""
    if "/" in name:
        if not os.path.exists(name):
            raise Failed(f"there is no {name}")
        return os.path.abspath(name)
    search = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + os.environ["PATH"]
    path = shutil.which(name, path=search)
    if not path:
        if os.path.exists(name):
            raise Failed(f"{name}: programs are looked for in $PATH; write ./{name} for the one in this folder, or take --file")
        raise Lacking(f"this machine has no {name}, which the guest should have; install it (tools/setup --with guest)")
    return path


INIT = """\
#!/busybox/busybox sh
# The guest's first process: makes the machine, runs the commands, and ends it.
export PATH={path} HOME=/root TERM=dumb LC_ALL=C.UTF-8
busybox mount -t devtmpfs none /dev
mkdir -p /dev/pts /dev/shm /dev/hugepages
mount -t proc none /proc
mount -t sysfs none /sys
mount -t tmpfs none /run
mount -t tmpfs none /tmp
mount -t tmpfs none /dev/shm
mount -t devpts none /dev/pts
mount -t hugetlbfs none /dev/hugepages 2>/dev/null
mount -t bpf none /sys/fs/bpf 2>/dev/null
mount -t debugfs none /sys/kernel/debug 2>/dev/null
mount -t tracefs none /sys/kernel/tracing 2>/dev/null
mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null
ln -s /proc/self/fd /dev/fd
ifconfig lo 127.0.0.1 up
hostname guest
stty -F /dev/ttyS1 raw -echo 2>/dev/null
exec </dev/null >/dev/ttyS1 2>&1
# What the kernel's log tells meanwhile is how a guest that goes on is told from one that stands still.
echo "<5>lab: loading modules" >/dev/kmsg
while read -r module options; do
  insmod $module $options || {{ echo "lab: module $module: insmod failed"; poweroff -f; }}
  echo "<5>lab: ${{module##*/}}" >/dev/kmsg
done </etc/lab.modules
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none lab /lab || {{ echo "lab: no /lab"; poweroff -f; }}
ln -s /lab/out /out
/etc/lab.watch {watch} &
watch=$!
cd /root
setsid /usr/bin/sh /etc/lab.run
status=$?
kill $watch 2>/dev/null && echo $status >/lab/status
[ -e /lab/status ] || sleep 1000  # the watch ends it
sync
timeout 10 stty -F /dev/ttyS1 raw -echo  # waits for what is still to be sent
poweroff -f
"""

# The commands run in a separate session, so that WATCH can inspect and end them as a whole.
RUN = """\
echo $$ >/run/lab.pid
echo booted >/lab/booted
exec sh /lab/commands
"""

# Prints where each process hangs: in the kernel, and in its own code if eu-stack is available.
WATCH = """\
#!/busybox/busybox sh
sleep $1
trap '' TERM  # from here on it is this script that ends the guest
echo
echo "lab: the time is over; what runs:"
for process in /proc/[0-9]*; do
  pid=${process#/proc/}
  words=$(tr '\\0' ' ' <$process/cmdline 2>/dev/null)
  [ -n "$words" ] && [ $pid != 1 ] && [ $pid != $$ ] || continue
  for task in $process/task/*; do
    echo "--- $pid $words, thread ${task##*/}, $(grep State: $task/status):"
    cat $task/stack
  done
  ! command -v eu-stack >/dev/null || timeout 10 eu-stack -p $pid
done
echo timeout >/lab/status
sync
timeout 10 stty -F /dev/ttyS1 raw -echo
poweroff -f
"""

MONITOR = """\
#!/busybox/busybox sh
# monitor COMMAND...: has QEMU carry out a command of its monitor, such as: monitor set_link nic0 off
for port in /sys/class/virtio-ports/*; do
  [ "$(cat $port/name)" != org.mltcp.monitor ] || device=/dev/${port##*/}
done
exec 4>&2
# Each line of the answer begins with the number, and so does its end; others are of a command that was not waited for.
ask() {
  echo "$$ $*" >&3
  while read -r number line <&3; do
    case $number in
      $$) echo "$line" ;;
      $$.) exit 0 ;;
    esac
  done
  echo "monitor: QEMU does not answer" >&4
  exit 1
}
for attempt in $(seq 100); do
  { ask "$@"; } 3<>$device 2>/dev/null
  sleep 0.1  # another command has the port
done
echo "monitor: other commands have its port" >&4
exit 1
"""


BIND = """\
#!/busybox/busybox sh
# bind ADDRESS DRIVER: gives a PCI device to a driver of the kernel, whoever has it now
[ $# = 2 ] || { echo "bind: write bind ADDRESS DRIVER, as in bind 0000:01:00.0 vfio-pci" >&2; exit 2; }
device=/sys/bus/pci/devices/$1
[ -e $device ] || { echo "bind: there is no $1, but" $(ls /sys/bus/pci/devices) >&2; exit 1; }
echo "$2" >$device/driver_override
[ ! -e $device/driver ] || echo "$1" >$device/driver/unbind
echo "$1" >/sys/bus/pci/drivers_probe
[ "$(basename "$(readlink $device/driver)")" = "$2" ] || {
  echo "bind: $1 is not taken by $2; is its module there (--module), and the device of its kind?" >&2
  exit 1
}
"""


def kvm_is_fast():
    """Returns whether this process may create a virtual machine and this machine is not itself virtual. On a virtual
    machine each exit from a nested guest takes long, so that a guest starts sooner if QEMU interprets its
    processors."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            if re.search(r"^flags.* hypervisor( |$)", stream.read(), re.MULTILINE):
                return False
        with open("/dev/kvm", "rb+", buffering=0) as device:
            os.close(fcntl.ioctl(device, 0xAE01, 0))  # KVM_CREATE_VM
            return True
    except OSError:
        return False


class Guest:
    """The configuration of a guest. run() starts a guest with this configuration, and can be called repeatedly."""

    def __init__(self, kernel=None, memory_mb=512, processors=2, accelerator="auto", append="", qemu=(),
                 virtual_time=0):
        """If `virtual_time` is not 0, QEMU interprets one processor and counts its instructions. Each instruction takes
        `virtual_time` ns, a power of 2, and waiting takes no real time. Measurements in the guest then do not depend on
        the load of this machine."""
        self.virtual_time = virtual_time
        if virtual_time:
            processors, accelerator = 1, "tcg"
        self.memory_mb = memory_mb
        self.processors = processors
        self.append = append
        self.qemu = list(qemu)
        self.accelerator = accelerator
        self.may_fall_back = accelerator == "auto"
        self.modules = []
        self.nics = 0
        self.wires = {}  # wires inside QEMU: number -> whether a second guest is connected
        self.taps = []  # (name of the tap, name of its bridge)
        self.has_iommu = False
        if not shutil.which(QEMU):
            raise Lacking(f"this machine has no {QEMU}; install it: tools/setup --with guest")
        if not os.path.exists(BUSYBOX):
            raise Lacking(f"this machine has no {BUSYBOX}; install Debian's busybox-static: tools/setup --with guest")
        if linked_to(BUSYBOX):
            raise Lacking(f"{BUSYBOX} is not linked statically; install Debian's busybox-static: tools/setup --with guest")
        self.kernel = find_kernel(kernel)
        if accelerator == "auto":
            self.accelerator = "kvm" if kvm_is_fast() else "tcg"
        self.archive = Archive()
        self.archive.file(BUSYBOX, "/busybox/busybox")
        applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
        for applet in applets:
            if applet != "busybox":
                self.archive.link(f"/busybox/{applet}", "busybox")
        # An applet of Debian's busybox that starts other programs prefers busybox's own ip, tc and ps to those in PATH.
        # The following programs therefore replace such applets.
        for program in ("dash", *STARTERS):
            self.archive.program(find_program(program))
        self.archive.link("/usr/bin/sh", "dash")
        self.archive.text("/usr/local/bin/monitor", MONITOR, 0o755)
        self.archive.text("/usr/local/bin/bind", BIND, 0o755)
        self.archive.text("/etc/lab.watch", WATCH, 0o755)
        self.archive.text("/etc/lab.run", RUN)
        self.archive.text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
        self.archive.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
        self.archive.text("/etc/hosts", "127.0.0.1 localhost guest\n::1 localhost\n")
        self.archive.text("/etc/nsswitch.conf", "hosts: files\n")

    def add_modules(self, *names):
        self.modules += names

    def add_programs(self, *names):
        """Adds programs by name or path. NAME=PATH sets the program's path in the guest. If no PATH is given, programs
        from outside of the system's folders go to /usr/local/bin."""
        for name in names:
            name, _, path = name.partition("=")
            source = find_program(name)
            if not path and not source.startswith(("/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/", "/usr/lib/")):
                path = "/usr/local/bin/" + os.path.basename(source)
            self.archive.program(source, path or None)

    def add_files(self, *names):
        """Adds files and folders. Each name is PATH or PATH=PATH_IN_THE_GUEST."""
        for name in names:
            name, _, path = name.partition("=")
            if not os.path.exists(name):
                raise Failed(f"there is no {name}")
            self.archive.tree(os.path.abspath(name), path or None)

    def add_dpdk(self, *drivers):
        """Adds drivers of DPDK, such as net_virtio, to the folder from which DPDK loads them. Also adds the buses and
        memory pools that drivers need."""
        folders = sorted(glob.glob(DPDK_DRIVERS))
        if not folders:
            raise Lacking(f"this machine has no {DPDK_DRIVERS}; install Debian's librte-* packages: tools/setup")
        folder = folders[-1]
        for driver in ("bus_pci", "bus_vdev", "mempool_ring", *drivers):
            found = glob.glob(f"{folder}/librte_{driver}.so*")
            if not found:
                raise Failed(f"DPDK has no driver {driver} in {folder}")
            for path in found:
                self.archive.program(path)

    def add_verbs(self):
        """Adds the drivers that libibverbs loads, and the files that list them."""
        for folder in VERBS:
            if not os.path.isdir(folder):
                raise Lacking(f"this machine has no {folder}; install Debian's ibverbs-providers")
        self.archive.tree(VERBS[0])
        for path in glob.glob(f"{VERBS[1]}/*.so"):
            self.archive.program(path)

    def add_iommu(self):
        """Adds an IOMMU for all PCI devices, so that programs can use the devices through vfio-pci. NICs of type virtio
        need additional options to use the IOMMU."""
        self.has_iommu = True
        self.qemu += ["-device", "intel-iommu,intremap=on,device-iotlb=on"]
        self.append += " intel_iommu=on"

    def add_nic(self, kind, wire, options="", queues=1):
        """Adds a NIC of QEMU, such as virtio-net-pci, e1000e or vmxnet3. `wire` is a number: NICs with the same number
        are connected. Returns the PCI address. NIC number i (from 0) is nic<i> in QEMU's monitor, and can be unplugged
        there.

        QEMU's own wires do not support several queues. A NIC with several queues is therefore a tap of this machine's
        kernel, on a bridge, in a network namespace that contains only QEMU."""
        number = self.nics
        self.nics += 1
        mac = f"52:54:00:00:00:{number + 1:02x}"
        if queues == 1:
            wiring = f"hubport,id=net{number},hubid={wire}"
            self.wires.setdefault(str(wire), False)
        else:
            self.taps.append((f"tap{number}", f"wire{wire}"))
            wiring = f"tap,id=net{number},ifname=tap{number},script=no,downscript=no,vhost=off,queues={queues}"
            options = f"mq=on,vectors={2 * queues + 2}" + (f",{options}" if options else "")
        self.qemu += ["-netdev", wiring,
                      "-device", f"pcie-root-port,id=slot{number},chassis={number},slot={number},addr={0x10 + number:x}",
                      "-device", f"{kind},id=nic{number},netdev=net{number},mac={mac},bus=slot{number}"
                      + (f",{options}" if options else "")]
        return f"0000:{number + 1:02x}:00.0"

    def join_wire(self, wire, here, there):
        """Connects a wire to a wire of another guest. `here` is the path of the socket that the QEMU of this guest
        creates. `there` is the path of the socket of the other guest, to which frames go. For the other guest, `here`
        and `there` are swapped. Frames are lost while the other guest does not run."""
        for path in (here, there):
            if len(path.encode()) > 107 or "," in path:  # sockaddr_un
                raise Failed(f"{path} can't be the path of a socket; give one of 107 bytes at most, without commas")
        self.wires[str(wire)] = True
        self.qemu += ["-netdev", f"dgram,id=outside{wire},local.type=unix,local.path={here},remote.type=unix,"
                      f"remote.path={there}",
                      "-netdev", f"hubport,id=join{wire},hubid={wire},netdev=outside{wire}"]

    def around(self, words):
        """Returns the command that runs `words`. If NICs use taps, the command creates the taps in a network namespace
        and runs `words` there."""
        if not self.taps:
            return words
        lines = ["set -e", "PATH=$PATH:/usr/sbin:/sbin"]
        # Without IPv6, bridges and taps send no packets of their own.
        quiet = "[ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/{}/disable_ipv6"
        for wire in sorted({wire for _, wire in self.taps}):
            lines += [f"ip link add {wire} type bridge mcast_snooping 0", quiet.format(wire),
                      f"ip link set {wire} mtu 9100 up"]
        for tap, wire in self.taps:
            lines += [f"ip tuntap add dev {tap} mode tap multi_queue vnet_hdr", quiet.format(tap),
                      f"ip link set {tap} mtu 9100 master {wire} up"]
        lines.append('exec "$@"')
        as_user = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", "--net", *as_user, "sh", "-c", "\n".join(lines), "sh", *words]

    def write_initramfs(self, path, seconds):
        archive = self.archive
        lines = []
        for module, options in module_order(self.kernel, list(OWN_MODULES) + self.modules):
            place = f"/usr/lib/modules/{self.kernel.version}/{module}"
            archive.file(f"{self.kernel.modules}/{module}", place)
            lines.append(f"{place} {options}\n")
        archive.text("/etc/lab.modules", "".join(lines))
        archive.text("/init", INIT.format(path=PATH, watch=seconds), 0o755)
        with open(path, "wb") as out:
            archive.write(out)

    def wire_ends(self, folder):
        """Returns options that connect an unused socket to each wire that no second guest joins. Without a socket, QEMU
        warns that the wire is not connected."""
        words = []
        for wire in [wire for wire, is_joined in self.wires.items() if not is_joined]:
            words += ["-netdev", f"stream,id=outside{wire},server=on,addr.type=unix,addr.path={folder}/wire{wire}",
                      "-netdev", f"hubport,id=join{wire},hubid={wire},netdev=outside{wire}"]
        return words

    def command(self, folder):
        """Returns the command that starts QEMU. QEMU's sockets and files are in `folder`."""
        accelerator = self.accelerator
        if accelerator == "tcg":
            accelerator += ",thread=single" if self.virtual_time else ",thread=multi"
        # "max" may include arch-capabilities, which cannot be set if this machine is itself a virtual machine.
        processor = "max" if self.accelerator == "tcg" else "max,-arch-capabilities"
        machine = "q35,kernel-irqchip=split" if self.has_iommu and self.accelerator == "kvm" else "q35"
        # If this machine is busy, the guest's kernel may decide that an interpreted timer does not work. no_timer_check
        # prevents this.
        append = ["console=ttyS0", "panic=-1", "loglevel=6", "mitigations=off", "random.trust_cpu=on", "tsc=reliable", "nokaslr",
                  "no_timer_check", "sysrq_always_enabled=1", *shlex.split(self.append)]
        return [QEMU, "-name", f"mltcp-{os.path.basename(folder)}", "-nodefaults", "-no-user-config", "-display", "none",
                "-no-reboot", "-machine", machine, "-accel", accelerator, "-cpu", processor, "-smp", str(self.processors),
                "-m", f"{self.memory_mb}M", "-kernel", boot_image(self.kernel), "-initrd", f"{folder}/initramfs",
                "-append", " ".join(append),
                "-chardev", f"file,id=console,path={folder}/console", "-serial", "chardev:console",
                "-chardev", "stdio,id=output,signal=off", "-serial", "chardev:output",
                "-chardev", f"socket,id=qmp,path={folder}/qmp,server=on,wait=off", "-mon", "chardev=qmp,mode=control",
                "-fsdev", f"local,id=lab,path={folder}/lab,security_model=none",
                "-device", "virtio-9p-pci,fsdev=lab,mount_tag=lab",
                "-chardev", f"socket,id=asked,path={folder}/asked,server=on,wait=off",
                "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=asked,name=org.mltcp.monitor",
                *(["-icount", f"shift={int(self.virtual_time).bit_length() - 1},sleep=off"] if self.virtual_time else []),
                *self.qemu, *self.wire_ends(folder)]

    def run(self, commands, seconds=120, output=None, out=None):
        """Runs `commands`, a text for sh, and returns a Result. Calls `output` with the output as it arrives. Copies
        files that the guest writes below /out to the folder `out`. After `seconds`, the guest prints where the commands
        hang, and ends."""
        for left in reversed(range(ATTEMPTS)):
            result = self.attempt(commands, seconds, output, out)
            if result.problem and not result.console and self.accelerator == "kvm" and self.may_fall_back:
                # This machine has KVM, but this QEMU cannot use KVM.
                self.accelerator = "tcg"
                result = self.attempt(commands, seconds, output, out)
            # A guest that stood still may be started again, because none of its commands has run.
            if result.ended != Exchange.STOOD_STILL or left == 0:
                break
            print(f"guest: {result.problem}; it is started again", file=sys.stderr)
        return result

    def may_stand_still(self):
        """Returns whether a guest may hang while it starts. On a busy machine, about one start in a hundred hangs if
        QEMU interprets several processors, with one thread each."""
        return self.accelerator == "tcg" and self.processors > 1

    def attempt(self, commands, seconds, output, out):
        remove_left_folders()
        folder = tempfile.mkdtemp(prefix=FOLDER)
        process = None
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.makedirs(f"{folder}/lab/out")
            with open(f"{folder}/lab/commands", "w", encoding="utf-8") as stream:
                stream.write(commands)
            self.write_initramfs(f"{folder}/initramfs", seconds)
            begun = time.monotonic()
            parent = os.getpid()
            process = subprocess.Popen(self.around(self.command(folder)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, preexec_fn=lambda: die_with_parent(parent))
            exchange = Exchange(process, folder, seconds, output, self.may_stand_still())
            exchange.run()
            result = Result(self, folder, exchange, time.monotonic() - begun)
            if out:
                copy_out(f"{folder}/lab/out", out)
            return result
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
            if process and process.poll() is None:
                process.kill()
                process.wait()
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def remove_left_folders():
    """Removes the folders that killed programs left behind. A folder in use is locked, or less than a minute old."""
    for path in glob.glob(f"{tempfile.gettempdir()}/{FOLDER}*"):
        try:
            state = os.stat(path, follow_symlinks=False)
            if state.st_uid != os.geteuid() or state.st_mtime > time.time() - 60:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)


def copy_out(source, target):
    """Copies files, folders and links. Does not copy files of any other kind, but reports them."""
    odd = []

    def only_plain(folder, names):
        left = [name for name in names
                if not stat.S_IFMT(os.lstat(f"{folder}/{name}").st_mode) in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)]
        odd.extend(os.path.relpath(f"{folder}/{name}", source) for name in left)
        return left
    try:
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True, ignore=only_plain)
    except (shutil.Error, OSError) as error:
        raise Failed(f"what the guest wrote to /out can't be copied to {target}: {error}") from error
    if odd:
        print(f"guest: neither file nor folder, and left out of {target}: {', '.join(sorted(odd))}", file=sys.stderr)


def die_with_parent(parent):
    """Runs in QEMU's process between fork and exec. QEMU then ends with the parent, however the parent ends, and does
    not receive Ctrl-C."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
    os.setpgid(0, 0)


class Lines:
    """A non-blocking socket. Stores unsent data in memory, and splits received data into lines."""

    MAX_UNREAD = 1 << 20  # maximum bytes that wait for a peer that does not read

    def __init__(self, connection):
        connection.setblocking(False)
        self.connection = connection
        self.unsent = bytearray()
        self.received = bytearray()
        self.is_open = True

    def fileno(self):
        return self.connection.fileno()

    def send(self, text):
        if self.is_open and len(self.unsent) < self.MAX_UNREAD:
            self.unsent += text.encode()
            self.flush()

    def flush(self):
        try:
            while self.unsent:
                del self.unsent[:self.connection.send(self.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def receive(self):
        """Returns the complete lines that have arrived."""
        try:
            part = self.connection.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            part = b""
        if not part:
            self.close()
            return []
        self.received += part
        *lines, self.received = self.received.split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def close(self):
        self.is_open = False
        self.connection.close()


class Exchange:
    """Reads the output of a running guest, executes the guest's requests to QEMU, and makes sure that the guest
    ends."""

    # The ways in which a guest may end.
    BY_ITSELF, TOO_LATE, STOOD_STILL = range(3)

    BOOT_S = 180  # maximum time until the guest's commands begin
    GRACE_S = 30  # time for the guest to print where its commands hang
    # Minimum time without output after which a starting guest counts as hanging. The limit is higher if the last output
    # came more than 10 s after the start.
    STILL_S = 30
    END_S = 20  # maximum time without output between the end of the commands and the end of QEMU
    SPEAK_S = 2  # time for QEMU to report the state of its processors

    def __init__(self, process, folder, seconds, output, may_stand_still):
        self.process = process
        self.folder = folder
        self.seconds = seconds
        self.output = output
        self.may_stand_still = may_stand_still
        self.text = bytearray()
        self.begun = time.monotonic()
        self.qmp = None
        self.asked = None
        self.answers = {}  # number of a QMP request -> function that gets its answer
        self.requests = 0
        self.ended = self.BY_ITSELF
        self.is_over = False  # whether QEMU has closed its output
        self.standing = ""  # the state of the processors of a guest that hung

    def connect(self, name):
        """Connects to a socket on which QEMU listens after it has started. Returns None if QEMU does not listen yet."""
        try:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(f"{self.folder}/{name}")
            return Lines(connection)
        except OSError:
            connection.close()
            return None

    def ask_qemu(self, line, then=None):
        """Sends a command to QEMU's monitor. Calls `then`, if given, with the answer as a list of lines."""
        if not self.qmp:
            return
        self.requests += 1
        self.answers[self.requests] = then
        self.qmp.send(json.dumps({"execute": "human-monitor-command", "arguments": {"command-line": line},
                                  "id": self.requests}) + "\n")

    def hear_qemu(self, line):
        try:
            answer = json.loads(line)
        except ValueError:
            return
        then = self.answers.pop(answer.get("id"), None)
        if then:
            text = answer.get("return", answer.get("error", {}).get("desc", ""))
            then([part.strip() for part in text.replace("\r", "").split("\n") if part.strip()])

    def hear_guest(self, line):
        """Executes a request of the guest to the monitor. `line` is a number, which the lines of the answer repeat, and
        a command."""
        number, _, command = line.partition(" ")

        def answer(lines):
            self.asked.send("".join(f"{number} {one}\n" for one in lines) + f"{number}.\n")
        self.ask_qemu(command, answer)

    def hear_output(self):
        """Reads output of QEMU. Returns False if QEMU has closed its output."""
        try:
            part = os.read(self.process.stdout.fileno(), 65536)
        except BlockingIOError:
            return True
        if not part:
            return False
        part = part.replace(b"\r", b"")
        free = MAX_OUTPUT - len(self.text)
        if free > 0:
            self.text += part[:free]
            if len(part) > free:
                self.text += b"\nguest: more than that is not kept\n"
        if self.output:
            self.output(part)
        return True

    def exists(self, name):
        return os.path.exists(f"{self.folder}/{name}")

    def run(self):
        os.set_blocking(self.process.stdout.fileno(), False)
        try:
            self.ended = self.follow()
        finally:
            try:
                self.process.wait(timeout=self.END_S if self.is_over else 0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            while self.hear_what_is_left():
                pass
            for connection in (self.qmp, self.asked):
                if connection:
                    connection.close()
            self.process.stdout.close()

    def hear_what_is_left(self):
        readable, _, _ = select.select([self.process.stdout], [], [], 1)
        return bool(readable) and self.hear_output()

    def step(self, seconds):
        """Waits for input and processes it. Returns whether QEMU's output is still open, and whether input arrived."""
        if not self.qmp and (found := self.connect("qmp")):
            self.qmp = found
            self.qmp.send('{"execute": "qmp_capabilities"}\n')
        if not self.asked:
            self.asked = self.connect("asked")
        lines = [one for one in (self.qmp, self.asked) if one and one.is_open]
        if len(lines) < 2 and self.process.poll() is None and not self.exists("lab/booted"):
            seconds = min(seconds, 0.02)  # because QEMU is just starting and its sockets may appear soon
        readable, writable, _ = select.select([self.process.stdout, *lines], [one for one in lines if one.unsent], [], seconds)
        for one in writable:
            one.flush()
        if self.qmp in readable:
            for line in self.qmp.receive():
                self.hear_qemu(line)
        if self.asked in readable:
            for line in self.asked.receive():
                self.hear_guest(line)
        if self.process.stdout in readable:
            return self.hear_output(), True
        return True, False

    def follow(self):
        booted = None
        ended = None  # time at which the output of the commands became complete; None until then
        asked_kernel = False
        console, last_word = 0, self.begun
        while True:
            is_open, has_spoken = self.step(0.25)
            now = time.monotonic()
            if not is_open:
                self.is_over = True
                return self.BY_ITSELF
            if booted is None:
                if self.exists("lab/booted"):
                    booted = now
                length = os.path.getsize(f"{self.folder}/console") if self.exists("console") else 0
                if length != console:
                    console, last_word = length, now
                patience = max(self.STILL_S, 3 * (last_word - self.begun))
                if booted is None and self.may_stand_still and now > last_word + patience:
                    self.ask_where_it_stands()
                    return self.STOOD_STILL
                if booted is None and now > self.begun + self.BOOT_S:
                    self.ask_where_it_stands()
                    return self.TOO_LATE
                continue
            if has_spoken or ended is None:
                ended = now if self.exists("lab/status") else None
            if ended is not None and now > ended + self.END_S:
                return self.BY_ITSELF  # the output is complete, but QEMU has not ended
            deadline = booted + self.seconds
            if now > deadline + self.GRACE_S:
                return self.TOO_LATE
            # If the guest's clock and all its processes hang, WATCH cannot print where they hang. Only the guest's
            # kernel can still print this.
            if not asked_kernel and now > deadline + self.GRACE_S * 2 / 3:
                asked_kernel = True
                for key in "lwt":
                    self.ask_qemu(f"sendkey alt-sysrq-{key}")

    def ask_where_it_stands(self):
        """Reads the registers of all processors twice. The values of a running processor differ between the
        two reads."""
        heard = []
        for wanted in (1, 2):
            self.ask_qemu("info registers -a", heard.append)
            until = time.monotonic() + self.SPEAK_S
            while len(heard) < wanted and time.monotonic() < until and self.step(0.1)[0]:
                pass
        where = [re.findall(r"RIP=(\w+).*?HLT=(\d)", " ".join(lines)) for lines in heard]
        self.standing = "; ".join(", ".join(f"{rip}{' halted' if halted == '1' else ''}" for rip, halted in processors)
                                  for processors in where)


class Result:
    """The outcome of a run. `status`: exit status of the commands; None if the commands did not end. `problem`: a line
    of text if the guest did not end normally. `console`: the output of the kernel. `ended`: how the guest ended, a
    constant of Exchange."""

    def __init__(self, guest, folder, exchange, seconds):
        def read(name):
            try:
                with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as stream:
                    return stream.read().replace("\r", "")
            except FileNotFoundError:
                return ""
        self.output = exchange.text.decode(errors="replace")
        self.seconds = seconds
        self.ended = exchange.ended
        self.accelerator = guest.accelerator
        self.console = read("console")
        status = read("lab/status").strip()
        self.status = int(status) if status.isdigit() else None
        has_booted = bool(read("lab/booted"))
        self.timed_out = status == "timeout" or (self.status is None and has_booted and self.ended == Exchange.TOO_LATE)
        self.problem = ""
        if self.status is None:
            panic = re.search(r"Kernel panic.*", self.console)
            last = f"its kernel's last line: {self.console.strip().split(chr(10))[-1]}"
            standing = f" (its processors were at {exchange.standing})" if exchange.standing else ""
            if status == "timeout":
                self.problem = "the commands did not end in time; the output ends with where they hang"
            elif panic:
                self.problem = f"the guest's kernel: {panic.group(0)}"
            elif not self.console:
                self.problem = f"the guest did not start: {self.output.strip().split(chr(10))[-1]}"
            elif self.ended == Exchange.STOOD_STILL:
                self.problem = f"the guest stood still while it started; {last}{standing}"
            elif self.timed_out:
                self.problem = f"the commands did not end in time, and the guest did not say where they hang; {last}"
            elif not has_booted:
                self.problem = f"the guest did not get to its commands; {last}{standing}"
            else:
                self.problem = "the guest ended before its commands did"
