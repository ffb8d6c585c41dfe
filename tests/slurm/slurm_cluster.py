"""Runs Slurm on one machine, for tests and the laboratory: munged, slurmctld and at least three slurmd. Configuration,
keys and state are in one folder. Our plug-ins come from the build tree.

The caller must run in its own PID namespace (`sandboxed`, or `mltcp testbed`), so that all daemons end with it. Each
node has its own host name, in a UTS namespace. `place` says where nodes run:

    together   in one network namespace, each node with its own address and port
    testbed    in one network namespace per node, created by `mltcp testbed --hosts N` around its switch
"""
import os
import shutil
import signal
import subprocess
import sys
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "scontrol", "sinfo", "scancel", "unshare",
            "nsenter")
CONFIGURATION = """\
ClusterName=lab
SlurmctldHost={controller}({controller_address})
SlurmUser={user}
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmctldDebug=info
SlurmdDebug=info
SlurmctldPort=6817
ReturnToService=2
KillWait=2
MinJobAge=60
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core,CR_LLN
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=100000,sched_interval=1,bf_interval=1,batch_sched_delay=0
PriorityType=priority/basic
PlugStackConfig={folder}/plugstack.conf
{submit}"""


def lacking():
    """Returns one line with the reason why Slurm cannot run here; "" if it can run."""
    if os.geteuid() != 0:
        return "slurmd wants to be root; run as root"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program, path=path)]
    if missing:
        return f"this machine lacks {', '.join(missing)}; install Debian's slurm-wlm and munge: tools/setup --with runtimes"
    attempt = subprocess.run(["unshare", "--net", "--uts", "--pid", "--fork", "--mount-proc", "true"],
                             capture_output=True, text=True, check=False)
    if attempt.returncode:
        return f"no namespaces can be made here ({attempt.stderr.strip()}); run where unshare(1) may"
    return ""


def sandboxed(arguments):
    """Replaces this process by one that executes `arguments` in new namespaces, which end with the process."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    os.execvp("unshare", ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable,
                          os.path.abspath(__file__), *arguments])


def reap(arguments):
    """The task of the first process in a PID namespace: runs `arguments`, and reaps orphaned processes. Slurm treats a
    task that is not reaped as running."""
    first = os.spawnvp(os.P_NOWAIT, arguments[0], arguments)
    while True:
        process, status = os.wait()
        if process == first:
            return os.waitstatus_to_exitcode(status)


class Failed(Exception):
    """An error with a message of one line."""


class Cluster:
    """A Slurm cluster. The constructor writes its configuration but starts no daemon. `spank` is the path of the SPANK
    plug-in, which gets `spank_arguments`. `submit` is the text of job_submit.lua. A plug-in is not used if its
    parameter is None."""

    def __init__(self, folder, nodes=3, place="together", cpus=4, spank=None, spank_arguments="", submit=None):
        self.folder = folder
        self.place = place
        self.names = [f"n{number}" for number in range(nodes)]
        self.daemons = {}
        # the addresses that the testbed gives to its hosts
        self.addresses = [f"10.77.0.{number + 1}" for number in range(nodes + 1)]
        # The number of the controller's host follows the numbers of the nodes.
        self.controller_host = nodes
        self.environment = dict(os.environ, SLURM_CONF=f"{folder}/slurm.conf", LC_ALL="C.UTF-8")
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        os.makedirs(f"{folder}/state")  # this call also creates `folder`
        for name in self.names:
            os.makedirs(f"{folder}/{name}")
        if submit:
            # slurmctld reads this script from the folder of slurm.conf.
            with open(f"{folder}/job_submit.lua", "w", encoding="utf-8") as stream:
                stream.write(submit)
        text = CONFIGURATION.format(folder=folder, controller="controller", controller_address=self.addresses[nodes], user="root",
                                    submit="JobSubmitPlugins=lua\n" if submit else "")
        for number, name in enumerate(self.names):
            text += f"NodeName={name} NodeHostname={name} NodeAddr={self.addresses[number]} CPUs={cpus}"
            text += f" Port={6820 + number}\n" if place == "together" else "\n"
        text += f"PartitionName=lab Nodes={','.join(self.names)} Default=YES MaxTime=INFINITE State=UP\n"
        self._write("slurm.conf", text)
        self._write("plugstack.conf", f"required {spank} {spank_arguments}\n" if spank else "")
        with open(os.open(f"{folder}/munge.key", os.O_CREAT | os.O_WRONLY, 0o400), "wb") as stream:
            stream.write(os.urandom(128))

    def _write(self, name, text):
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as stream:
            stream.write(text)

    def on(self, host):
        """Returns the words that run a command on `host`. `host` is the number of a node or of the controller's
        host."""
        return ["on", str(host)] if self.place == "testbed" else []

    def start(self, name, words, host=None, hostname=None):
        """Starts a daemon whose output goes to the folder. end() stops it by `name`."""
        command = list(words)
        if hostname:
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', hostname, *command]
        if host is not None:
            command = self.on(host) + command
        with open(f"{self.folder}/{name}.output", "ab") as output:
            self.daemons[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                                  env=self.environment)
        return self.daemons[name]

    def end(self, name, by=signal.SIGTERM):
        process = self.daemons.pop(name)
        process.send_signal(by)
        try:
            return process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def start_controller(self, clean=False):
        self.start("slurmctld", ["slurmctld", "-D", *(["-c"] if clean else []), "-f", f"{self.folder}/slurm.conf"],
                   self.controller_host, "controller")

    def start_all(self):
        """Starts munged, slurmctld and the nodes. Returns when all nodes are idle."""
        if self.place == "together":
            # Slurm needs an interface in addition to the loopback. Without it, Slurm assumes that the machine has no
            # IPv4.
            self.run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"])
            for link in ("eth0", "eth1"):
                self.run(["ip", "link", "set", link, "up"])
            for own in self.addresses:
                self.run(["ip", "address", "add", f"{own}/24", "dev", "eth0"])
        for host in range(len(self.names) + 1):
            self.run(["ip", "link", "set", "lo", "up"], host)
        self.start("munged", ["munged", "--force", "--foreground", f"--key-file={self.folder}/munge.key",
                              f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid",
                              f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munged.seed",
                              "--num-threads=2"])
        self.wait(lambda: os.path.exists(f"{self.folder}/munge.socket"), 10, "munged makes no socket")
        self.start_controller(clean=True)
        for number, name in enumerate(self.names):
            self.start(name, ["slurmd", "-D", "-f", f"{self.folder}/slurm.conf"], number, name)
        everybody = f"{len(self.names)}"
        self.wait(lambda: self.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], check=False).strip() == everybody, 30,
                  "the nodes don't become idle")

    def end_all(self):
        for name in list(reversed(self.daemons)):
            self.end(name)

    def run(self, words, host=None, check=True, timeout=60, environment=None):
        """Runs a Slurm client, on the controller's host by default, and returns its standard output."""
        done = self.try_run(words, host, timeout, environment)
        if check and done.returncode:
            raise Failed(f"{' '.join(words[:3])} ...: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def try_run(self, words, host=None, timeout=60, environment=None):
        return subprocess.run(self.on(self.controller_host if host is None else host) + list(words),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False,
                              env={**self.environment, **(environment or {})})

    def wait(self, condition, seconds, what):
        """Waits until `condition` returns a true value, and returns it. Raises Failed with `what` after `seconds`."""
        until = time.monotonic() + seconds
        while True:
            result = condition()
            if result:
                return result
            for name, process in self.daemons.items():
                if process.poll() is not None:
                    raise Failed(f"{name} has ended with {process.returncode}: {self.last_lines(name)}")
            if time.monotonic() > until:
                raise Failed(f"{what} within {seconds} s")
            time.sleep(0.1)

    def last_lines(self, name, most=3):
        with open(f"{self.folder}/{name}.output", encoding="utf-8", errors="replace") as stream:
            return " | ".join(line.strip() for line in stream.readlines()[-most:])

    def job(self, number):
        """Returns the fields that `scontrol show job` prints, by key; {} if Slurm does not know the job."""
        text = self.run(["scontrol", "show", "job", str(number)], check=False)
        found = {}
        for line in text.splitlines():
            for word in line.strip().split(" ") if not line.strip().startswith(("AdminComment=", "Comment=")) else \
                    [line.strip()]:
                key, is_pair, value = word.partition("=")
                if is_pair:
                    found.setdefault(key, value)
        return found

    def submit(self, *words, check=True, environment=None):
        """Submits a batch job. Returns its number (None if sbatch printed none) and the error output of sbatch."""
        done = self.try_run(["sbatch", "--parsable", *words], environment=environment)
        if check and done.returncode:
            raise Failed(f"sbatch: {done.stderr.strip()}")
        number = done.stdout.strip().split(";")[0]
        return (int(number) if number.isdigit() else None), done.stderr

    def states(self):
        """Returns the state of each job that slurmctld knows, by job number."""
        lines = self.run(["squeue", "-h", "-t", "all", "-o", "%A %T"]).split("\n")
        return {int(line.split()[0]): line.split()[1] for line in lines if line}


if __name__ == "__main__":
    sys.exit(reap(sys.argv[1:]))
