"""Tests the layout of `mltcp report` pages in a browser: nothing is cut off at the width of a phone, laptop or monitor.

Usage: report_layout_test.py PROGRAM, where PROGRAM is the built mltcp. The exit status is 77 if Chromium is missing.

The browser loads each page in frames of the tested widths, because a headless window has a minimum width. A script
measures by how much the page exceeds its window, and by how much each table exceeds its box."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
if CHROMIUM is None:
    print("report_layout_test.py: Skipped\nthere is no Chromium; install the package chromium")
    sys.exit(77)

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build/bin/mltcp"
PATIENCE = 240  # time limit in s for one command, long enough for sanitizers on a busy machine
WIDTHS = (390, 1400, 1600)

PAIR = """
name = "pair"
iterations = 4
policies = ["fair", "static", "mltcp"]
[bottleneck]
rate = "1 Gbps"
buffer = "75 kB"
"""
JOB = '[[job]]\nname = "{}"\ncompute = "6 ms"\ncommunicate = "500 kB"\n'
GRID = """
experiment = "pair.toml"
seeds = 2
[vary]
"bottleneck.buffer" = ["75 kB", "150 kB"]
"bottleneck.delay" = ["10 us", "50 us"]
"bottleneck.rate" = ["1 Gbps"]
"job[*].start_jitter" = ["2 ms"]
"job[*].flows" = [1, 2]
[[case]]
name = "drops"
[[case]]
name = "marks"
set = { "bottleneck.ecn" = { kmin = "30 kB" } }
"""

MEASURE = """<script>
addEventListener("load", () => {
  const boxes = [...document.querySelectorAll(".wide")].map((box) => ({
    caption: (box.querySelector("caption") || box).textContent.slice(0, 40),
    inside: box.clientWidth, table: box.scrollWidth,
    scrolls: getComputedStyle(box).overflowX === "auto", shadows: getComputedStyle(box).backgroundAttachment,
  }));
  const root = document.documentElement;
  parent.postMessage(JSON.stringify({ window: innerWidth, page: root.scrollWidth, boxes }), "*");
});
</script></html>"""
FRAMES = """<!DOCTYPE html><body style="margin:0"><pre id="measured"></pre><script>
addEventListener("message", (event) => {{ document.getElementById("measured").textContent += "FOUND" + event.data + "DNUOF"; }});
</script>{}</body>"""
FRAME = '<iframe src="page.html" style="border:0;width:{}px;height:900px"></iframe>'


class Layout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = Path(cls.scratch.name)
        (cls.folder / "pair.toml").write_text(PAIR + JOB.format("a") + JOB.format("b"))
        (cls.folder / "many.toml").write_text(PAIR + "".join(JOB.format(f"job-{n}") for n in range(12)))
        (cls.folder / "grid.toml").write_text(GRID)
        cls.mltcp("run", "pair.toml", "--json", "a.json")
        cls.mltcp("run", "pair.toml", "--cc", "cubic", "--json", "b.json")
        cls.mltcp("run", "many.toml", "--json", "many.json")
        cls.mltcp("sweep", "grid.toml", "-o", "runs", "--json", "sweep.json")
        cls.mltcp("cluster", str(ROOT / "examples/cluster-24.toml"), "--level", "flow", "--json", "cluster.json")

    @classmethod
    def mltcp(cls, *words):
        done = subprocess.run([PROGRAM, *words], cwd=cls.folder, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise AssertionError(f"mltcp {' '.join(words)}: {done.stderr}")

    def measured(self, *results):
        """Returns the measurements of a report's page, one for each width."""
        self.mltcp("report", *results, "-o", "page.html")
        page = self.folder / "page.html"
        page.write_text(page.read_text().replace("</html>", MEASURE))
        (self.folder / "frames.html").write_text(FRAMES.format("".join(FRAME.format(width) for width in WIDTHS)))
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/profile",
             "--window-size=1700,1000", "--virtual-time-budget=5000", "--dump-dom", (self.folder / "frames.html").as_uri()],
            capture_output=True, text=True, timeout=PATIENCE)
        found = [json.loads(one) for one in re.findall("FOUND(\\{.*?\\})DNUOF", done.stdout)]
        self.assertEqual(sorted(seen["window"] for seen in found), sorted(WIDTHS),
                         "not each frame has reported: " + done.stdout[-500:] + done.stderr[-500:])
        return {seen["window"]: seen for seen in found}

    def check(self, *results):
        for width, seen in self.measured(*results).items():
            with self.subTest(width=width):
                self.assertTrue(seen["boxes"])
                self.assertLessEqual(seen["page"], width, "the page is wider than its window")
                for box in seen["boxes"]:
                    self.assertLessEqual(box["table"], box["inside"], box)
                    # Tables wider than their box can be scrolled, and a shadow shows this.
                    self.assertTrue(box["scrolls"] and box["shadows"].startswith("local, local, scroll"), box)

    def test_sweep__all_columns_are_in_view(self):
        self.check("sweep.json")

    def test_comparison(self):
        self.check("a.json", "b.json")

    def test_cluster(self):
        self.check("cluster.json")

    def test_many_jobs(self):
        self.check("many.json")


if __name__ == "__main__":
    unittest.main()
