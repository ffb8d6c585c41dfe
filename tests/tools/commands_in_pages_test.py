"""Tests that mltcp accepts every call in the code blocks of README and docs/: the subcommand and each option must
exist. tools/docs compares the output of transcripts. Usage: commands_in_pages_test.py MLTCP"""
import re
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = sys.argv.pop(1)
CALL = re.compile(r"(?:^|[|&;(]\s*|\bsudo (?:-E )?|\b[A-Z_]+=\S+ )(?:build/bin/)?mltcp\s+([a-z]+)\b([^|&;)]*)")


def calls(text):
    """Yields the line number, the subcommand and the options of each call in the code blocks of a page."""
    inside = transcript = False
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            language = line.strip("` ")
            inside = not inside and language in ("", "sh", "bash", "console")
            # If a block has lines that begin with "$ ", its other lines are output.
            rest = lines[number:]
            end = next((i for i, later in enumerate(rest) if later.lstrip().startswith("```")), len(rest))
            transcript = any(later.startswith("$ ") for later in rest[:end])
            continue
        if not inside or (transcript and not line.startswith("$ ")):
            continue
        shown = re.sub(r"\s#\s.*$", "", line.removeprefix("$ "))
        for found in CALL.finditer(shown):
            try:
                words = shlex.split(found.group(2))
            except ValueError:  # a quoted word continues in the next line
                words = found.group(2).split()
            yield number, found.group(1), [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def output_of(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60).stdout


class CommandsInPages(unittest.TestCase):
    def setUp(self):
        self.subcommands = re.findall(r"^  ([a-z]+) ", output_of("--help").partition("Subcommands:")[2], flags=re.MULTILINE)

    def options_of(self, subcommand, known={}):
        """Returns the set of options of a subcommand, or None if the subcommand does not exist."""
        if subcommand not in self.subcommands:
            return None
        if subcommand not in known:
            known[subcommand] = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", output_of(subcommand, "--help")))
        return known[subcommand]

    def test_calls_are_understood(self):
        seen, wrong = 0, []
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            for line, subcommand, options in calls(page.read_text()):
                seen += 1
                known = self.options_of(subcommand)
                if known is None:
                    wrong.append(f"{page.name}:{line}: there is no mltcp {subcommand}")
                    continue
                wrong += [f"{page.name}:{line}: mltcp {subcommand} has no {option}" for option in options
                          if option not in known]
        self.assertEqual(wrong, [])
        self.assertGreater(seen, 40, "pages show calls in code blocks")

    def test_what_is_wrong_is_found(self):
        page = "```sh\nsudo mltcp run x.toml --json - | build/bin/mltcp report -o a # --no\n```\nmltcp no --such\n"
        self.assertEqual(list(calls(page)), [(2, "run", ["--json"]), (2, "report", ["-o"])])
        page = "```\nmltcp run a --pcap b\n```\n```\n$ mltcp run a --json b\nmltcp 1.2 -a\n```\n"
        self.assertEqual(list(calls(page)), [(2, "run", ["--pcap"]), (5, "run", ["--json"])])
        self.assertIsNone(self.options_of("nothing"))
        self.assertNotIn("--jsonn", self.options_of("run"))


unittest.main()
