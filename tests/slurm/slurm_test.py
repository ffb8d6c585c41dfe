"""Tests Slurm with the plug-ins and the service of this build, on three nodes of this machine in one network namespace.
The tests run in real time, and every wait is for a condition."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import slurm_cluster  # noqa: E402

sys.dont_write_bytecode = True  # prevents a cache file for `lab`, which has no suffix
LOADER = importlib.machinery.SourceFileLoader("lab", os.path.join(HERE, "lab"))
lab = importlib.util.module_from_spec(importlib.util.spec_from_loader("lab", LOADER))
LOADER.exec_module(lab)

BUILD = os.environ.get("MLTCP_BUILD", os.path.join(lab.ROOT, "build"))
DOWN = "the scheduler's service does not run"
# Prints the environment variables of a task's plan.
SHOW = 'env | grep -E "^MLTCP_(JOB|SLOT_|TIME_|PLAN_)" | sort'


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mltcp-slurm-")
        cls.lab = lab.Lab(f"{cls.folder}/slurm", BUILD, "together", wait=5)
        cls.cluster = cls.lab.cluster
        cls.profile = cls.lab.profile("pair", 150, 500_000, 240)
        try:
            cls.cluster.start_all()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.end_all()
        shutil.rmtree(cls.folder, ignore_errors=True)

    def tearDown(self):
        self.cluster.run(["scancel", "--user=root"])
        self.cluster.wait(lambda: not self.cluster.run(["squeue", "-h"]).strip(), 30, "jobs don't end")
        if "service" in self.cluster.daemons:
            self.cluster.end("service")
        for name in os.listdir(self.lab.folder):
            if name.startswith(("go.", "shown.")):
                os.remove(f"{self.lab.folder}/{name}")
        shutil.rmtree(f"{self.lab.folder}/service", ignore_errors=True)

    # Submits a job whose two tasks print their plan's variables and then wait for go().
    def submit(self, *words, profile=True):
        folder = self.lab.folder
        script = (f"{SHOW} > {folder}/shown.$SLURM_JOB_ID.batch\n"
                  f"exec srun sh -c '{SHOW} > {folder}/shown.$SLURM_JOB_ID.$SLURM_PROCID.part; "
                  f"mv {folder}/shown.$SLURM_JOB_ID.$SLURM_PROCID.part {folder}/shown.$SLURM_JOB_ID.$SLURM_PROCID; "
                  f"until [ -e {folder}/go.$SLURM_JOB_ID ]; do sleep 0.1; done'")
        if profile:
            words = (f"--mltcp-profile={self.profile}", *words)
        number, said = self.cluster.submit("--nodes=2", "--ntasks-per-node=1", f"--output={folder}/shown.%j.output",
                                           *words, "--wrap", script)
        return number, said

    def go(self, number):
        open(f"{self.lab.folder}/go.{number}", "w", encoding="utf-8").close()

    def shown(self, number, rank):
        """Returns the plan's variables in the environment of a running task."""
        path = f"{self.lab.folder}/shown.{number}.{rank}"
        self.cluster.wait(lambda: os.path.exists(path), 30, f"task {rank} of job {number} does not start")
        with open(path, encoding="utf-8") as stream:
            return dict(line.rstrip("\n").split("=", 1) for line in stream)

    def mark(self, number):
        comment = self.cluster.job(number).get("AdminComment", "")
        return json.loads(comment[comment.index("mltcp:") + 6:]) if "mltcp:" in comment else None

    def wait_for_state(self, number, state):
        self.cluster.wait(lambda: self.cluster.states().get(number) == state, 30, f"job {number} does not become {state}")

    def test_a_bad_profile_is_refused_when_it_is_submitted(self):
        for name, text, said in (
                ("a.json", '{"compute_ns": 5, "communicate_byts": 5}', "is no profile of a job"),
                ("b.json", '{"phases": [{"compute_ns": 5}]}', "sends nothing"),
                ("c.json", "[" * 100_000, "c.json:1"),
                ("d.toml", '[[job]]\nname = "x"\ncompute = "12"\ncommunicate = "1 MB"\n', "d.toml:3"),
                ("e.toml", "\0", "is not text"),
                ("f.toml", "x" * 2_000_000, "longer than 1 MiB"),
                ("g.toml", None, "No such file")):
            if text is not None:
                with open(f"{self.folder}/{name}", "w", encoding="utf-8") as stream:
                    stream.write(text)
            for program in (["sbatch", "--wrap", "true"], ["srun", "true"], ["salloc", "true"]):
                words = [program[0], "-N2", f"--mltcp-profile={self.folder}/{name}", *program[1:]]
                done = self.cluster.try_run(words)
                self.assertNotEqual(done.returncode, 0, words)
                ours = [line for line in done.stderr.split("\n") if said in line]
                self.assertEqual(len(ours), 1, done.stderr)
        for comment, said in (("mltcp:{}", "phases"), ("mltcp:{bad", "not JSON"), ("mltcp:{", "ends too early"),
                              ('mltcp:{"compute_ns":1.5,"communicate_bytes":1}', "not whole"),
                              ('mltcp:{"phases":[' + "[" * 1000, "nested too deep"),
                              ('mltcp:{"phases":[' + '{"communicate_bytes":1},' * 1200 + "]}", "more than 1000 phases"),
                              ('mltcp:{"compute_ns":1,"communicate_bytes":1,"flows":0}', "flows"),
                              ('mltcp:{"compute_ns":1,"communicate_bytes":1}}', "text after its end")):
            done = self.cluster.try_run(["sbatch", f"--comment={comment}", "--wrap", "true"])
            self.assertNotEqual(done.returncode, 0, comment[:80])
            self.assertIn("this is not a job's profile", done.stderr)
            self.assertIn(said, done.stderr)
        self.assertEqual(self.cluster.run(["squeue", "-h"]), "")

    def test_a_manual_shift_needs_no_service(self):
        words = ["srun", "-N1", "--mltcp-shift=12ms/200ms", "sh", "-c", SHOW]
        self.assertRegex(self.cluster.run(words), "^MLTCP_JOB=2147483[0-9]*\nMLTCP_SLOT_PERIOD_NS=200000000\n"
                                                  "MLTCP_SLOT_UNIX_NS=12000000\nMLTCP_TIME_SHIFT_NS=12000000\n$")
        for shift in ("12", "ms", "-1ms", "1ms/", "1ms/0ms", "1ms/x", "9e99s", "nan"):
            done = self.cluster.try_run(["srun", "-N1", f"--mltcp-shift={shift}", "true"])
            self.assertNotEqual(done.returncode, 0, shift)
            self.assertIn("is not a time; give", done.stderr)
        done = self.cluster.try_run(["srun", "-N1", "--mltcp-shift=1ms", f"--mltcp-profile={self.profile}", "true"])
        self.assertIn("give one of them", done.stderr)

    def test_jobs_without_a_profile_are_left_alone(self):
        self.lab.start_service()
        number, said = self.submit(profile=False)
        self.assertEqual(self.shown(number, 1), {})
        self.assertEqual(said, "")
        self.assertNotIn("AdminComment", self.cluster.job(number))

    def test_without_the_service_jobs_run_and_say_so(self):
        number, said = self.submit()
        self.assertIn(DOWN, said)
        for rank in (0, 1):
            shown = self.shown(number, rank)
            self.assertEqual(shown["MLTCP_PLAN_REASON"], DOWN)
            self.assertNotIn("MLTCP_SLOT_UNIX_NS", shown)
            self.assertEqual(int(shown["MLTCP_JOB"]), 0x80000000 + number)
        output = self.lab.read(f"shown.{number}.output")
        self.assertEqual(output.count(f"mltcp: this job runs without time slots: {DOWN}"), 1, output)
        # A service with an old heartbeat counts as not running.
        with open(self.lab.heartbeat, "w", encoding="utf-8") as stream:
            stream.write(f"{int(time.time()) - 100} 15\n")
        self.assertIn("does not answer", self.submit()[1])
        os.remove(self.lab.heartbeat)

    def test_shifts_reach_the_processes(self):
        self.lab.start_service()
        first, said = self.submit("-w", "n0,n2")
        self.assertEqual(said, "")
        shown = self.shown(first, 0)
        self.assertIn("shares no link with another job", shown["MLTCP_PLAN_REASON"])
        second, _ = self.submit("-w", "n0,n2")
        slots = [self.shown(second, rank) for rank in (0, 1)]
        plan = self.mark(second)["plan"]
        for rank in (0, 1):
            self.assertEqual(int(slots[rank]["MLTCP_JOB"]), plan["number"])
            self.assertEqual(int(slots[rank]["MLTCP_SLOT_UNIX_NS"]), plan["slot_unix_ns"])
            self.assertEqual(int(slots[rank]["MLTCP_SLOT_PERIOD_NS"]), plan["slot_period_ns"])
            self.assertEqual(int(slots[rank]["MLTCP_TIME_SHIFT_NS"]), plan["time_shift_ns"])
            self.assertNotIn("MLTCP_PLAN_REASON", slots[rank])
        self.assertEqual(plan["hosts"], ["n0", "n2"])
        # The first job is running already, and gets its slots from its plan file.
        followed = self.cluster.wait(lambda: self.plan_of(shown), 30, "the running job gets no slots")
        first_plan = self.mark(first)["plan"]
        self.assertEqual(followed["jobs"], [{"name": str(first_plan["number"]), "offset_ns": 0,
                                             "period_ns": first_plan["slot_period_ns"]}])
        self.assertEqual(followed["epoch_ns"], first_plan["slot_unix_ns"])
        self.assertNotEqual(first_plan["time_shift_ns"], plan["time_shift_ns"])
        # When the second job has ended, the first job loses its slots. When the first job has ended, its plan file is
        # removed.
        self.go(second)
        self.cluster.wait(lambda: not self.plan_of(shown), 30, "the running job keeps slots that nobody else has")
        self.go(first)
        self.wait_for_state(first, "COMPLETED")
        self.cluster.wait(lambda: not os.path.exists(shown["MLTCP_PLAN_FILE"]), 10, "the plan's file is not removed")

    def plan_of(self, shown):
        """Returns the content of the plan file, or None if the plan has no slots."""
        with open(shown["MLTCP_PLAN_FILE"], encoding="utf-8") as stream:
            plan = json.load(stream)
        self.assertEqual(plan["schema"], "mltcp.plan/1")
        return plan if plan["jobs"] else None

    def test_the_service_is_killed_and_no_job_is_lost(self):
        self.lab.start_service()
        ends, stays = self.submit()[0], self.submit()[0]
        waits = self.submit("--exclusive", "-N3")[0]  # this job starts when the first two jobs have ended
        for number in (ends, stays):
            self.shown(number, 0)
        before = self.mark(stays)["plan"]
        self.cluster.end("service", signal.SIGKILL)
        self.go(ends)
        self.wait_for_state(ends, "COMPLETED")
        held = self.submit()[0]  # the heartbeat is still recent, so the job is held although the service has ended
        self.assertEqual(self.cluster.job(held)["Priority"], "0")
        self.lab.start_service()
        self.assertIsNotNone(self.shown(held, 0))
        plans = {number: self.mark(number)["plan"] for number in (stays, held)}
        self.assertEqual(plans[stays]["number"], before["number"])
        self.assertEqual(plans[stays]["hosts"], before["hosts"])
        self.assertNotEqual(plans[held]["number"], before["number"])
        for number in (stays, held):
            self.go(number)
        self.shown(waits, 0)
        self.go(waits)
        for number in (ends, stays, held, waits):
            self.wait_for_state(number, "COMPLETED")
        said = self.lab.read("service.output")
        self.assertEqual(said.count(f"slurm: job {held} released"), 1, said)
        self.assertEqual(said.count(f"arrive slurm-{stays}-"), 1, said)

    def test_slurmctld_is_down_for_a_while(self):
        self.lab.start_service()
        first = self.submit()[0]
        self.shown(first, 0)
        self.cluster.end("slurmctld")
        self.cluster.wait(lambda: "jobs stay as they are" in self.lab.read("service.output"), 30,
                          "the service does not say that Slurm is down")
        self.cluster.start_controller()
        self.cluster.wait(lambda: "it answers again" in self.lab.read("service.output"), 30,
                          "the service does not see that Slurm is back")
        second = self.submit()[0]
        self.assertIn("MLTCP_JOB", self.shown(second, 0))
        self.assertEqual(self.lab.read("service.output").count("jobs stay as they are"), 1)
        for number in (first, second):
            self.go(number)
            self.wait_for_state(number, "COMPLETED")

    def test_a_comment_names_a_profile_without_the_option(self):
        self.lab.start_service()
        comment = 'mltcp:{"phases":[{"compute_ns":150000000},{"communicate_bytes":500000}],"flows":2}'
        number, _ = self.submit(f"--comment={comment}", profile=False)
        self.assertIn("MLTCP_PLAN_REASON", self.shown(number, 1))
        self.assertEqual(self.mark(number)["profile"]["flows"], 2)
        quoted, _ = self.submit(f"--comment=as in {comment}", profile=False)
        self.assertEqual(self.shown(quoted, 1), {})
        self.assertIsNone(self.mark(quoted))
        for one in (number, quoted):
            self.go(one)

    def test_a_job_that_its_user_holds_is_theirs_to_release(self):
        self.lab.start_service()
        held, said = self.submit("--hold")
        self.assertIn("held by its user", said)
        later, _ = self.submit()
        self.assertIn("MLTCP_JOB", self.shown(later, 0))  # this shows that the service has processed both jobs
        self.assertEqual(self.cluster.states()[held], "PENDING")
        self.assertNotIn("plan", self.mark(held))
        self.cluster.run(["scontrol", "release", str(held)])
        shown = self.shown(held, 0)
        self.assertLess(int(shown["MLTCP_JOB"]), 1 << 31)
        for one in (held, later):
            self.go(one)

    def test_a_plan_of_the_job_that_it_is_submitted_from_is_removed(self):
        foreign, _ = self.submit("--export=ALL,MLTCP_SLURM=4242,MLTCP_JOB=7,MLTCP_SLOT_UNIX_NS=5", profile=False)
        self.assertEqual(self.shown(foreign, 0), {})
        by_hand, _ = self.submit("--export=ALL,MLTCP_JOB=7", profile=False)
        self.assertEqual(self.shown(by_hand, 0), {"MLTCP_JOB": "7"})
        for one in (foreign, by_hand):
            self.go(one)

    def test_an_array_runs_without_slots(self):
        self.lab.start_service()
        done = self.cluster.try_run(["sbatch", "--array=1-2", f"--mltcp-profile={self.profile}",
                                     f"--output={self.lab.folder}/array.%A_%a", "--wrap", "true"])
        self.assertIn("job arrays are not placed", done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_a_heterogeneous_job_runs_without_slots(self):
        self.lab.start_service()
        done = self.cluster.try_run(["sbatch", "--nodes=1", f"--mltcp-profile={self.profile}", "--wrap", "true", ":",
                                     "--nodes=1"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("heterogeneous jobs are not placed", done.stderr)


def main():
    if reason := slurm_cluster.lacking():
        print(f"Skipped: {reason}")
        return 77
    if os.environ.get("MLTCP_SLURM_INSIDE") != "1":
        os.environ["MLTCP_SLURM_INSIDE"] = "1"
        slurm_cluster.sandboxed([sys.executable, os.path.abspath(__file__), *sys.argv[1:]])
    unittest.main(verbosity=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
