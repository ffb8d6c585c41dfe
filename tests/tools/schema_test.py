"""Tests that the program's output matches docs/schema, field by field, and that the code in
docs/reference/results-file.md works.

Usage: schema_test.py PROGRAM, where PROGRAM is the built mltcp. The exit status is 77 if python3-jsonschema is missing.

The test compares every file with its schema in strict mode: a field that the schema does not describe is an error.
Conversely, every field that a schema describes must occur in one of the files, or in NEVER_HERE with the reason."""

import copy
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print("schema_test.py: Skipped\npython3-jsonschema is missing; install it, or run tools/setup")
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMAS = {s["$id"]: s for s in (json.loads(f.read_text()) for f in sorted((ROOT / "docs/schema").glob("*.json")))}
PROGRAM = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/bin/mltcp"
POLICIES = ["fair", "static", "priority", "mltcp", "schedule", "mltcp+schedule"]
PATIENCE = 240  # time limit in s for one command, long enough for sanitizers on a busy machine

DUMBBELL = """
iterations = 4
[bottleneck]
rate = "1 Gbps"
delay = "10 us"
buffer = "75 kB"
"""
JOB = '[[job]]\nname = "{}"\ncompute = "{}"\ncommunicate = "{}"\n'
RACKS = """
iterations = 3
policies = ["fair", "schedule"]
[topology]
kind = "leaf-spine"
leaves = 3
spines = 1
hosts_per_leaf = 3
host_rate = "1 Gbps"
delay = "10 us"
"""
FILES = {
    # Job "a" stops for a while. It then drifts from its slots, because replan is off.
    "drift.toml": DUMBBELL.replace("= 4", "= 8") + "[schedule]\nreplan = false\n" + JOB.format("b", "12 ms", "1.25 MB")
                  + JOB.format("a", "12 ms", "1.25 MB") + 'pause = { iteration = 3, time = "9 ms" }\n',
    # Parameter `beta` has a value other than the default.
    "set.toml": DUMBBELL + "[cubic]\nbeta = 0.8\n" + JOB.format("a", "11 ms", "1.25 MB") + 'cc = "cubic"\n',
    # A PARAM trace, a format that the program reads but does not write.
    "rank0.trace": json.dumps([
        {"comms": "all_reduce", "in_msg_size": 1000, "dtype": "float", "world_size": 2, "req": 1, "startTime_ns": 1000},
        {"comms": "all_reduce", "in_msg_size": 1000, "dtype": "float", "world_size": 2, "req": 2, "startTime_ns": 9000},
    ]),
    "pair.toml": DUMBBELL + JOB.format("a", "11 ms", "1.25 MB") + JOB.format("b", "12 ms", "1.25 MB"),
    # The slots are valid for 40 ms, and the jobs run longer.
    "short.plan.json": json.dumps({
        "schema": "mltcp.plan/1", "serial": 3, "clock": "experiment", "epoch_ns": 0, "valid_until_ns": 40_000_000,
        "jobs": [{"name": "a", "period_ns": 24_000_000, "offset_ns": 11_000_000},
                 {"name": "b", "period_ns": 24_000_000, "offset_ns": 22_000_000}]}),
    # The jobs are a collective, a job with jitter and its own congestion control, and a job to which no policy applies.
    # The switches send pauses (PFC).
    "racks.toml": RACKS + """
shared_buffer = "500 kB"
pfc = { xoff = "30 kB" }
[[job]]
name = "collective"
hosts = [0, 3]
pattern = "all-reduce"
size = "200 kB"
compute = "2 ms"
[[job]]
name = "workers"
hosts = [1, 4]
compute = "3 ms"
communicate = "400 kB"
jitter = "0.1 ms"
cc = "cubic"
[[job]]
name = "bulk"
hosts = [2, 5]
communicate = "200 kB"
unaware = true
""",
    # Two jobs send to one host, whose switch port trims packets.
    "trim.toml": RACKS + 'buffer = "20 kB"\ntrim = "128 B"\n' + "".join(
        JOB.format(name, "0 ms", "1 MB") + f"hosts = {hosts}\nstop = true\n" for name, hosts in (("a", [0, 6]), ("b", [3, 6]))),
    # Any two of these jobs share a rack, so that the three jobs form a loop.
    "loop.toml": RACKS + "".join(JOB.format(name, "10 ms", "1 MB") + f"hosts = {hosts}\n"
                                 for name, hosts in (("a", [0, 3]), ("b", [4, 6]), ("c", [7, 1]))),
    # These jobs collide at all time shifts. The program proposes slack, stretch, or both.
    "slack.toml": DUMBBELL + JOB.format("a", "10 ms", "1.375 MB") + JOB.format("b", "10 ms", "1.375 MB"),
    "both.toml": DUMBBELL + "".join(JOB.format(name, compute, "1.25 MB")
                                    for name, compute in (("a", "10 ms"), ("b", "10 ms"), ("c", "11 ms")))
                 + JOB.format("bulk", "0 ms", "1 MB") + "unaware = true\n",
    "cluster.toml": """
schemes = ["locality", "compatible+schedule", "ideal"]
time_scale = 0.02
rate_scale = 0.2
[topology]
kind = "leaf-spine"
leaves = 3
spines = 1
hosts_per_leaf = 2
host_rate = "50 Gbps"
delay = "1 us"
buffer = "250 kB"
ecn = { kmin = "30 kB" }
[arrivals]
jobs = 3
at_start = 2
load = 0.9
workers = 3
iterations = 4
[[type]]
model = "VGG16"
""",
}

# Fields that occur in none of the test's files, by schema and path, with the reason.
NEVER_HERE = {
    "mltcp.results/1": {
        "job.first_checksum_error": "nothing is damaged",
        "schedule.cut_off": "planning takes little work",
        "host_losses.black_holes": "no path drops long packets", "host_losses.size_probes_sent": "",
        "host_losses.size_probes_lost": "",
        "run.link_outages": "no link goes", "link_outage.host": "", "link_outage.port": "",
        "link_outage.start_ns": "", "link_outage.duration_ns": "",
    },
    "mltcp.algorithms/1": {"algorithms[].shared_object": "none is loaded"},
    "mltcp.switch/1": {"claim.job": "no packet of a job passes", "claim.iterations": "", "claim.packets": "", "claim.bytes": "",
                       "claim.bytes_at_end": "", "claim.mean_progress": "", "claim.verdict": ""},
    "mltcp.soak/1": {"failures[].round": "no round fails", "failures[].what": "", "failures[].state": "",
                     "failures[].replay": ""},
    "provenance/1": {"commit": "a build without git", "modified": "a clean tree", "build": "",
                     "machine.cpu": "some kernels", "machine.memory_bytes": "", "machine.system": "",
                     "machine.kernel": ""},
}


def mltcp(*words, status=0):
    """Runs the program in FOLDER and expects exit status `status`, or any exit status if `status` is None."""
    done = subprocess.run([str(PROGRAM), *words], cwd=FOLDER, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    if status is not None and done.returncode != status:
        raise AssertionError(f"mltcp {' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def schema_of(document):
    return SCHEMAS["urn:mltcp:schema:" + document["schema"].removeprefix("mltcp.")]


# ---- Strict schemas ----


def strict(schema):
    """Returns the schema with the restriction that objects have only described fields. Conditions in the schema do not
    change."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            result[key] = {name: strict(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            result[key] = strict(value)
        elif key == "prefixItems":
            result[key] = [strict(inner) for inner in value]
    if "properties" in schema:
        result.setdefault("additionalProperties", False)
    return result


STRICT = {name: strict(schema) for name, schema in SCHEMAS.items()}


def checker_of(schemas, urn, made={}):
    if (id(schemas), urn) not in made:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # later versions of jsonschema deprecate RefResolver
            resolver = jsonschema.RefResolver(urn, schemas[urn], store=schemas)
        made[id(schemas), urn] = jsonschema.Draft202012Validator(schemas[urn], resolver=resolver)
    return made[id(schemas), urn]


def errors(document, schemas, urn=None):
    """Returns the errors in a document, one line each, with path and message. `urn` overrides the schema that the
    document names."""
    checker = checker_of(schemas, urn or schema_of(document)["$id"])
    return [f"{'.'.join(map(str, error.absolute_path)) or 'the file'}: {error.message[:200]}"
            for error in checker.iter_errors(document)]


def described(schema):
    """Returns the paths of all fields that a schema describes, such as "loop.stalls", or "run.seed" for a field of run
    in $defs."""
    places = set()

    def look(inner, place):
        for name, field in inner.get("properties", {}).items():
            here = f"{place}.{name}" if place else name
            places.add(here)
            look(field, here)
        if isinstance(inner.get("items"), dict):
            look(inner["items"], place + "[]")

    look(schema, "")
    for name, inner in schema.get("$defs", {}).items():
        look(inner, name)
    return places


def note_fields(value, schema, name, place, seen):
    """Adds (schema, path) to `seen` for each field of `value` that is described by `schema` or by a schema to which it
    refers."""
    if "$ref" in schema:
        urn, _, pointer = schema["$ref"].partition("#")
        name, schema, place = urn, SCHEMAS[urn], ""
        for step in filter(None, pointer.split("/")):
            schema, place = schema[step], step if step != "$defs" else ""
    if isinstance(value, dict):
        for key, inner in value.items():
            field = schema.get("properties", {}).get(key)
            if field is not None:
                here = f"{place}.{key}" if place else key
                seen.add((name, here))
                note_fields(inner, field, name, here, seen)
            elif isinstance(schema.get("additionalProperties"), dict):
                note_fields(inner, schema["additionalProperties"], name, place, seen)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for inner in value:
            note_fields(inner, schema["items"], name, place + "[]", seen)
    if value is not None:
        for choice in schema.get("anyOf", []):
            if "$ref" in choice:
                note_fields(value, choice, name, place, seen)


# ---- Files that the program writes ----


def interrupt(file, *words):
    """Runs a command and interrupts it when it has written its file. The command writes the file after the first of
    many parts."""
    with subprocess.Popen([str(PROGRAM), *words, "--json", file], cwd=FOLDER, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            end = time.monotonic() + PATIENCE
            while not (FOLDER / file).exists() and running.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
            running.send_signal(signal.SIGINT)
            if running.wait(PATIENCE) != 1:
                raise AssertionError(f"exit status {running.returncode} of a command that was interrupted")
        finally:
            running.kill()


def make_files():
    """Runs all commands. Returns the content of each file by its name."""
    for name, text in FILES.items():
        (FOLDER / name).write_text(text)
    for name in ("two-vgg19.toml", "faulty-link.toml", "leaf-spine-16.toml"):
        shutil.copy(ROOT / "examples" / name, FOLDER)
    for words in (
            f"run two-vgg19.toml --iterations 4 --policy {','.join(POLICIES)} --json two.json",
            "run racks.toml --json racks.json --series racks.series.json",
            "run trim.toml --policy fair --no-isolated --json trim.json",
            "run leaf-spine-16.toml --datapath flow --iterations 3 --policy fair,mltcp+schedule --json flow.json",
            "run faulty-link.toml --iterations 1 --verify --json faulty.json",
            "run set.toml --json set.json",
            "run pair.toml --policy schedule --plan short.plan.json --json stale.json",
            "run drift.toml --datapath flow --policy schedule --json drift.json --series drift.series.json",
            "schedule two-vgg19.toml --json schedule.json --plan two.plan.json",
            "schedule loop.toml --json loop.json --plan loop.plan.json",
            "schedule pair.toml --json stretch.json",
            "schedule slack.toml --json slack.json",
            "schedule both.toml --json both.json",
            "sweep pair.toml --seeds 1 --vary cc=reno,cubic -o one --json one.json",
            "sweep pair.toml --seeds 2 --vary job[*].jitter=0.1ms --policy fair,mltcp --full -o two --json table.json",
            "algorithms --json algorithms.json",
            "inspect rank0.trace --json inspection.json",
            "advise pair.toml set.toml rank0.trace --rate 1Gbps --starts 2 --iterations 3 --json advice.json",
            f"replay {ROOT}/examples/traces/data-parallel.0.json {ROOT}/examples/traces/data-parallel.1.json --datapath flow "
            "--json replay.json",
            "cluster cluster.toml --level flow --json cluster.json",
            "cluster cluster.toml --seeds 2 --scheme locality+mltcp --json packets.json"):
        mltcp(*words.split())
    # In the first sweep, all runs of the point fail. In the second sweep, the point has no results yet.
    mltcp(*"sweep pair.toml --vary bottleneck.faults={loss=1.0} -o failed --json failed.json".split(), status=1)
    mltcp(*"sweep pair.toml -o missing --no-run --json missing.json".split(), status=1)
    interrupt("interrupted.json", "run", "two-vgg19.toml", "--threads", "1", "--iterations", "100", "--policy",
              ",".join(POLICIES))
    interrupt("left.json", "cluster", "cluster.toml", "--seeds", "40", "--scheme", "locality", "--threads", "1")
    if mltcp("doctor", "--json", "doctor.json", status=None).returncode == 2:
        print("schema_test.py: Skipped\nbuilt without DPDK: mltcp doctor and mltcp switch write no files")
    elif mltcp(*"switch --port ring:a --port ring:b,rate=1Gbps --idle sleep --memory 64 --for 60ms".split(),
               *"--every 10ms --claims --json switch.json".split(), status=None).returncode != 0:
        print("schema_test.py: Skipped\nmltcp switch does not start here, not even on ring ports; see mltcp doctor")
    # Runs a client and a server on this machine. The client leaves out message lengths that take longer than 60 ms.
    mltcp("key", "perf.key")
    with subprocess.Popen([str(PROGRAM), "perf", "--listen", "unix:perf.sock", "--once", "--key", "perf.key",
                           "--authenticate"], cwd=FOLDER, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
        mltcp(*"perf unix:perf.sock --tests latency,out,in,both --min 1kB --max 400MB --factor 1000 --for 10ms "
               "--limit 60ms --every 1ms --key perf.key --authenticate --json perf.json".split())
        server.wait(PATIENCE)
    mltcp(*"soak --duration 10ms --json soak.json".split())
    mltcp(*"soak --port udp:lo --ip 127.0.0.1/8 --port udp:lo --ip 127.0.0.1/8 --round 2 --seed 5 --json soak-ports.json".split())
    files = {}
    for file in sorted(FOLDER.rglob("*.json")):
        files[file.relative_to(FOLDER).as_posix()] = json.loads(file.read_text())
    # This file is an excerpt of the output of `sudo tools/testbed examples/testbed-pair.toml`, which needs root and
    # time.
    files["testbed-results.json"] = json.loads((ROOT / "tests/tools/data/testbed-results.json").read_text())
    # This file is an excerpt from a virtual machine (tests/guest/kernel_tcp_test.py), because the command changes the
    # kernel.
    files["kernel-status.json"] = json.loads((ROOT / "tests/tools/data/kernel-status.json").read_text())
    return files


def short(value):
    """Returns a copy of `value` with only three entries of each list of more than 101 numbers."""
    if isinstance(value, list):
        return value[:3] if len(value) > 101 and not isinstance(value[0], (dict, list)) else [short(v) for v in value]
    return {key: short(v) for key, v in value.items()} if isinstance(value, dict) else value


def objects_of(value, place=()):
    """Yields each object of a document with its path."""
    if isinstance(value, dict):
        yield place, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from objects_of(inner, (*place, key))


def shape_of(place):
    """Returns the path without the indices of lists, so that all entries of a list have the same path."""
    return tuple("[]" if isinstance(step, int) else step for step in place)


def is_map(place):
    """Returns whether an object at this path may have fields with any name."""
    return place[-1:] in (("port_statistics",), ("set",)) or place[-2:] == ("usage", "jobs")


def at(document, place):
    for step in place:
        document = document[step]
    return document


class Schemas(unittest.TestCase):
    def test_schemas_are_schemas(self):
        self.assertGreaterEqual(len(SCHEMAS), 9)
        for name, schema in SCHEMAS.items():
            jsonschema.Draft202012Validator.check_schema(schema)
            self.assertEqual(schema["$schema"], "https://json-schema.org/draft/2020-12/schema")
            self.assertTrue(schema["title"] and schema["description"], name)
            for reference in re.findall(r'"\$ref": "([^"]*)"', json.dumps(schema)):
                urn, _, pointer = reference.partition("#")
                at(SCHEMAS[urn], [step for step in pointer.split("/") if step])

    def test_each_field_is_described_in_words(self):
        def look(schema, place):
            for name, field in schema.get("properties", {}).items():
                self.assertTrue(field.get("description"), f"{place}.{name}")
                look(field, f"{place}.{name}")
            if isinstance(schema.get("items"), dict):
                look(schema["items"], place)

        for urn, schema in SCHEMAS.items():
            look(schema, urn)
            for name, inner in schema.get("$defs", {}).items():
                look(inner, f"{urn}#{name}")

    def test_a_file_is_named_as_its_schema(self):
        for file in (ROOT / "docs/schema").glob("*.json"):
            name = json.loads(file.read_text())["$id"].removeprefix("urn:mltcp:schema:")
            self.assertIn(file.name, (name.replace("/", "-") + ".schema.json", name.split("/")[0] + ".schema.json"))


class Written(unittest.TestCase):
    def test_files_are_what_the_schemas_say_and_no_more(self):
        for name, document in WRITTEN.items():
            with self.subTest(name):
                self.assertEqual(errors(document, STRICT)[:5], [])

    def test_all_formats_are_among_them(self):
        formats = {document["schema"] for document in WRITTEN.values()}
        wanted = {"mltcp.results/1", "mltcp.schedule/1", "mltcp.plan/1", "mltcp.sweep/1", "mltcp.cluster/1",
                  "mltcp.algorithms/1", "mltcp.inspection/1", "mltcp.perf/1", "mltcp.series/1", "mltcp.soak/1"}
        self.assertEqual(wanted - formats, set())

    def test_all_commands_say_where_their_results_come_from(self):
        for name, document in WRITTEN.items():
            # These files have no provenance: sweep records, a plan that no command wrote, and files that are not
            # results.
            if "sweep" in document or name == "short.plan.json" or document["schema"] in (
                    "mltcp.algorithms/1", "mltcp.inspection/1"):
                continue
            provenance = document["provenance"]
            self.assertEqual(provenance["command"][0], "mltcp", name)
            for file in provenance["files"]:
                if "text" in file:
                    self.assertEqual(file["bytes"], len(file["text"].encode()), name)
                    self.assertEqual(file["sha256"], hashlib.sha256(file["text"].encode()).hexdigest(), name)

    def test_what_the_schemas_describe_is_written(self):
        seen = set()
        for document in WRITTEN.values():
            schema = schema_of(document)
            note_fields(document, schema, schema["$id"], "", seen)
        formats = {document["schema"] for document in WRITTEN.values()} | {"provenance/1"}
        for form in sorted(formats):
            urn = "urn:mltcp:schema:" + form.removeprefix("mltcp.")
            places = described(SCHEMAS[urn])
            unseen = {place for place in places if (urn, place) not in seen}
            self.assertEqual(NEVER_HERE.get(form, {}).keys() - places, set(), f"{form}: NEVER_HERE is out of date")
            self.assertEqual(unseen - NEVER_HERE.get(form, {}).keys(), set(), f"{form} describes what nothing writes")

    def test_records_of_sweeps_are_results(self):
        records = [document for document in WRITTEN.values() if "sweep" in document]
        self.assertEqual({record["sweep"]["full"] for record in records}, {False, True})
        self.assertEqual({"failure" in record["sweep"] for record in records}, {False, True})

    def test_what_was_interrupted_says_so(self):
        document = WRITTEN["interrupted.json"]
        done = [run["policy"] for run in document["runs"]]
        self.assertEqual(done[:1], POLICIES[:1])
        self.assertEqual(done + document["unfinished_policies"], POLICIES)
        document = WRITTEN["left.json"]
        seeds = [run["seed"] for run in document["runs"] + document["unfinished"]]
        self.assertEqual(sorted(seeds), list(range(1, 41)))


class Damaged(unittest.TestCase):
    """Tests that errors in files are found. Without this, the tests above would prove nothing."""

    def setUp(self):
        self.files = {name: short(document) for name, document in WRITTEN.items()
                      if name in ("faulty.json", "racks.json", "stale.json", "both.json", "table.json", "cluster.json",
                                  "two.plan.json", "doctor.json", "switch.json", "testbed-results.json")}

    def refused(self, document, schemas, what, urn=None):
        self.assertNotEqual(errors(document, schemas, urn), [], what)

    def changed(self, name, place, change):
        document = copy.deepcopy(self.files[name])
        change(at(document, place))
        return document

    def test_short_copies_are_right(self):
        for name, document in self.files.items():
            self.assertEqual(errors(document, STRICT), [], name)

    def test_required_fields_cannot_be_left_out(self):
        tried = 0
        for name, document in self.files.items():
            urn = schema_of(document)["$id"]
            fields = set()
            for place, value in objects_of(document):
                shape = shape_of(place)
                for key in value:
                    if (shape, key) in fields or is_map(place):
                        continue
                    fields.add((shape, key))
                    if (*shape, key) in self.optional(name):
                        continue
                    tried += 1
                    self.refused(self.changed(name, place, lambda at, key=key: at.pop(key)), SCHEMAS,
                                 f"{name}: {place} without {key}", urn)
        self.assertGreater(tried, 200)

    def optional(self, name):
        """Returns the paths of those fields in a file that are optional in the file's schema."""
        document = self.files[name]
        found = set()

        def look(value, schema, shape):
            if "$ref" in schema:
                urn, _, pointer = schema["$ref"].partition("#")
                schema = at(SCHEMAS[urn], [step for step in pointer.split("/") if step])
            for choice in schema.get("anyOf", []):
                if "$ref" in choice and value is not None:
                    look(value, choice, shape)
            if isinstance(value, list) and isinstance(schema.get("items"), dict):
                for inner in value:
                    look(inner, schema["items"], (*shape, "[]"))
            if not isinstance(value, dict):
                return
            needed = set(schema.get("required", []))
            needed |= {key for choice in schema.get("anyOf", []) for key in choice.get("required", [])}
            needed |= {key for has, keys in schema.get("dependentRequired", {}).items() if has in value for key in keys}
            for condition in (schema.get("then", {}), schema.get("else", {})):
                needed |= set(condition.get("required", []))
            if value.get("datapath") == "hosts":
                needed.discard("bottleneck")
            for key, inner in value.items():
                if key not in needed:
                    found.add((*shape, key))
                if key in schema.get("properties", {}):
                    look(inner, schema["properties"][key], (*shape, key))

        look(document, schema_of(document), ())
        return found

    def test_types_are_checked(self):
        for name, place, key in (
                ("faulty.json", (), "runs"),
                ("faulty.json", ("runs", 0), "policy"),
                ("faulty.json", ("runs", 0, "jobs", 0), "slowdown"),
                ("both.json", (), "optimal"),
                ("table.json", ("points", 0, "policies", 0, "slowdown"), "mean"),
                ("cluster.json", ("runs", 0, "jobs", 0), "hosts"),
                ("two.plan.json", ("jobs", 0), "name"),
                ("testbed-results.json", ("switches", 0, "ports", 0), "link_up")):
            for wrong in ({"a": 1}, None):
                self.refused(self.changed(name, place, lambda at: at.update({key: wrong})), SCHEMAS, (name, place, key))

    def test_times_are_whole_and_in_range(self):
        tried = 0
        for name, document in self.files.items():
            fields = set()
            for place, value in objects_of(document):
                for key, was in value.items():
                    if not key.endswith("_ns") or (shape_of(place), key) in fields:
                        continue
                    fields.add((shape_of(place), key))
                    tried += 1
                    for wrong in (-1, 1.5, 1 << 62, "1"):
                        given = [wrong] if isinstance(was, list) else wrong
                        self.refused(self.changed(name, place, lambda at: at.update({key: given})), SCHEMAS,
                                     (name, place, key, wrong))
        self.assertGreater(tried, 50)

    def test_shares_and_scores_are_in_range(self):
        for name, place, key, wrong in (
                ("faulty.json", ("runs", 0, "bottleneck"), "utilization", 1.01),
                ("faulty.json", ("runs", 0, "bottleneck"), "utilization", -0.01),
                ("faulty.json", ("runs", 0, "jobs", 0), "slowdown", -1),
                ("faulty.json", ("provenance",), "date", "yesterday"),
                ("faulty.json", ("provenance", "files", 0), "sha256", "0" * 63),
                ("both.json", (), "score", 1.01),
                ("both.json", ("links", 0, "jobs", 0), "rotation_rad", 7),
                ("two.plan.json", (), "tolerance", 0.6),
                ("two.plan.json", ("jobs", 0), "period_ns", 0)):
            damaged = self.changed(name, place, lambda at: at.update({key: wrong}))
            self.refused(damaged, SCHEMAS, (name, place, key, wrong))

    def test_another_version_is_another_format(self):
        for name, document in self.files.items():
            urn = schema_of(document)["$id"]
            for other in (document["schema"].replace("/1", "/2"), "other/1", None):
                self.refused({**document, "schema": other}, SCHEMAS, (name, other), urn)

    def test_unknown_fields_are_noticed_in_strict_mode_alone(self):
        tried = 0
        for name, document in self.files.items():
            shapes = set()
            for place, value in objects_of(document):
                shape = shape_of(place)
                if shape in shapes or is_map(place):
                    continue
                shapes.add(shape)
                tried += 1
                more = self.changed(name, place, lambda at: at.update({"future_field": 1}))
                self.refused(more, STRICT, (name, place))
                # The schema of a plan rejects unknown fields, as the reader of plans does. The reader does not
                # read the provenance, so the schema permits unknown fields in it.
                if document["schema"] == "mltcp.plan/1" and "provenance" not in place:
                    self.refused(more, SCHEMAS, (name, place))
                else:
                    self.assertEqual(errors(more, SCHEMAS), [], (name, place))
        self.assertGreater(tried, 50)

    def test_a_cure_is_given_where_something_is_wrong_and_only_there(self):
        if "doctor.json" not in self.files:
            self.skipTest("built without DPDK")
        for status, cure in (("ok", "do"), ("warn", ""), ("missing", "")):
            damaged = self.changed("doctor.json", ("checks", 0), lambda at: at.update(status=status, cure=cure))
            self.refused(damaged, SCHEMAS, status)

    def test_results_without_provenance_are_no_results(self):
        for name in ("faulty.json", "doctor.json", "switch.json"):
            if name in self.files:
                self.refused(self.changed(name, (), lambda at: at.pop("provenance")), SCHEMAS, name)


class Report(unittest.TestCase):
    """Tests that `mltcp report` reads the files that the schema allows, and rejects files of other versions."""

    def report(self, document):
        (FOLDER / "given.json").write_text(json.dumps(document))
        return mltcp("report", "given.json", "-o", "given.html", status=None)

    def test_other_versions_are_refused_in_one_line_with_the_cure(self):
        cures = {"mltcp.results/2": "use the mltcp that wrote the file", "other/1": "give a --json file of mltcp run, "}
        for schema, cure in cures.items():
            done = self.report({**WRITTEN["faulty.json"], "schema": schema})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(f'mltcp: given.json: schema is "{schema}", ', done.stderr)
            self.assertIn(cure, done.stderr)

    def test_unknown_fields_are_accepted_everywhere(self):
        document = copy.deepcopy(WRITTEN["racks.json"])
        for place, value in list(objects_of(document)):
            if not is_map(place):
                value["future_field"] = {"of": [1, "kind"]}
        done = self.report(document)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_results_file_makes_a_page(self):
        for name, document in WRITTEN.items():
            if document["schema"] == "mltcp.results/1" and "failure" not in document.get("sweep", {}):
                done = self.report(document)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)


class Page(unittest.TestCase):
    """Tests that the code in docs/reference/results-file.md works as described."""

    def setUp(self):
        self.text = (ROOT / "docs/reference/results-file.md").read_text(encoding="utf-8")
        self.folder = Path(tempfile.mkdtemp(dir=FOLDER))
        shutil.copy(FOLDER / "two.json", self.folder / "results.json")
        shutil.copy(FOLDER / "table.json", self.folder)

    def code(self, language, having):
        blocks = re.findall(rf"^```{language}\n(.*?)^```", self.text, re.M | re.S)
        blocks = [block for block in blocks if having in block]
        self.assertEqual(len(blocks), 1, f"blocks of {language} with {having}")
        return blocks[0]

    def run_words(self, *words, folder=None):
        environment = dict(os.environ, PATH=f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}")
        return subprocess.run(words, cwd=folder or self.folder, env=environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)

    def python(self, code):
        return self.run_words(sys.executable, "-c", code)

    def test_reading_in_python(self):
        done = self.python(self.code("python", "slowdown"))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 6 * 2, done.stdout)
        self.assertIn("mltcp+schedule vgg19-b 1.0", done.stdout)

    def test_validating(self):
        command = self.code("sh", "jsonschema").replace("python3", f"'{sys.executable}'", 1)
        command = command.replace("/usr/local/share/mltcp/schema", str(ROOT / "docs/schema"))
        for name in ("results.json", "table.json"):
            done = self.run_words("sh", "-c", command.replace("results.json", name))
            self.assertEqual(done.returncode, 0, done.stdout)
        document = json.loads((self.folder / "results.json").read_text())
        document["runs"][0]["jobs"][1]["mean_ns"] = -1
        (self.folder / "results.json").write_text(json.dumps(document))
        done = self.run_words("sh", "-c", command)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("mean_ns", done.stdout)

    def test_making_it_again_from_the_file_alone(self):
        done = self.python(self.code("python", "SOURCE_DATE_EPOCH"))
        self.assertEqual(done.returncode, 0, done.stdout)
        again = self.folder / "again"
        self.assertRegex(done.stdout, r"^SOURCE_DATE_EPOCH=\d+ mltcp run two-vgg19.toml .*--json two.json\n$")
        made = self.run_words("sh", "-c", done.stdout, folder=again)
        self.assertEqual(made.returncode, 0, made.stdout)
        self.assertEqual((again / "two.json").read_bytes(), (self.folder / "results.json").read_bytes())

    def test_files_that_lie_elsewhere_are_not_written_over(self):
        code = self.code("python", "SOURCE_DATE_EPOCH")
        document = json.loads((self.folder / "results.json").read_text())
        for path in ("../escaped.toml", str(self.folder / "escaped.toml")):
            document["provenance"]["files"][0]["path"] = path
            (self.folder / "results.json").write_text(json.dumps(document))
            done = self.python(code)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("lies elsewhere", done.stdout)
            self.assertFalse((self.folder / "escaped.toml").exists())

    def test_citing(self):
        done = self.python(self.code("python", "hashlib"))
        self.assertEqual(done.returncode, 0, done.stdout)
        document = json.loads((self.folder / "results.json").read_text())
        made = document["provenance"]
        for word in (f"mltcp {made['version']},", "by `mltcp run two-vgg19.toml ", made["files"][0]["sha256"],
                     hashlib.sha256((self.folder / "results.json").read_bytes()).hexdigest()):
            self.assertIn(word, done.stdout)

    def test_the_table_names_each_schema(self):
        for file in (ROOT / "docs/schema").glob("*.json"):
            schema = json.loads(file.read_text())
            self.assertIn(f"(../schema/{file.name})", self.text)
            if "const" in schema.get("properties", {}).get("schema", {}):
                self.assertIn(f"`{schema['properties']['schema']['const']}`", self.text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mltcp-schema-") as temporary:
        FOLDER = Path(temporary)
        WRITTEN = make_files()
        unittest.main()
