"""Tests `mltcp inspect` and `mltcp advise` as users run them. For every format, the text, the JSON and the job must
agree. Also tests the chosen iteration, and the messages for files that are not traces.

Usage: inspect_test.py MLTCP"""
import gzip
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)
PATIENCE = 120  # time limit in s, long enough for a busy machine


def mltcp(*words, status=0):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def kernel(name, start, length, more=""):
    return (f'{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{start},"dur":{length},'
            f'"args":{{"stream":7{more}}}}}')


def step(number, start):
    sizes = ',"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"dtype":"Float","Group size":2'
    return [f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":9,"tid":1,"ts":{start},"dur":900}}',
            kernel("gemm", start + 100, 400), kernel("ncclDevKernel_AllReduce", start + 520, 30, sizes)]


def nccl(rank, order, count):
    return (f"h:{10 + rank}:2 [{rank}] NCCL INFO AllReduce: opCount {order:x} sendbuff 0x1 recvbuff 0x2 count {count} "
            f"datatype 7 op 0 root 0 comm 0xa [nranks=2] stream 0x1\n")


def nccl_log():
    text = "".join(f"h:{10 + rank}:2 [{rank}] NCCL INFO comm 0xa rank {rank} nranks 2 cudaDev {rank} commId 0x7 - Init "
                   "COMPLETE\n" for rank in (0, 1))
    return text + "".join(nccl(rank, 1 + i, count) for rank in (0, 1) for i, count in enumerate([10, 20, 10, 20, 10, 20]))


AICB = ("comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
        "CommType.computation,CommGroup.all,1,0,forward,None,None,,5000,None,None,1\n"
        "CommType.all_reduce,CommGroup.tp_group,2,1000,forward,None,None,,None,None,None,1\n")
MODEL = ("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 4\n2\n"
         "qkv -1 5000 ALLREDUCE 1000 6000 NONE 0 7000 ALLREDUCE 9000 10\n"
         "mlp -1 8000 NONE 0 9000 NONE 0 4000 ALLREDUCE 6000 10\n")
TRACES = {
    "kineto.json": '{"distributedInfo":{"rank":0,"world_size":2},"traceEvents":[' +
                   ",".join(step(1, 1000) + step(2, 2000)) + "]}",
    "model.txt": MODEL,
    "activations.txt": "HYBRID_TRANSFORMER model_parallel_NPU_group: 8\n1\na -1 500 ALLREDUCE 1600 1 NONE 0 1 NONE 0 1\n",
    "aicb.csv": "[rank0 ~ rank3]\n" + AICB,
    "flows.cm": "Nodes 3\nConnections 2\n0->1 start 0 size 1000\n0->2 start 5000000 size 500\n",
    "nccl.log": nccl_log(),
    "inspector.json": '{"header":{"id":"0x1","rank":0,"n_ranks":2},"metadata":{"hostname":"h","pid":1},"coll_perf":'
                      '{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":64,"coll_exec_time_us":5}}',
    "param.json": '[{"comms":"all_reduce","in_msg_size":1000,"out_msg_size":1000,"dtype":"float32","req":1,"world_size":2,'
                  '"startTime_ns":1000},{"comms":"wait","req":1,"startTime_ns":9000}]',
    "chakra.json": (ROOT / "examples/traces/two-buckets.0.json").read_text(),
}
PROFILE = "# of a job\ntime_ms,rate_bps\n0,0\n150,1e9\n258,0\n"
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


class Inspect(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def put(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def test_text_and_json_and_job_say_the_same(self):
        for name, text in TRACES.items():
            with self.subTest(name):
                file = self.put(name, text)
                read = json.loads(mltcp("inspect", file, "--json", "-").stdout)
                stated = mltcp("inspect", file).stdout
                self.assertIn(f": {read['format']}, ", stated)
                steps = re.findall(r"^  .*?([\d.]+) ms(?: \(typical\))?: .*sends ([\d.]+) (\w+) in (\d+) ", stated, re.M)
                self.assertEqual(len(steps), len(read["steps"]))
                for (length, value, unit, count), one in zip(steps, read["steps"]):
                    self.assertEqual(length, f"{one['length_ns'] / 1e6:.3f}")
                    self.assertAlmostEqual(float(value) * UNITS[unit], one["sent_bytes"], delta=1e-3 * UNITS[unit])
                    self.assertEqual(int(count), one["communications"])
                typical = read["steps"][read["typical"]]
                self.assertGreater(typical["sent_bytes"], 0)
                job = tomllib.loads(mltcp("inspect", file, "--toml").stdout)["job"][0]
                self.assertEqual(sum(self.bytes_of(phase["communicate"]) for phase in job["phases"]
                                     if "communicate" in phase), typical["sent_bytes"])

    def test_experiments_take_every_format_packed_or_not(self):
        def mean(job):
            file = self.put("e.toml", f'[bottleneck]\nrate = "1 Gbps"\n{job}')
            run = mltcp("run", file, "--datapath", "flow", "--iterations", "2", "--policy", "fair", "--json", "-")
            results = json.loads(run.stdout)
            read = {Path(one["path"]).name for one in results["provenance"]["files"]}
            self.assertEqual(read, {"e.toml", *re.findall(r'trace = "(.*)"', job)})
            return results["runs"][0]["jobs"][0]["mean_ns"]
        for name, text in TRACES.items():
            with self.subTest(name):
                file = self.put(name, text)
                (self.folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
                with tarfile.open(self.folder / f"{name}.tar.xz", "w:xz") as archive:
                    archive.add(file, name)
                stated = mean(mltcp("inspect", file, "--toml", "--name", "a").stdout)
                for packed in ("", ".gz", ".tar.xz"):
                    self.assertEqual(mean(f'[[job]]\nname = "a"\ntrace = "{name}{packed}"\n'), stated)

    @staticmethod
    def bytes_of(text):
        value, unit = text.split()
        return round(float(value) * UNITS[unit])

    def test_collectives_that_cross_the_network_are_chosen(self):
        file = self.put("model.txt", MODEL)

        def sent(*words):
            read = json.loads(mltcp("inspect", file, "--json", "-", *words).stdout)
            self.assertEqual(len(read["steps"]), 1, "the format holds one iteration, however alike its layers are")
            return read["steps"][0]["sent_bytes"], [one for one in read["warnings"] if "of other passes" in one]
        weights, warnings = sent()
        self.assertEqual(weights, 15000)
        self.assertIn("left out: 1 collective in which a rank sends 1.000 kB, of other passes", warnings[0])
        self.assertEqual(sent("--network", "all"), (16000, []))
        self.assertEqual(sent("--network", "weight-gradient", "--workers", "4")[0], 22500)
        # An experiment file that names the trace gives the same job as the TOML text of `mltcp inspect`.
        self.put("e.toml", 'iterations = 2\n[bottleneck]\nrate = "1 Gbps"\n[[job]]\nname = "a"\ntrace = "model.txt"\n')
        self.put("job.toml", '[bottleneck]\nrate = "1 Gbps"\n' + mltcp("inspect", file, "--toml", "--name", "a").stdout)
        alone = [json.loads(mltcp("run", self.folder / name, "--datapath", "flow", "--iterations", "2", "--policy", "fair",
                                  "--json", "-").stdout)["runs"][0]["jobs"][0]["mean_ns"] for name in ("e.toml", "job.toml")]
        self.assertEqual(alone[0], alone[1])
        self.assertIn("leave them out", mltcp("inspect", self.put("t.json", TRACES["kineto.json"]), "--network", "all",
                                              status=2).stderr)

    def test_what_is_no_trace_is_told_what_there_is(self):
        for name, text in {"a.json": '{"a": [1, 2]}', "a.csv": "x,y\n1,2\n", "a.txt": "hello\nworld\n"}.items():
            file = self.put(name, text)
            for words in (("inspect", file), ("advise", file), ("replay", file)):
                said = mltcp(*words, status=2).stderr
                self.assertEqual(said.count("\n"), 1, said)
                self.assertIn("which is not a known trace format; known are: Kineto, PyTorch Flight Recorder, ", said)
                self.assertEqual("measured profile" in said, words[0] != "replay", said)
                self.assertEqual("capture (pcapng)" in said, words[0] == "inspect", said)
        # The message names the kind of the file, and the kinds that the command can read.
        for name, text, seen in (("topo.xml", '<system version="1">\n  <cpu numaid="0"/>\n</system>\n', "NCCL's topology of a host (XML)"),
                                 ("a.html", "<!DOCTYPE html><html></html>", "HTML"), ("numbers", "1 2\n3 4\n", "numbers in columns"),
                                 ("a.zip", "PK\3\4\24\0", "a zip archive"), ("a.png", "\211PNG\r\n\32\n", "a picture (PNG)")):
            (self.folder / name).write_bytes(text.encode("latin-1"))
            for words in (("inspect", self.folder / name), ("advise", self.folder / name), ("replay", self.folder / name)):
                said = mltcp(*words, status=2).stderr
                self.assertIn(f"it is {seen}", said)
                self.assertIn("known are: Kineto, ", said)
            for command in ("run", "schedule", "sweep", "cluster"):
                said = mltcp(command, self.folder / name, status=2).stderr
                self.assertIn(f"this is {seen}", said)
                self.assertEqual(said.count("\n"), 1, said)
        settings = self.put("network.yml", "### licence\nTopology: [2, 2]\n")
        self.assertIn("give it together with the workload", mltcp("inspect", settings, status=2).stderr)
        self.assertNotIn("together with", mltcp("inspect", self.put("pod.yml", "kind: Pod\n"), status=2).stderr)
        # If a file is probably a profile, the message names the error in the profile.
        self.assertIn("rate", mltcp("inspect", self.put("p.csv", "time_ms,speed\n0,1\n"), status=2).stderr)

    def test_advice_names_the_iteration_that_it_took(self):
        sure = self.put("sure.json", TRACES["kineto.json"])
        unsure = self.put("unsure.json", TRACES["param.json"])
        file = self.folder / "advice.json"
        done = mltcp("advise", sure, unsure, "--level", "flow", "--starts", "1", "--iterations", "4", "--json", file)
        self.assertRegex(done.stdout, r"period of sure: 0\.9\d\d ms, marked, confidence 1\.00")
        self.assertIn("period of unsure: ", done.stdout)
        self.assertEqual(len(re.findall("confidence", done.stderr)), 1, done.stderr)
        self.assertIn("unsure.json: no iterations were found, so the whole trace, 0.008 ms, is taken as one iteration (confidence 0.00); "
                      "check it with mltcp inspect ", done.stderr)
        jobs = json.loads(file.read_text())["jobs"]
        self.assertEqual([job["period"]["found"] for job in jobs], ["marked", "single"])
        read = json.loads(mltcp("inspect", sure, "--json", "-").stdout)
        self.assertEqual(jobs[0]["period"]["length_ns"], read["steps"][read["typical"]]["length_ns"])

    def test_advice_of_jobs_that_never_compute_says_that_it_can_not_tell(self):
        file = self.put("log.txt", re.sub(r"count (\d+)", r"count \g<1>00000", TRACES["nccl.log"]))
        done = mltcp("advise", file, file, "--level", "flow", "--starts", "1", "--iterations", "4")
        self.assertIn("Whether the jobs slow each other down is unknown: \"log\", \"log-2\" have no computation", done.stdout)
        self.assertNotIn("elsewhere", done.stdout)

    def test_kinds_are_named_alike_by_all_commands_with_what_takes_them(self):
        files = {name: self.put(name, text) for name, text in {
            "topology.conf": "SwitchName=a Nodes=n[0-3]\n", "jobs.json": '[{"attempts": [], "status": "Pass"}]',
            "links.csv": "from,to,rate\na,b,1 Gbps\n", "sweep.toml": 'experiment = "a.toml"\n',
            "profile.dat": PROFILE, "log.txt": TRACES["nccl.log"], "param.json": TRACES["param.json"]}.items()}
        files["log.gz"] = self.folder / "log.gz"
        files["log.gz"].write_bytes(gzip.compress(TRACES["nccl.log"].encode()))
        seen = {"topology.conf": "Slurm's description of a network", "jobs.json": "a table of a cluster's jobs",
                "links.csv": "a file of links", "sweep.toml": "a sweep file", "profile.dat": "a demand profile",
                "log.txt": "a trace (NCCL log)", "log.gz": "a trace (NCCL log)", "param.json": "a trace (PARAM communication trace)"}
        reads = {"inspect": {"profile.dat", "log.txt", "log.gz", "param.json"}, "replay": {"log.txt", "log.gz", "param.json"},
                 "sweep": {"sweep.toml"}}
        reads["advise"] = reads["inspect"]
        for command in ("inspect", "advise", "replay", "run", "schedule", "sweep", "report", "profile", "cluster"):
            for name in seen.keys() - reads.get(command, set()):
                with self.subTest(command=command, file=name):
                    said = mltcp(command, files[name], status=2).stderr
                    self.assertIn(f"this is {seen[name]}, but ", said)
                    self.assertRegex(said, r"(to (read|run|use) it|give it to |name it with |write a TOML file).*\n$")
                    self.assertEqual(said.count("\n"), 1, said)
        # The message is the same if a key of an experiment file names the file.
        self.put("e.toml", '[bottleneck]\nrate = "1 Gbps"\n[[job]]\nname = "a"\nreplay = "profile.dat"\n')
        self.assertIn("this is a demand profile", mltcp("run", self.folder / "e.toml", status=2).stderr)

    def test_cures_can_be_typed(self):
        # The command recognises a profile by its content. For a compressed profile or capture, the message names the
        # tool that unpacks it.
        self.assertIn("measured profile", mltcp("inspect", self.put("profile.dat", PROFILE)).stdout)
        mltcp("advise", self.folder / "profile.dat", "--level", "flow", "--iterations", "2")
        for name, text, kind in (("profile.csv.gz", PROFILE.encode(), "a demand profile"),
                                 ("run.pcapng.gz", b"\n\r\r\n" + bytes(60), "a capture (pcapng)")):
            file = self.folder / name
            file.write_bytes(gzip.compress(text))
            for command in ("inspect", "advise", "replay", "run"):
                self.assertIn(f"this is {kind}, compressed; unpack it: gunzip -k {file}\n", mltcp(command, file, status=2).stderr)
        log = self.put("log.txt", TRACES["nccl.log"])
        self.assertIn("to read it, use mltcp inspect", mltcp("inspect", self.folder / "profile.dat", log, status=2).stderr)
        # LIBRA needs this file in addition to a workload.
        self.put("c.yml", "Forward: [ 2, -1 ]\nInputGrad: [ 2, -1 ]\nWeightGrad: [ -1, 3 ]\n")
        bare = self.put("w.txt", "qkv -1 5000 ALLREDUCE 1000 6000 NONE 0 7000 ALLREDUCE 9000 10\n")
        cure = re.search(r"LIBRA: mltcp (inspect \S+ \S+)\n", mltcp("inspect", bare).stdout)[1]
        self.assertNotIn("warning", mltcp(*cure.split()).stdout)

    def test_advice_says_if_the_network_of_an_experiment_is_not_used(self):
        file = self.put("e.toml", '[bottleneck]\nrate = "1 Gbps"\n[[job]]\nname = "a"\ncompute = "9 ms"\ncommunicate = "1 MB"\n')
        quick = ("--level", "flow", "--iterations", "2")
        self.assertIn(f"its network is not used, but one link of 100 Gbps; give --network {file}",
                      mltcp("advise", file, *quick).stderr)
        for more in (("--network", file), ("--rate", "1 Gbps")):
            self.assertNotIn("not used", mltcp("advise", file, *quick, *more).stderr)

    def test_byte_order_marks_are_skipped(self):
        for name, text in {**TRACES, "profile.csv": PROFILE}.items():
            with self.subTest(name):
                plain = mltcp("inspect", self.put(name, text)).stdout
                self.assertEqual(mltcp("inspect", self.put(name, "\ufeff" + text)).stdout, plain)
        experiment = '[bottleneck]\nrate = "1 Gbps"\n[[job]]\nname = "a"\ncompute = "1 ms"\ncommunicate = "1 MB"\n'
        file = self.put("e.toml", "\ufeff" + experiment)
        results = self.folder / "results.json"
        mltcp("run", file, "--datapath", "flow", "--iterations", "2", "--policy", "fair", "--json", results)
        results.write_text("\ufeff" + results.read_text())
        mltcp("report", results)

    def test_overlap_of_param_traces_is_that_of_their_replay(self):
        def entry(step, at, what):
            return {**what, "req": step, "startTime_ns": 1_700_000_000_000_000_000 + (32 * step + at) * 1_000_000,
                    "world_size": 2, "markers": [f"iteration {step}"]}
        entries = [one for step in range(4) for one in (
            entry(step, 0, {"comms": "all_reduce", "in_msg_size": 1000000, "dtype": "float"}),
            entry(step, 30, {"comms": "wait"}))]
        file = self.put("rank0.json", json.dumps(entries))
        job = tomllib.loads(mltcp("inspect", file, "--toml").stdout)["job"][0]
        self.assertEqual(job["phases"], [{"compute": "2 ms"}, {"communicate": "4 MB", "overlap": True}, {"compute": "30 ms"}])
        self.assertIn("iteration 32.000 ms", mltcp("inspect", file).stdout)
        results = json.loads(mltcp("replay", file, "--iterations", "2", "--json", "-").stdout)
        for step in results["runs"][0]["jobs"][0]["replay"]["steps"][1:]:
            self.assertEqual(step["recorded_ns"], 32_000_000)
            self.assertAlmostEqual(step["replayed_ns"] / step["recorded_ns"], 1, delta=0.001)

    def test_advice_is_of_a_bounded_number_of_phases(self):
        text = "".join(nccl(rank, i, 1 + i * i % 65537) for rank in (0, 1) for i in range(20001))
        done = mltcp("advise", self.put("long.log", text), "--level", "flow", "--starts", "1", "--iterations", "2")
        self.assertRegex(done.stderr, r"job \"long\": its iteration has 20001 phases and is simulated with 2858, each of which")


if __name__ == "__main__":
    unittest.main()
