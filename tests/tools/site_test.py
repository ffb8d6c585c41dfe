"""Tests tools/site: its error messages, that it accepts this project's pages, and with --build that it builds them
without dead links.

Usage: site_test.py [--build]. The exit status is 77 if a test is skipped; the reason is printed."""
import importlib.machinery
import importlib.util
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote

SCRIPT = Path(__file__).resolve().parents[2] / "tools/site"
sys.dont_write_bytecode = True


def load():
    loader = importlib.machinery.SourceFileLoader("site_script", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_script", loader))
    loader.exec_module(module)
    return module


class Refusals(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.site = load()
        self.root = self.site.ROOT = Path(scratch.name).resolve()
        (self.root / "docs/site").mkdir(parents=True)
        (self.root / "examples/hello").mkdir(parents=True)
        (self.root / "examples/hello/hello.c").write_text("int main() { return 0; } /* ``` */\n")
        (self.root / "README.md").write_text("# All\n[a page](docs/a.md#there), [a folder](examples/hello)\n")
        (self.root / "docs/a.md").write_text("# A\n## There\n[back](../README.md)\n```\n[no link](nowhere)\n```\n")
        self.order("a.md")

    def order(self, *pages):
        (self.root / "docs/README.md").write_text("# All\n## How-to\n" + "".join(f"- [P]({page})\n" for page in pages))

    def problem(self, what):
        with self.assertRaises(self.site.Problem) as caught:
            what()
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def add_all(self, folder=None):
        site = self.site.Site(folder)
        for page, source in self.site.pages().items():
            site.add(page, source)
        return site

    def test_index_links_each_page_once(self):
        self.site.check_order()
        self.assertEqual(self.site.order(), {"How-to": ["a.md"]})
        self.assertIn("  - How-to:\n      - a.md\n", self.site.navigation())
        for pages, times in [((), 0), (("a.md", "a.md"), 2)]:
            self.order(*pages)
            self.assertIn(f"a.md is linked {times} times", self.problem(self.site.check_order))

    def test_addresses_of_moved_pages_lead_to_the_first_page_of_the_name(self):
        for folder in ("how-to", "reference"):
            (self.root / "docs" / folder).mkdir()
            for name in ("b.md", f"{folder[0]}.md"):
                (self.root / "docs" / folder / name).write_text("# B\n")
        self.assertIn("      redirect_maps:\n        b.md: how-to/b.md\n        h.md: how-to/h.md\n"
                      "        r.md: reference/r.md\n", self.site.redirects())

    def test_links_lead_to_pages_and_to_pages_of_sources(self):
        folder = self.root / "out"
        site = self.add_all(folder)
        self.assertIn("[a page](a.md#there), [a folder](source/examples/hello.md)", (folder / "index.md").read_text())
        self.assertIn("[back](index.md)", (folder / "a.md").read_text())
        self.assertIn("[no link](nowhere)", (folder / "a.md").read_text())
        self.assertIn("[hello.c](hello/hello.c.md)", (folder / "source/examples/hello.md").read_text())
        self.assertIn("````c\nint main()", (folder / "source/examples/hello/hello.c.md").read_text())
        self.assertEqual(len(site.sources), 2)

    def test_lists_keep_their_levels(self):
        (self.root / "docs/a.md").write_text("## There\n- a\n  b\n  - c\n    ```\n    d\n      e\n    ```\n1. f\n"
                                              "   - g\n")
        self.add_all(self.root / "out")
        self.assertEqual((self.root / "out/a.md").read_text(), "## There\n- a\n    b\n    - c\n        ```\n        d\n"
                         "          e\n        ```\n1. f\n    - g\n")

    def test_links_that_lead_nowhere_or_out_are_told(self):
        (self.root / "docs/a.md").write_text("## There\n[x](gone.md)\n")
        self.assertEqual(self.problem(self.add_all), "docs/a.md: the link to gone.md leads nowhere")
        (self.root / "docs/a.md").write_text("# There\n[x](../README.md#all), [y](#their)\n")
        self.assertEqual(self.problem(self.add_all), "docs/a.md: this page has no heading for #their")
        (self.root / "docs/a.md").write_text("# There\n[x](../../..)\n")
        self.assertIn("leads out of the project", self.problem(self.add_all))

    def test_a_folder_of_others_is_not_made_anew(self):
        (self.root / "mine").mkdir()
        (self.root / "mine/file").write_text("mine")
        if not shutil.which("mkdocs") or not shutil.which("doxygen"):
            self.assertIn("tools/setup --with site", self.problem(lambda: self.site.build(self.root / "mine")))
        else:
            self.assertIn("the folder is not a site", self.problem(lambda: self.site.build(self.root / "mine")))
        self.assertEqual((self.root / "mine/file").read_text(), "mine")


class Own(unittest.TestCase):
    def test_own_pages(self):
        site = load()
        site.check_order()
        pages = site.Site(None)
        for page, source in site.pages().items():
            pages.add(page, source)
        self.assertGreater(len(pages.sources), 50)


class Build(unittest.TestCase):
    def test_links_of_the_built_site(self):
        with tempfile.TemporaryDirectory() as scratch:
            output = Path(scratch) / "site"
            load().build(output)
            dead, seen = [], 0
            for page in output.rglob("*.html"):
                if page.is_relative_to(output / "api") or page.name == "404.html":
                    continue
                for target in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
                    if re.match(r"[a-z]+:|/", target):
                        continue
                    seen += 1
                    if not (page.parent / unquote(target)).exists():
                        dead.append(f"{page.relative_to(output)}: {target}")
            self.assertEqual(dead, [])
            self.assertGreater(seen, 1000)
            self.assertIn('url=explanation/scheduler.html', (output / "scheduler.html").read_text())
            self.assertIn("mltcp_send_tagged", (output / "api/mltcp_8h.html").read_text())


if __name__ == "__main__":
    build = "--build" in sys.argv
    if build and not (shutil.which("mkdocs") and shutil.which("doxygen")):
        print("site_test.py: Skipped\nthere is no mkdocs or no doxygen; tools/setup --with site installs them")
        sys.exit(77)
    names = ["Build"] if build else ["Refusals", "Own"]
    unittest.main(argv=sys.argv[:1], defaultTest=names)
