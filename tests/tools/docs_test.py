"""Tests tools/docs with a toy project whose program is a script. Usage: docs_test.py TOOLS/DOCS"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(sys.argv.pop(1)).resolve()

# Prints a summary of two policies, and writes results to the file after --json. The second mean is read from the file
# "mean".
PROGRAM = r'''#!/bin/sh
[ "$1" = fail ] && { echo "mltcp: no such thing" >&2; exit 1; }
echo run >>"$(dirname "$0")/../count"
mean=$(cat "$(dirname "$0")/../mean")
echo "policy  mean ms"
echo "fair     150.00"
echo "mltcp    $mean.00"
echo "last line"
while [ $# -gt 0 ]; do
  [ "$1" = --json ] && cat >"$2" <<JSON
{"runs": [{"policy": "fair", "jobs": [{"name": "a", "mean_ns": 150e6, "isolated_ns": 100e6, "interleaved_from": null}]},
          {"policy": "mltcp", "jobs": [{"name": "a", "mean_ns": ${mean}e6, "isolated_ns": 100e6, "interleaved_from": 7,
           "compute_ns": 50e6, "iteration_ns": [120e6, 240e6], "iteration_compute_ns": [50e6, 150e6]}]}]}
JSON
  shift
done
exit 0
'''


class Docs(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="docs-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("tools", "docs", "build/bin", "bench/results"):
            (self.folder / name).mkdir(parents=True)
        shutil.copy(SCRIPT, self.folder / "tools/docs")
        program = self.folder / "build/bin/mltcp"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        (self.folder / "build/mean").write_text("104")
        (self.folder / "x.toml").write_text('name = "x"\n')
        (self.folder / "README.md").write_text("# Nothing\n")

    def page(self, text):
        (self.folder / "docs/page.md").write_text(text)

    def text(self):
        return (self.folder / "docs/page.md").read_text()

    def docs(self, *words):
        done = subprocess.run([sys.executable, str(self.folder / "tools/docs"), *words], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder, check=False)
        return done.returncode, done.stdout

    def runs(self):
        return len((self.folder / "build/count").read_text().split())

    def mean(self, value):
        """Changes the program and the mean that it prints, so that stored results are no longer valid."""
        (self.folder / "build/mean").write_text(value)
        program = self.folder / "build/bin/mltcp"
        program.write_text(PROGRAM + f"# {value}\n")

    ALL = "```\n$ mltcp run x.toml\npolicy  mean ms\nfair     150.00\nmltcp    104.00\nlast line\n```\n"

    def test_a_transcript_that_is_true_passes(self):
        self.page(self.ALL)
        status, output = self.docs("--check")
        self.assertEqual(status, 0, output)
        self.assertIn("1 outputs and numbers of 2 pages compared", output)

    def test_some_iterations_are_compared_with_what_the_job_computed_in_them(self):
        self.page('<!-- let x = mltcp run x.toml -->\n1.20<!-- = x: over("mltcp", "a", 0, 1) --> and '
                  '1.20<!-- = x: over("mltcp", "a", 0, 2) --> and 1.20<!-- = x: over("mltcp", "a", 1, 2) -->\n')
        status, output = self.docs("--check")
        self.assertEqual(status, 0, output)
        self.assertIn("3 outputs and numbers", output)

    def test_only_of_what_is_not_there_is_refused(self):
        self.page(self.ALL)
        status, output = self.docs("--check", "--only", "nosuch")
        self.assertEqual(status, 2)
        self.assertIn('--only: no command has "nosuch" in it; --list shows them', output)

    def test_a_transcript_may_show_a_failure(self):
        self.page("```\n$ mltcp fail\nmltcp: no such thing\n```\n")
        status, output = self.docs("--check")
        self.assertEqual(status, 0, output)
        self.page("```\n$ mltcp fail\nmltcp: no such place\n```\n")
        status, output = self.docs("--check")
        self.assertEqual(status, 1)
        self.assertIn('docs/page.md:3: "mltcp fail" failed with status 1: mltcp: no such thing', output)

    def test_a_transcript_that_is_stale_fails_and_shows_the_line(self):
        self.page(self.ALL.replace("104.00", "103.00"))
        status, output = self.docs("--check")
        self.assertEqual(status, 1)
        self.assertIn("docs/page.md:3: differs: mltcp run x.toml", output)
        self.assertIn("-mltcp    103.00", output)
        self.assertIn("+mltcp    104.00", output)

    def test_lines_may_be_left_out_where_three_dots_stand(self):
        self.page("```\n$ mltcp run x.toml\n...\nmltcp    104.00\n...\n```\n")
        self.assertEqual(self.docs("--check")[0], 0)
        # fails, because the output has further lines and the page has no "..." for them
        self.page("```\n$ mltcp run x.toml\n...\nmltcp    104.00\n```\n")
        self.assertEqual(self.docs("--check")[0], 1)

    def test_write_keeps_what_is_left_out(self):
        self.page("```\n$ mltcp run x.toml\n...\nmltcp     99.00\n...\n```\nbehind\n")
        status, output = self.docs("--write")
        self.assertEqual(status, 0, output)
        self.assertEqual(self.text(), "```\n$ mltcp run x.toml\n...\nmltcp    104.00\n...\n```\nbehind\n")

    def test_a_number_in_the_text_is_compared_with_as_many_digits_as_it_has(self):
        self.page('<!-- let r = mltcp run x.toml -->\nIt takes 1.0<!-- = r: slow_down("mltcp") -->, or 4%'
                  '<!-- = r: 100 * slow_down("mltcp") - 100 -->, from iteration 7<!-- = r: interleaved("mltcp") --> on.\n')
        status, output = self.docs("--check")
        self.assertEqual(status, 0, output)
        self.assertIn("3 outputs and numbers", output)
        self.mean("111")
        status, output = self.docs("--check")
        self.assertEqual(status, 1)
        self.assertIn("2 differ", output)
        self.docs("--write")
        self.assertIn('takes 1.1<!-- = r: slow_down("mltcp") -->, or 11%<!-- =', self.text())
        self.assertEqual(self.docs("--check")[0], 0)

    def test_what_is_made_by_a_command_is_replaced(self):
        self.page("before\n<!-- made by: mltcp run x.toml -->\nold\n<!-- end -->\nbehind\n")
        self.assertEqual(self.docs("--check")[0], 1)
        self.docs("--write")
        self.assertEqual(self.text(), "before\n<!-- made by: mltcp run x.toml -->\npolicy  mean ms\nfair     150.00\n"
                                      "mltcp    104.00\nlast line\n<!-- end -->\nbehind\n")

    def test_cells_of_a_table_are_found_by_their_columns(self):
        (self.folder / "table").write_text("| case | policy | mean | gain | gain |\n|---|---|---|---|---|\n"
                                           "| a | fair | 1.50 ±0.1 | - | - |\n| a | mltcp | **1.25** | 1.2 | 1.3 |\n")
        self.page('<!-- let t = cat table -->\n1.25<!-- = t: cell("mean", "case=a", "policy=mltcp") --> '
                  '1.3<!-- = t: cell("gain 2", "policy=mltcp") --> 1.50<!-- = t: max(cells("mean")) -->\n')
        status, output = self.docs("--check")
        self.assertEqual(status, 0, output)
        self.page('<!-- let t = cat table -->\n1.25<!-- = t: cell("mean", "case=a") -->\n')
        status, output = self.docs("--check")
        self.assertEqual(status, 1)
        self.assertIn("2 rows of the table fit", output)

    def test_a_picture_is_what_its_command_prints(self):
        self.page("<!-- picture docs/a.svg: mltcp run x.toml -->\n![A](a.svg)\n")
        status, output = self.docs("--check")
        self.assertEqual(status, 1, output)
        self.assertIn("a.svg is another picture", output)
        self.assertEqual(self.docs("--write")[0], 0)
        self.assertIn("mltcp    104.00", (self.folder / "docs/a.svg").read_text())
        self.assertEqual(self.docs("--check")[0], 0)
        self.mean("105")
        self.assertEqual(self.docs("--check")[0], 1)
        self.assertIn("104.00", (self.folder / "docs/a.svg").read_text())

    def test_what_is_slow_waits_for_all(self):
        self.page("<!-- slow -->\n" + self.ALL.replace("104.00", "103.00"))
        status, output = self.docs("--check")
        self.assertEqual(status, 0, output)
        self.assertIn("1 slow ones left out", output)
        self.assertEqual(self.docs("--check", "--all")[0], 1)

    def test_one_command_runs_once_and_anew_with_another_program(self):
        self.page(self.ALL + '<!-- let r = mltcp run x.toml -->\n1.04<!-- = r: slow_down("mltcp") -->\n')
        self.assertEqual(self.docs("--check")[0], 0)
        self.assertEqual(self.runs(), 1)
        self.docs("--check")
        self.assertEqual(self.runs(), 1)
        self.docs("--check", "--fresh")
        self.assertEqual(self.runs(), 2)
        (self.folder / "x.toml").write_text('name = "y"\n')
        self.docs("--check")
        self.assertEqual(self.runs(), 3)
        self.mean("105")
        self.assertEqual(self.docs("--check")[0], 1)
        self.assertEqual(self.runs(), 4)

    def test_a_number_that_nothing_stands_for_fails(self):
        for text in ("It takes 1.07 on average.\n", "MLTCP is 3% faster.\n", "Apart from iteration 53 on.\n",
                     "```\nfair  1.224\n```\n"):
            self.page(text)
            status, output = self.docs("--check")
            self.assertEqual(status, 1, text)
            self.assertIn("have no source", output)

    def test_what_is_given_or_measured_or_code_needs_no_command(self):
        for text in ("F(x) = 1.75<!-- given --> x, within 2%<!-- given -->.\n", "<!-- given -->\n1.25 and\n1.33.\n",
                     "<!-- given: -->\n1.25\n\n1.33\n<!-- end -->\n", "```toml\npmax = 0.10\n```\n", "Say `0.10`.\n",
                     "<!-- measured 2026-01-31, a machine, by hand: x -->\n| 1.25 |\n<!-- end -->\n", "DPDK 22.11, 10.1145/1\n"):
            self.page(text)
            status, output = self.docs("--check")
            self.assertEqual(status, 0, output)
        self.page("<!-- given -->\n1.25\n\n1.33\n")  # the mark covers only the next paragraph, so 1.33 has no source
        self.assertEqual(self.docs("--check")[0], 1)

    def test_measured_gets_its_output_with_date_and_machine(self):
        self.page("<!-- measured 2020-01-01, elsewhere: mltcp run x.toml -->\n```\n$ mltcp run x.toml\n...\nmltcp    99.00\n...\n```\n<!-- end -->\n"
                  "<!-- measured 2020-01-01, elsewhere, by hand: false -->\nas it was\n<!-- end -->\n")
        status, output = self.docs("--measured")
        self.assertEqual(status, 0, output)
        lines = self.text().split("\n")
        self.assertRegex(lines[0], r"^<!-- measured 20[2-9]\d-\d\d-\d\d, .+ cores: mltcp run x.toml -->$")
        self.assertNotIn("2020", lines[0])
        self.assertEqual(lines[3:6], ["...", "mltcp    104.00", "..."])
        self.assertIn("2020-01-01, elsewhere, by hand: false -->\nas it was\n", self.text())

    def test_real_time_is_not_compared(self):
        self.page("```\n$ sudo tools/testbed x\n1\n```\n")
        status, output = self.docs("--check")
        self.assertEqual(status, 2)
        self.assertIn("docs/page.md:3", output)
        self.assertIn("runs in real time", output)

    def test_a_command_that_fails_is_named_and_the_others_go_on(self):
        self.page("```\n$ mltcp fail\nx\n```\n" + self.ALL)
        before = self.text()
        status, output = self.docs("--check")
        self.assertEqual(status, 1)
        self.assertIn('docs/page.md:3: "mltcp fail" failed with status 1: mltcp: no such thing', output)
        self.assertIn("2 outputs and numbers", output)
        self.docs("--write")
        self.assertEqual(self.text(), before)

    def test_wrong_comments_are_told_with_their_line(self):
        for text, expected in (("<!-- what -->\n", 'unknown comment "what"'),
                               ("\n<!-- made by: true -->\n", "this block has no end"),
                               ("1.0<!-- = r: 1 -->\n", 'no run "r"'),
                               ("about <!-- = r: 1 -->\n", "must be directly after its number"),
                               ("<!-- let a = true -->\n<!-- let a = true -->\n", '"a" is defined twice'),
                               ("<!-- slow -->\ntext\n", "must be before a transcript"),
                               ("```\nno end\n", "this code block has no end")):
            self.page(text)
            status, output = self.docs("--check")
            self.assertEqual(status, 2, text)
            self.assertIn(expected, output)
            self.assertRegex(output, r"^tools/docs: docs/page.md:\d+: ")

    def test_an_expression_that_asks_for_what_is_not_there_says_what_is(self):
        for expression, expected in (('slow_down("swift")', 'no policy "swift"'), ("nonsense()", "NameError"),
                                     ('interleaved("fair")', "not all jobs interleave"), ('line(r"x (\\d)")', "nothing like"),
                                     ('slow_down("mltcp", "b")', 'no job "b"')):
            self.page(f"<!-- let r = mltcp run x.toml -->\n1.0<!-- = r: {expression} -->\n")
            status, output = self.docs("--check")
            self.assertEqual(status, 1, expression)
            self.assertIn(expected, output)

    def test_list_tells_what_is_not_compared(self):
        self.page(self.ALL + "<!-- measured 2026-01-31, a machine: bench -->\n1.5\n<!-- end -->\n3% more\n")
        status, output = self.docs("--list")
        self.assertEqual(status, 0)
        self.assertIn("docs/page.md: mltcp run x.toml", output)
        self.assertIn("measured 2026-01-31 on a machine: bench", output)
        self.assertIn("no source for 3%", output)

    def test_commands_run_where_they_can_write(self):
        self.page("```\n$ echo 5 >left\n$ cat left\n5\n```\n")
        status, output = self.docs("--check")
        self.assertEqual(status, 0, output)
        self.assertFalse((self.folder / "left").exists())

    def test_a_page_or_program_that_is_not_there(self):
        self.assertIn("no page", self.docs("--check", "nothing.md")[1])
        os.remove(self.folder / "build/bin/mltcp")
        status, output = self.docs("--check")
        self.assertEqual(status, 2)
        self.assertIn("build it with tools/build", output)


if __name__ == "__main__":
    unittest.main()
