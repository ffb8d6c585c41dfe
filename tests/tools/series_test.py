"""Tests `mltcp run --series` and its reports. A run gives the same results with and without a series, the series agree
with the results, the number of rows is bounded, and pages stay small and can be used without a mouse.

Usage: series_test.py PROGRAM, where PROGRAM is the built mltcp. Tests that need a browser are skipped without
Chromium."""

import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/bin/mltcp"
CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
PATIENCE = 240  # time limit in s for one command, long enough for sanitizers on a busy machine

DUMBBELL = """
name = "pair"
iterations = 6
policies = ["fair", "static", "priority", "mltcp", "schedule", "mltcp+schedule"]
[bottleneck]
rate = "1 Gbps"
delay = "10 us"
buffer = "75 kB"
"""
JOB = '[[job]]\nname = "{}"\ncompute = "{}"\ncommunicate = "{}"\n'
PAIR = JOB.format("a", "6 ms", "500 kB") + "weight = 2.0\n" + JOB.format("b", "6 ms", "500 kB") + 'start = "1 ms"\nflows = 2\npriority = 1\n'
RACKS = """
iterations = 3
policies = ["fair", "mltcp", "schedule"]
[topology]
kind = "leaf-spine"
leaves = 3
spines = 1
hosts_per_leaf = 3
host_rate = "1 Gbps"
delay = "10 us"
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
compute = "2 ms"
communicate = "200 kB"
jitter = "100 us"
"""
FILES = {
    "pair.toml": DUMBBELL + PAIR,
    "marks.toml": DUMBBELL.replace('"75 kB"', '"75 kB"\necn = { kmin = "30 kB", kmax = "30 kB", pmax = 1.0 }')
                  .replace("name", 'cc = "dctcp"\nname', 1) + PAIR,
    # Hosts and a switch that sleep between polls, and so process packets late.
    "naps.toml": DUMBBELL.replace("[bottleneck]", '[host_model]\nlook = "50 us"\nlate = { least = "20 us", mean = "70 us" }\nswitch = { look = "50 us", late = { least = "45 us", mean = "65 us" } }\n[bottleneck]', 1)
                 .replace('"priority", ', "") + PAIR,
    "faults.toml": DUMBBELL.replace('"75 kB"', '"75 kB"\nfaults = { loss = 0.001, reordering = 0.01 }') + PAIR,
    "learned.toml": DUMBBELL.replace(', "schedule", "mltcp+schedule"', "") + '[mltcp]\niterations = "learned"\n' + PAIR,
    "racks.toml": RACKS,
    "flow.toml": DUMBBELL.replace('"priority", ', "").replace("iterations", 'datapath = "flow"\niterations', 1) + PAIR,
    "flow-racks.toml": RACKS.replace("iterations", 'datapath = "flow"\niterations', 1)
                       .replace('shared_buffer = "500 kB"\npfc = { xoff = "30 kB" }\n', "")
                       .replace('pattern = "all-reduce"\nsize =', "communicate ="),
    "long.toml": DUMBBELL.replace("iterations = 6", "iterations = 10000").replace(', "static", "priority"', "")
                 .replace(', "schedule", "mltcp+schedule"', "")
                 + JOB.format("a", "400 us", "20 kB") + JOB.format("b", "400 us", "20 kB") + 'start = "50 us"\n',
}
# A script that Chromium runs on a page. It counts the charts, and measures how keys and mouse wheel change the time
# axes.
DRIVE = """<script>
addEventListener("load", () => {
  const looked = document.getElementById("looked-into");
  const drawn = () => [...looked.querySelectorAll(".chart svg")].map((svg) => svg.innerHTML.length);
  const axis = () => [...looked.querySelectorAll("#explorer svg text")].map((text) => text.textContent).join(" ");
  const key = (key) => looked.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const seen = { drawn: drawn(), all: axis() };
  looked.focus();
  for (let n = 0; n < 3; ++n) key("+");
  seen.near = axis();
  key("ArrowRight");
  seen.moved = axis();
  key("0");
  seen.again = axis();
  const explorer = document.getElementById("explorer");
  explorer.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, clientX: 200, bubbles: true, cancelable: true }));
  seen.wheel = axis();
  key("0");
  const begun = performance.now();
  for (let n = 0; n < 10; ++n) key(n % 2 ? "-" : "+");
  seen.zoom_ms = (performance.now() - begun) / 10;
  seen.width = document.documentElement.scrollWidth;
  document.body.innerHTML = "";
  document.body.textContent = "FOUND" + JSON.stringify(seen) + "DNUOF";
});
</script></html>"""


class Series(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = Path(cls.scratch.name)
        for name, text in FILES.items():
            (cls.folder / name).write_text(text)
        cls.mltcp("run", "pair.toml", "--json", "pair.json", "--series", "pair.series.json", "--report", "at-once.html")
        cls.results = cls.read("pair.json")
        cls.series = cls.read("pair.series.json")

    @classmethod
    def run_program(cls, *words):
        return subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, timeout=PATIENCE)

    @classmethod
    def mltcp(cls, *words):
        done = cls.run_program(*words)
        if done.returncode != 0:
            raise AssertionError(f"mltcp {' '.join(words)}: {done.stderr}")
        return done.stdout

    @classmethod
    def read(cls, name):
        return json.loads((cls.folder / name).read_text())

    def refusal(self, *words):
        done = self.run_program(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def table(self, name):
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def test_results__are_the_same_with_and_without(self):
        for file in ("pair.toml", "marks.toml", "naps.toml", "faults.toml", "learned.toml", "racks.toml", "flow.toml",
                     "flow-racks.toml"):
            with self.subTest(file=file):
                self.mltcp("run", file, "--json", "without.json")
                # no interval of the run is a multiple of 37 us
                for interval in ((), ("--series-interval", "37us")):
                    self.mltcp("run", file, "--json", "with.json", "--series", "s.json", *interval)
                    texts = [(self.folder / name).read_text().split('"provenance"')[0]
                             for name in ("without.json", "with.json")]
                    self.assertEqual(*texts)
                    self.assertTrue(all(len(run["time_ns"]) > 10 for run in self.read("s.json")["runs"]))

    def test_last_row__has_the_results_totals(self):
        self.mltcp("run", "marks.toml", "--json", "marks.json", "--series", "marks.series.json")
        for results, series in ((self.results, self.series), (self.read("marks.json"), self.read("marks.series.json"))):
            self.assertEqual(len(results["runs"]), len(series["runs"]))
            for run, of in zip(results["runs"], series["runs"]):
                self.assertEqual((run["policy"], run["seed"], run["cc"]), (of["policy"], of["seed"], of["cc"]))
                self.assertEqual([link["link"] for link in of["links"]], ["bottleneck"])
                link = of["links"][0]
                self.assertEqual(link["dropped_packets"][-1], run["bottleneck"]["dropped_packets"])
                self.assertEqual(link["marked_packets"][-1], run["bottleneck"]["ecn_marked_packets"])
                # with priorities, the results have the maximum of one class and the series have the sum of all classes
                if run["policy"] != "priority":
                    self.assertLessEqual(max(link["queue_most_bytes"]), run["bottleneck"]["max_queue_bytes"])
                self.assertGreater(max(link["queue_most_bytes"]), 0)
                # A series counts a job's packets until the last job ends. The results count them only until the job
                # itself ends.
                for job in run["jobs"]:
                    again = sum(c["retransmitted_packets"][-1] for c in of["connections"] if c["job"] == job["name"])
                    self.assertGreaterEqual(again, job["retransmitted_packets"])
        self.assertGreater(sum(run["links"][0]["dropped_packets"][-1] for run in self.series["runs"]), 0)

    def test_states__are_those_of_the_jobs(self):
        runs = {run["policy"]: run for run in self.series["runs"]}
        self.assertEqual([(c["job"], c["worker"], c["peer"], c["flow"]) for c in runs["fair"]["connections"]],
                         [("a", 0, 0, 0), ("b", 0, 0, 0), ("b", 0, 0, 1)])
        for connection in runs["fair"]["connections"]:
            self.assertEqual(set(connection["gain"]), {1})
        weights = {c["job"]: max(c["gain"]) for c in runs["static"]["connections"]}
        self.assertGreater(weights["a"], weights["b"])
        for connection in runs["mltcp"]["connections"]:
            gains = [(ratio, gain) for ratio, gain in zip(connection["bytes_ratio"], connection["gain"])]
            begun = [pair for pair, n in zip(gains, connection["iteration"]) if n >= 0]
            # the gain is 1 while the transport takes the bursts for short ones
            grown = [(ratio, gain) for ratio, gain in begun if gain != 1]
            for ratio, gain in grown:
                self.assertAlmostEqual(gain, 1.75 * ratio + 0.25)
            self.assertGreater(len({ratio for ratio, _ in grown}), 20)
            self.assertGreater(len(grown), 0.9 * len(begun))
            # a series consists of samples, so its maximum can be below 1
            self.assertGreater(max(connection["bytes_ratio"]), 0.95)
            self.assertEqual(connection["iteration"][0], -1 if connection["job"] == "b" else 0)  # job b has not started
            self.assertGreaterEqual(max(connection["iteration"]), 5)
            self.assertEqual(connection["iteration"], sorted(connection["iteration"]))
            self.assertEqual(connection["sent_bytes"], sorted(connection["sent_bytes"]))
            self.assertGreater(min(rtt for rtt in connection["rtt_ns"] if rtt), 40_000)
            self.assertGreater(max(connection["cwnd_bytes"]), 10_000)

    def test_interval__is_a_200th_of_an_iteration_or_as_asked(self):
        alone = sorted(job["isolated_ns"] for job in self.results["runs"][0]["jobs"])[1]
        for run in self.series["runs"]:
            self.assertEqual(run["interval_ns"], alone // 200)
            steps = {b - a for a, b in zip(run["time_ns"], run["time_ns"][1:-1])}
            self.assertEqual(steps, {alone // 200})
            self.assertEqual(run["time_ns"][0], 0)
        self.mltcp("run", "pair.toml", "--policy", "fair", "--series", "s.json", "--series-interval", "1ms")
        self.assertEqual(self.read("s.json")["runs"][0]["interval_ns"], 1_000_000)

    def test_csv__holds_the_same_in_columns_of_one_type(self):
        self.assertEqual(self.mltcp("run", "pair.toml", "--series", "t.csv").count("t.connections.csv"), 0)
        rows = self.table("t.connections.csv")
        texts = {"policy", "job"}
        reals = {"cwnd_bytes", "cwnd_least_bytes", "cwnd_most_bytes", "gain", "bytes_ratio"}
        for row in rows:
            for column, cell in row.items():
                if column in reals:
                    self.assertRegex(cell, r"^-?\d+\.\d+(e[+-]\d+)?$|^-?\d+(\.\d+)?e[+-]\d+$", column)
                elif column not in texts:
                    self.assertRegex(cell, r"^-?\d+$", column)
        mine = [row for row in rows if row["policy"] == "mltcp" and row["job"] == "b" and row["flow"] == "1"]
        of = next(run for run in self.series["runs"] if run["policy"] == "mltcp")
        connection = next(c for c in of["connections"] if (c["job"], c["flow"]) == ("b", 1))
        self.assertEqual([int(row["time_ns"]) for row in mine], of["time_ns"])
        for column in ("cwnd_bytes", "rtt_ns", "bytes_ratio", "sent_bytes", "iteration"):
            self.assertEqual([float(row[column]) for row in mine], connection[column], column)
        links = self.table("t.links.csv")
        self.assertEqual({row["policy"] for row in links}, {run["policy"] for run in self.series["runs"]})
        sent = sum(int(row["rate_bps"]) * int(of["interval_ns"]) for row in links if row["policy"] == "mltcp") / 8e9
        self.assertAlmostEqual(sent / of["links"][0]["sent_bytes"][-1], 1, delta=0.01)

    def test_flow__leaves_empty_what_it_does_not_know(self):
        self.mltcp("run", "flow.toml", "--series", "f.csv")
        rows = self.table("f.connections.csv")
        self.assertTrue(all(row["cwnd_bytes"] == "" and row["rtt_ns"] == "" for row in rows))
        self.assertGreater(max(float(row["bytes_ratio"]) for row in rows), 0.9)
        self.assertGreater(max(int(row["rate_bps"]) for row in rows), 0.8e9)
        self.assertTrue(all(row["queue_bytes"] == "" for row in self.table("f.links.csv")))

    def test_ranks__have_a_series_for_each_end(self):
        self.mltcp("run", "racks.toml", "--policy", "mltcp", "--series", "r.json")
        run = self.read("r.json")["runs"][0]
        ends = {(c["worker"], c["peer"]) for c in run["connections"] if c["job"] == "collective"}
        self.assertEqual(ends, {(0, 1), (1, 0)})
        self.assertTrue(all(max(c["sent_bytes"]) > 0 for c in run["connections"]))
        self.assertGreater(len(run["links"]), 2)
        self.assertTrue(all(link["sent_bytes"][-1] > 0 for link in run["links"]))

    def test_trace__has_the_iterations_and_counters(self):
        self.mltcp("run", "pair.toml", "--json", "pair.json", "--series", "pair.trace.json")
        events = self.read("pair.trace.json")["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(slices), sum(len(job["iteration_ns"]) for run in self.results["runs"] for job in run["jobs"]))
        first = self.results["runs"][0]["jobs"][0]
        self.assertAlmostEqual(slices[0]["dur"] * 1000, first["iteration_ns"][0], places=3)
        names = {event["name"] for event in events if event["ph"] == "C"}
        self.assertLessEqual({"a cwnd_bytes", "b 0.1 bytes_ratio", "bottleneck queue_bytes", "bottleneck rate_bps"}, names)

    def test_bad_input__gets_one_line(self):
        self.assertIn('the format of "s.txt" is not known; let its name end with .json',
                      self.refusal("run", "pair.toml", "--series", "s.txt"))
        self.assertIn("--series: the name is empty", self.refusal("run", "pair.toml", "--series", ""))
        self.assertIn("--series-interval: needs a file of series", self.refusal("run", "pair.toml", "--series-interval", "1ms"))
        self.assertIn("--series-interval is 0", self.refusal("run", "pair.toml", "--series", "s.json", "--series-interval", "0ms"))
        self.assertIn("a packet takes 12", self.refusal("run", "pair.toml", "--series", "s.json", "--series-interval", "1us"))
        self.assertIn("--series-interval", self.refusal("run", "pair.toml", "--series", "s.json", "--series-interval", "x"))
        self.assertIn("missing/s.json", self.refusal("run", "pair.toml", "--series", "missing/s.json"))
        self.assertIn("--series", self.refusal("run", "pair.toml", "--series", "s.json", "--json", "s.json"))
        # A series in CSV consists of two files. One of them would have the same name as the file of the results.
        self.assertIn("--series", self.refusal("run", "pair.toml", "--series", "s.csv", "--json", "s.links.csv"))

    def test_report_of_a_run__is_no_other_output(self):
        for words in (("--json", "x", "--report", "x"), ("--series", "x.json", "--report", "x.json"),
                      ("--pcap", "x,size=1MB", "--policy", "fair", "--report", "x"), ("--json", "-", "--report", "-"),
                      ("--report", ""), ("--report", "missing/page.html")):
            self.assertIn("missing" if "missing/page.html" in words else "--", self.refusal("run", "pair.toml", *words))

    def test_report__refuses_what_is_not_of_the_run(self):
        self.mltcp("run", "marks.toml", "--policy", "fair", "--series", "other.json")
        self.assertIn("none of its runs is in pair.json", self.refusal("report", "pair.json", "--series", "other.json"))
        self.assertIn("these are series; give the results", self.refusal("report", "pair.series.json"))
        self.assertIn("--series: needs a page of one file",
                      self.refusal("report", "pair.json", "--series", "pair.series.json", "--svg", "x.svg"))
        (self.folder / "cut.json").write_text((self.folder / "pair.series.json").read_text()[:5000])
        self.assertIn("cut.json", self.refusal("report", "pair.json", "--series", "cut.json"))

    def test_report__has_panels_of_the_series_and_loads_nothing(self):
        self.mltcp("report", "pair.json", "--series", "pair.series.json", "-o", "page.html")
        page = (self.folder / "page.html").read_text()
        # at-once.html is the file that `mltcp run --report` has written
        self.assertEqual((self.folder / "at-once.html").read_text(), page)
        for panel in ("queue", "cwnd", "gain", "ratio", "rtt"):
            self.assertIn(f'data-panel="{panel}"', page)
        self.assertIsNone(re.search(r'(src|href)="(?!data:)', page))
        self.mltcp("report", "pair.json", "-o", "plain.html")
        self.assertNotIn("data-panel=", (self.folder / "plain.html").read_text())

    def drive(self, name):
        page = self.folder / name
        page.write_text(page.read_text().replace("</html>", DRIVE))
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/profile",
             "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=PATIENCE)
        found = re.search("FOUND(\\{.*\\})DNUOF", done.stdout)
        self.assertTrue(found, "the page reported nothing: " + done.stdout[-500:] + done.stderr[-500:])
        return json.loads(found[1].replace("&amp;", "&"))

    def check_driven(self, seen):
        self.assertEqual(len(seen["drawn"]), 6)
        self.assertTrue(all(length > 1000 for length in seen["drawn"]), seen["drawn"])
        self.assertNotEqual(seen["near"], seen["all"])
        self.assertNotEqual(seen["moved"], seen["near"])
        self.assertEqual(seen["again"], seen["all"])
        self.assertNotEqual(seen["wheel"], seen["all"])

    def test_page__is_looked_into_by_keys_and_wheel(self):
        if CHROMIUM is None:
            reason = "there is no Chromium; install the package chromium"
            print(f"series_test.py {self.id()}: Skipped\n{reason}", flush=True)  # tools/test looks for this form
            self.skipTest(reason)
        self.mltcp("report", "pair.json", "--series", "pair.series.json", "-o", "driven.html")
        self.check_driven(self.drive("driven.html"))

    def test_ten_thousand_iterations__have_bounded_rows_and_a_small_page(self):
        self.mltcp("run", "long.toml", "--json", "long.json", "--series", "long.series.json")
        for run in self.read("long.series.json")["runs"]:
            entities = len(run["connections"]) + len(run["links"])
            self.assertLessEqual(len(run["time_ns"]), 100_000 / entities + 2)
            self.assertGreater(len(run["time_ns"]), 40_000 / entities)
            self.assertGreater(run["interval_ns"], run["sampled_every_ns"])
        self.mltcp("report", "long.json", "--series", "long.series.json", "-o", "long.html")
        self.assertLess((self.folder / "long.html").stat().st_size, 10_000_000)
        if CHROMIUM is not None:
            size = (self.folder / "long.html").stat().st_size
            seen = self.drive("long.html")
            self.check_driven(seen)
            print(f"10,000 iterations: a page of {size / 1e6:.1f} MB; a step of the zoom redraws all charts in {seen['zoom_ms']:.0f} ms")


if __name__ == "__main__":
    unittest.main()
