"""Tests results files as lists of dicts, and as data frames if pandas is installed."""

import json
import tempfile
import unittest
from pathlib import Path

import mltcp

try:
    import pandas
except ImportError:
    pandas = None

DATA = {"schema": "mltcp.results/1", "experiment": "two", "runs": [
    {"policy": policy, "cc": "reno", "datapath": "sim", "seed": 1, "jobs": [
        {"name": name, "isolated_ns": 100, "start_ns": [0, 150], "iteration_ns": [150, 110], "mean_ns": 130,
         "bytes": 5, "phases": [{"x": 1}]} for name in ("a", "b")]} for policy in ("fair", "mltcp")]}


class ResultsTest(unittest.TestCase):
    def write(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "r.json"
        file.write_text(text)
        return file

    def test_rows(self):
        results = mltcp.load_results(self.write(json.dumps(DATA)))
        self.assertEqual(results.experiment, "two")
        jobs = results.jobs()
        self.assertEqual([(row["policy"], row["job"]) for row in jobs],
                         [("fair", "a"), ("fair", "b"), ("mltcp", "a"), ("mltcp", "b")])
        self.assertEqual(jobs[0]["mean_ns"], 130)
        self.assertNotIn("phases", jobs[0])
        iterations = results.iterations()
        self.assertEqual(len(iterations), 8)
        self.assertEqual(iterations[1], {"experiment": "two", "policy": "fair", "cc": "reno", "datapath": "sim",
                                         "seed": 1, "job": "a", "iteration": 1, "start_ns": 150, "iteration_ns": 110,
                                         "isolated_ns": 100})

    def test_what_is_none_is_refused(self):
        for text, why in (("{", "JSON"), ('{"schema": "mltcp.schedule/1"}', "mltcp.schedule/1"), ("[1]", "schema")):
            with self.assertRaisesRegex(ValueError, why):
                mltcp.load_results(self.write(text))
        with self.assertRaises(OSError):
            mltcp.load_results("/nowhere/r.json")

    @unittest.skipUnless(pandas, "pandas is missing")
    def test_frames(self):
        results = mltcp.Results(DATA)
        frame = results.iterations_frame()
        self.assertEqual(frame.groupby("policy")["iteration_ns"].mean()["fair"], 130)
        self.assertEqual(len(results.jobs_frame()), 4)

    @unittest.skipIf(pandas, "pandas is there")
    def test_without_pandas_the_cure_is_told(self):
        with self.assertRaisesRegex(ImportError, "pip install pandas"):
            mltcp.Results(DATA).jobs_frame()


if __name__ == "__main__":
    unittest.main()
