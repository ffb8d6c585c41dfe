"""Tests tools/mutate: its mutants, and a whole run with a toy project. Usage: mutate_test.py TOOLS/MUTATE"""

import importlib.machinery
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(sys.argv.pop(1)).resolve()
ROOT = SCRIPT.parent.parent
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutate", str(SCRIPT))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)


def results(text, operator=None):
    """Returns the text after each mutation by `operator`, or by any operator if it is None."""
    return sorted(mutate.applied(text, m) for m in mutate.Source("cc/x.cpp", text).mutants() if operator in (None, m.operator))


HIDDEN = ["// a < b && c == 1\n", "/* a < b;\n f(); 7 */", '"a < b \\" 7 == 8"', 'R"(a < b " 7)"', 'R"xy(a )" < 7 )xy"', "'7'",
          "'\\''", "#include <7>\n", "#define F(x) x < 7 && \\\n  x == 8\n", "  #if 7 < 8\n", "std::vector<int> x;",
          "template <typename T, std::vector<int> U = 7> void f(T&& x, U* y);", "static_assert(sizeof(Header) == 24);",
          "bool operator<(const X& x) const;", "int& x = y;", "enum class Kind { a = 1, b = 2 };", "using X = Y<3>;",
          "[[nodiscard]] X f();", "constexpr std::array<int, n> table{1, 2, 3, 4, 5, 6, 7, 8, 9};", "std::string name;",
          "Nanos now(later);", "{ list_.reserve(count + 1); }", "{ for (auto x = y; more(x); step(x)) {} }"]

CHANGES = [
    ("relational", "x = a < b;", ["x = a <= b;"]),
    ("relational", "x = a == b;", ["x = a != b;"]),
    ("arithmetic", "x = a - b;", ["x = a + b;"]),
    ("logical", "x = a && b;", ["x = a || b;"]),
    ("negation", "x = !a;", ["x = a;"]),
    ("boolean", "x = true;", ["x = false;"]),
    ("constant", "x = 7;", ["x = 14;", "x = 6;", "x = 8;"]),
    ("constant", "x = 0U;", ["x = 1U;"]),
    ("constant", "x = 0.5;", ["x = 1.0;"]),
    ("constant", "x = 5_ms;", ["x = 10_ms;", "x = 4_ms;", "x = 6_ms;"]),
    ("constant", "x = 1'000 + 1e-9;", ["x = 1'000 + 2e-09;", "x = 1001 + 1e-9;", "x = 2000 + 1e-9;", "x = 999 + 1e-9;"]),
    ("assignment", "x += a;", ["x -= a;", "x = a;"]),
    ("step", "++x;", ["--x;"]),
    ("min-max", "x = std::min(a, b);", ["x = std::max(a, b);"]),
    ("min-max", "x = std::max<int>(a, b);", ["x = std::min<int>(a, b);"]),
    ("return", "return a;", ["return {};"]),
    ("condition", "if (a && f(b)) c;", ["if (!(a && f(b))) c;", "if (a && true) c;", "if (true && f(b)) c;"]),
    ("condition", "if (a || b) c;", ["if (!(a || b)) c;", "if (a || false) c;", "if (false || b) c;"]),
    ("condition", "if (int x = 1; x) c;", ["if (int x = 1; !(x)) c;"]),
    ("removal", "{ f(a);\n  g(b); }", ["{ ;\n  g(b); }", "{ f(a);\n  ; }"]),
    ("removal", "{ x_ = &y; }", ["{ ; }"]),
    ("removal", "{ if (a) f(); }", ["{ if (a) ; }"]),
    ("removal", "{ for (;;) { continue; } }", ["{ for (;;) { ; } }"]),
    ("removal", "{ f(a,\n  b); }", ["{ \n; }"]),
    ("removal", "{ case A::b: f(); }", ["{ case A::b: ; }"]),
]


class Changes(unittest.TestCase):
    def test_each_operator(self):
        for operator, before, after in CHANGES:
            self.assertEqual(results(before, operator), after, before)

    def test_what_is_no_code_or_only_looks_like_an_operator_is_left_alone(self):
        for text in HIDDEN:
            self.assertEqual(results(text), [], text)
            for after in results(f"void f() {{\n{text}\nx = a < b;\n}}\n"):
                self.assertIn(text, after)

    def test_text_is_the_same_but_for_one_place_and_keeps_its_lines(self):
        text = (ROOT / "cc" / "cubic.cpp").read_text()
        mutants = list(mutate.Source("cc/cubic.cpp", text).mutants())
        self.assertGreater(len(mutants), 100)
        self.assertEqual(len({m.identity for m in mutants}), len(mutants))
        for mutant in mutants:
            after = mutate.applied(text, mutant)
            self.assertNotEqual(after, text)
            self.assertEqual(after.count("\n"), text.count("\n"), mutant)
            self.assertTrue(after.startswith(text[:mutant.start]) and after.endswith(text[mutant.end:]), mutant)

    def test_exceptions_of_this_project_fit_its_sources(self):
        self.assertGreater(len(mutate.read_exceptions(ROOT)), 0)


TOY = {
    ".gitignore": "build-*\n",
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_library(toy STATIC cc/toy.cpp)
add_executable(cc_test tests/cc/toy_test.cpp)
target_link_libraries(cc_test toy)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/labels/cc_test CONTENT "attack")
foreach(name other_test slow_test)  # both fail: one isn't of the library, one has a label
  add_executable(${name} tests/cc/failing_test.cpp)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/labels/${name} CONTENT "")
endforeach()
target_link_libraries(slow_test toy)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/labels/slow_test CONTENT "attack;slow")
""",
    "cc/toy.h": "inline int half(int a) { return a / 2; }\n",
    "cc/toy.cpp": """
int smaller(int a, int b) {
  if (a < b) return a;
  return b;
}
int untested(int a) {
  return a + 1;
}
int counted(int a) {
  volatile int left = a;
  while (left > 0) {
    left = left - 1;
  }
  return left + 7;
}
int same(int a) {
  int unused = 3;
  unused = 4;
  return a;
}
""",
    "tests/cc/toy_test.cpp": """
#include "../../cc/toy.h"
int smaller(int, int);
int counted(int);
int same(int);
int main() {
  return smaller(1, 2) == 1 && smaller(2, 1) == 1 && smaller(3, 3) == 3 && counted(5) == 7 && same(7) == 7 && half(8) == 4 ? 0 : 1;
}
""",
    "tests/cc/failing_test.cpp": "int main() { return 1; }\n",
    "tools/mutate.exceptions": "",
}


class Toy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="mltcp-mutate-")
        cls.addClassCleanup(place.cleanup)
        cls.root = Path(place.name) / "toy"
        for name, text in TOY.items():
            (cls.root / name).parent.mkdir(parents=True, exist_ok=True)
            (cls.root / name).write_text(text)
        subprocess.run(["git", "init", "-q", cls.root], check=True)

    def command(self, *arguments):
        return [sys.executable, SCRIPT, "--root", self.root, "--jobs", "1", "--limit", "1", *arguments]

    def run_it(self, *arguments):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)

    def verdicts(self, *arguments):
        ran = self.run_it("--count", "1000", "--json", "-", *arguments)
        self.assertIn(ran.returncode, (0, 1), ran.stdout + ran.stderr)
        return ran, {(m["before"], m["after"]): m for m in json.loads(ran.stdout)["mutants"]}

    def survivors(self):
        return {key: m for key, m in self.verdicts()[1].items() if m["outcome"] == "survived"}

    def test_0_list_is_deterministic_and_follows_the_seed(self):
        first = self.run_it("--list", "--count", "8").stdout
        self.assertEqual(first.count("cc/toy."), 8)
        self.assertEqual(first, self.run_it("--list", "--count", "8", "--folder", "cc/").stdout)
        self.assertNotEqual(first, self.run_it("--list", "--count", "8", "--seed", "2").stdout)
        self.assertFalse((self.root / "build-mutate").exists(), "it has built something")

    def test_1_killed_survived_and_equivalent_are_told_apart_once(self):
        ran, found = self.verdicts()
        self.assertEqual(ran.returncode, 1, ran.stderr)
        for before, after, outcome in [("return b;", "return {};", "test"), ("left = left - 1;", ";", "time-out"),
                                       ("return a + 1;", "return a - 1;", "survived"),
                                       (TOY["cc/toy.h"].strip(), TOY["cc/toy.h"].strip().replace("/", "*"), "test")]:
            self.assertEqual(found[before, after]["outcome"], outcome, before)
        self.assertTrue(all(before == "return a + 1;" or "a < b" in before for before, _ in self.survivors()), found)
        self.assertFalse(any("unused" in before for before, _ in found), "its object code is the same")
        self.assertTrue(all(m["by"].startswith("cc_test") for m in found.values() if m["outcome"] != "survived"))
        self.assertIn("killed by test", ran.stderr)
        for name, text in TOY.items():
            self.assertEqual((self.root / name).read_text(), text)
        again = self.verdicts()
        self.assertEqual(again[1], found)
        self.assertNotRegex(again[0].stderr, "(?m)^(test|time-out) ")

    def test_2_only_one_is_shown_as_a_diff_and_tested(self):
        ran = self.run_it("--only", next(iter(self.survivors().values()))["id"])
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertIn("--- a/cc/toy.cpp\n+++ b/cc/toy.cpp\n@@", ran.stdout)
        self.assertIn("survived", ran.stdout)

    def test_3_exceptions_count_and_are_checked(self):
        file = self.root / "tools" / "mutate.exceptions"
        self.addCleanup(file.write_text, "")
        file.write_text("# why\n\n" + "\n".join(f"cc/toy.cpp\n- {b}\n+ {a}\nNobody calls it.\n" for b, a in self.survivors()))
        ran, _ = self.verdicts()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stderr, "all .* 100 ")
        file.write_text("cc/toy.cpp\n- nothing like it\n+ nothing\nWhy not.\n")
        ran = self.run_it()
        self.assertEqual(ran.returncode, 2)
        self.assertIn("no change of cc/toy.cpp is\n  - nothing like it", ran.stderr)

    def test_4_interrupted_run_goes_on(self):
        source = self.root / "tests" / "cc" / "toy_test.cpp"
        self.addCleanup(source.write_text, source.read_text())
        source.write_text(source.read_text() + "// another tree\n")
        process = subprocess.Popen(self.command("--count", "1000"), stderr=subprocess.PIPE, text=True)
        first = process.stderr.readline()  # readline() returns when the first verdict is known
        process.send_signal(signal.SIGINT)
        self.assertIn("interrupted", process.communicate(timeout=60)[1])
        self.assertEqual(process.returncode, 130)
        self.assertNotIn(first, self.verdicts()[0].stderr, "it is known")

    def test_5_wrong_usage_is_told_in_one_line(self):
        for arguments in [("--folder", "nowhere"), ("--file", "cc/none.cpp"), ("--count", "0"), ("--only", "nothing")]:
            ran = self.run_it(*arguments)
            self.assertEqual(ran.returncode, 2, arguments)
            self.assertIn("mutate", ran.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
