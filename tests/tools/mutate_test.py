"""tools/mutate: its tokenizer, its changes, and a whole run over a toy project. Run: mutate_test.py TOOLS/MUTATE"""

import importlib.machinery
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SCRIPT = Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("mutate", str(SCRIPT))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)


def changes(text):
    """All changes of a text: {(operator, what the text is afterwards)}."""
    return {(m.operator, mutate.applied(text, m)) for m in mutate.Source("cc/x.cpp", text).mutants()}


def results(text, operator=None):
    return sorted(after for by, after in changes(text) if operator in (None, by))


class Tokens(unittest.TestCase):
    def test_comments_strings_and_preprocessor_lines_are_never_changed(self):
        kept = [
            "// a < b && c == 1\n",
            "/* a < b;\n f(); 7 */",
            '"a < b \\" 7 == 8"',
            'R"(a < b " 7)"',
            'R"xy(a )" < 7 )xy"',
            "'7'",
            "'\\''",
            "#include <7>\n",
            "#define F(x) x < 7 && \\\n  x == 8\n",
            "  #if 7 < 8\n",
        ]
        for text in kept:
            self.assertEqual(results(text), [], text)
        text = "void f() {\n" + "\n".join(f"g({t});" if t[0] in "\"'R" else t for t in kept) + "\nx = a < b;\n}\n"
        for operator, after in changes(text):
            if operator == "removal":
                continue
            for part in kept:
                self.assertIn(part, after, operator)

    def test_exceptions_of_this_project_fit_its_sources(self):
        tools = SCRIPT.parent
        exceptions = mutate.read_exceptions(tools / "mutate.exceptions")
        self.assertGreater(len(exceptions), 0)
        self.assertEqual(mutate.stale(tools.parent, exceptions), [])

    def test_digit_separators_and_exponents_are_one_number(self):
        self.assertEqual([t.text for t in mutate.tokens_of("x = 1'000'000 + 1e-9 + .5f + 0xFF'FFU;") if t.kind == "number"],
                         ["1'000'000", "1e-9", ".5f", "0xFF'FFU"])

    def test_text_is_the_same_but_for_one_place_and_keeps_its_lines(self):
        text = (SCRIPT.parent.parent / "cc" / "cubic.cpp").read_text()
        mutants = list(mutate.Source("cc/cubic.cpp", text).mutants())
        self.assertGreater(len(mutants), 100)
        self.assertEqual(len({m.identity for m in mutants}), len(mutants))
        for mutant in mutants:
            after = mutate.applied(text, mutant)
            self.assertNotEqual(after, text)
            self.assertEqual(after.count("\n"), text.count("\n"), mutant)
            self.assertEqual(after[:mutant.start], text[:mutant.start])
            self.assertTrue(after.endswith(text[mutant.end:]))


class Changes(unittest.TestCase):
    def test_each_operator(self):
        for operator, before, after in [
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
            ("assignment", "x += a;", ["x -= a;", "x = a;"]),
            ("step", "++x;", ["--x;"]),
            ("min-max", "x = std::min(a, b);", ["x = std::max(a, b);"]),
            ("min-max", "x = std::max<int>(a, b);", ["x = std::min<int>(a, b);"]),
            ("return", "return a;", ["return {};"]),
            ("condition", "if (a && f(b)) c;", ["if (!(a && f(b))) c;", "if (a && true) c;", "if (true && f(b)) c;"]),
            ("condition", "if (a || b) c;", ["if (!(a || b)) c;", "if (a || false) c;", "if (false || b) c;"]),
            ("condition", "if (int x = 1; x) c;", ["if (int x = 1; !(x)) c;"]),
            ("removal", "{ f(a);\n  g(b); }", ["{ ;\n  g(b); }", "{ f(a);\n  ; }"]),
            ("removal", "{ x_ = 5; }", ["{ ; }"]),
            ("removal", "{ if (a) f(); }", ["{ if (a) ; }"]),
            ("removal", "{ for (;;) { continue; } }", ["{ for (;;) { ; } }"]),
            ("removal", "{ f(a,\n  b); }", ["{ \n; }"]),
        ]:
            self.assertEqual(results(before, operator), after, before)

    def test_what_only_looks_like_an_operator_is_left_alone(self):
        for text in [
            "std::vector<int> x;",
            "template <typename T, typename U> void f(T&& x, U* y);",
            "static_assert(sizeof(Header) == 24);",
            "bool operator<(const X& x) const;",
            "int& x = y;",
            "enum class Kind { a = 1, b = 2 };",
            "using X = Y<3>;",
            "[[nodiscard]] X f();",
            "constexpr std::array<int, n> table{1, 2, 3, 4, 5, 6, 7, 8, 9};",
            "std::string name;",
            "Nanos now(later);",
            "{ list_.reserve(count + 1); }",
            "{ for (auto x = y; more(x); step(x)) {} }",
        ]:
            self.assertEqual(results(text), [], text)

    def test_shares_add_up_and_follow_the_sizes(self):
        self.assertEqual(mutate.shares({"a": 50, "b": 30, "c": 20}, 10), {"a": 5, "b": 3, "c": 2})
        self.assertEqual(sum(mutate.shares({"a": 1, "b": 1, "c": 1}, 2).values()), 2)
        self.assertEqual(mutate.shares({"a": 2, "b": 0}, 10), {"a": 2, "b": 0})


TOY = {
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/include/cc/toy.cpp)
  message(FATAL_ERROR "the copy lacks a link to a folder")
endif()
function(mltcp_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS")
  add_library(toy_${name} STATIC ${arg_SOURCES})
endfunction()
function(mltcp_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS;LABELS")
  add_executable(${name} ${arg_SOURCES})
  foreach(link IN LISTS arg_LINKS)
    target_link_libraries(${name} PRIVATE toy_${link})
  endforeach()
endfunction()
add_subdirectory(cc)
add_subdirectory(tests/cc)
""",
    "cc/CMakeLists.txt": "mltcp_library(cc SOURCES toy.cpp)\n",
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
    "tests/cc/CMakeLists.txt": "mltcp_test(cc_test SOURCES toy_test.cpp LINKS cc)\n"
                               "mltcp_test(slow_test SOURCES toy_test.cpp LINKS cc LABELS dpdk)\n",
    "tests/cc/toy_test.cpp": """
int smaller(int, int);
int counted(int);
int same(int);
int main() {
  return smaller(1, 2) == 1 && smaller(2, 1) == 1 && smaller(3, 3) == 3 && counted(5) == 7 && same(7) == 7 ? 0 : 1;
}
""",
    "tools/mutate.exceptions": "",
}


class Toy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = Path(tempfile.mkdtemp(prefix="mltcp-mutate-"))
        cls.root = cls.place / "toy"
        for name, text in TOY.items():
            path = cls.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (cls.root / "include").mkdir()
        (cls.root / "include" / "cc").symlink_to("../cc")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.place)

    def command(self, *arguments):
        return [sys.executable, str(SCRIPT), "--root", str(self.root), "--jobs", "1", "--limit", "1", *arguments]

    def run_it(self, *arguments):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)

    def verdicts(self, *arguments):
        ran = self.run_it("--count", "1000", "--json", str(self.place / "out.json"), *arguments)
        self.assertIn(ran.returncode, (0, 1), ran.stdout + ran.stderr)
        self.assertNotIn("Traceback", ran.stderr, ran.stderr)
        document = json.loads((self.place / "out.json").read_text())
        return ran, {(m["before"], m["after"]): m for m in document["mutants"]}

    def test_0_list_is_deterministic_and_follows_the_seed(self):
        first = self.run_it("--list", "--count", "8")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout.count("cc/toy.cpp:"), 8)
        self.assertEqual(first.stdout, self.run_it("--list", "--count", "8").stdout)
        self.assertNotEqual(first.stdout, self.run_it("--list", "--count", "8", "--seed", "2").stdout)
        self.assertFalse((self.root / "build-mutate" / "schema").exists(), "it has built something")

    def test_1_killed_survived_and_equivalent_are_told_apart(self):
        before = {p: p.read_bytes() for p in self.root.rglob("*") if p.is_file() and "build-mutate" not in p.parts}
        ran, found = self.verdicts()
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertEqual(found[("return b;", "return {};")]["outcome"], "test")
        self.assertEqual(found[("left = left - 1;", ";")]["outcome"], "time-out")
        self.assertEqual(found[("return a + 1;", "return a - 1;")]["outcome"], "survived")
        self.assertTrue(all("return a + 1;" == b or "a < b" in b for (b, _), m in found.items() if m["outcome"] == "survived"),
                        found)
        self.assertFalse(any("unused" in b for b, _ in found), "its object code is the same")
        self.assertTrue(all(m["by"].startswith("cc_test") for m in found.values() if m["outcome"] == "test"))
        self.assertIn("killed by test", ran.stdout)
        self.assertEqual(before, {p: p.read_bytes() for p in before})

    def test_2_what_is_known_is_not_looked_for_again(self):
        (self.root / "build-mutate" / "schema" / "src" / "cc" / "toy.cpp").write_text("broken")
        first = self.verdicts()[1]
        self.assertEqual(first, self.verdicts()[1])

    def test_3_only_one_is_shown_as_a_diff_and_tested(self):
        identity = next(m["id"] for m in self.verdicts()[1].values() if m["outcome"] == "survived")
        ran = self.run_it("--only", identity)
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertIn("--- a/cc/toy.cpp\n+++ b/cc/toy.cpp\n@@", ran.stdout)
        self.assertIn("survived", ran.stdout)

    def test_4_exceptions_count_and_are_checked(self):
        survivors = [key for key, m in self.verdicts()[1].items() if m["outcome"] == "survived"]
        file = self.root / "tools" / "mutate.exceptions"
        try:
            file.write_text("# why\n\n" + "\n".join(f"cc/toy.cpp\n- {b}\n+ {a}\nNobody calls it.\n" for b, a in survivors))
            ran, _ = self.verdicts()
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertIn("100.0%", ran.stdout)
            file.write_text("cc/toy.cpp\n- nothing like it\n+ nothing\nWhy not.\n")
            ran = self.run_it("--count", "1000")
            self.assertEqual(ran.returncode, 2)
            self.assertIn("nothing like it", ran.stderr)
            file.write_text("cc/toy.cpp\n- return a + 1;\n+ return a - 1;\n")
            self.assertIn("an argument", self.run_it("--count", "1").stderr)
        finally:
            file.write_text("")

    def test_5_interrupted_run_leaves_no_process_and_goes_on(self):
        source = self.root / "tests" / "cc" / "toy_test.cpp"
        source.write_text(TOY["tests/cc/toy_test.cpp"] + "// another tree\n")
        try:
            copied = self.root / "build-mutate" / "schema" / "src" / "cc" / "toy.cpp"
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_text(TOY["cc/toy.cpp"])
            process = subprocess.Popen(self.command("--count", "1000"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            give_up = time.monotonic() + 60
            while copied.read_text() == TOY["cc/toy.cpp"] and time.monotonic() < give_up:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, said)
            self.assertEqual((self.root / "cc" / "toy.cpp").read_text(), TOY["cc/toy.cpp"])
            self.assertIn(self.verdicts()[0].returncode, (0, 1))
        finally:
            source.write_text(TOY["tests/cc/toy_test.cpp"])

    def test_6_wrong_usage_is_told_in_one_line(self):
        for arguments in [("--folder", "nowhere"), ("--file", "cc/none.cpp"), ("--count", "0"), ("--only", "nothing")]:
            ran = self.run_it(*arguments)
            self.assertEqual(ran.returncode, 2, arguments)
            self.assertIn("mutate", ran.stderr)


if __name__ == "__main__":
    os.environ.pop("CCACHE_DIR", None)
    unittest.main(verbosity=2)
