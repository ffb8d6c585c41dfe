"""Tests `pip install ./python` in a virtual environment without a package index, and how the package finds the
library."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / "python"
sys.path.insert(0, str(PYTHON))


def python(executable, *words, **environment):
    cleared = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MLTCP_LIBRARY")}
    return subprocess.run([executable, *words], env={**cleared, **environment}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, cwd=tempfile.gettempdir())


class InstallTest(unittest.TestCase):
    def test_pip_installs_it_without_an_index(self):
        with tempfile.TemporaryDirectory() as folder:
            try:
                venv.create(folder, with_pip=True)
            # Debian's Python has no ensurepip without the package python3-venv.
            except (subprocess.CalledProcessError, ImportError, SystemExit):
                self.skipTest("there is no ensurepip; install python3-venv")
            own = os.path.join(folder, "bin", "python")
            source = os.path.join(folder, "python")
            shutil.copytree(PYTHON, source, ignore=shutil.ignore_patterns("__pycache__"))
            done = python(own, "-m", "pip", "install", "--no-index", source)
            self.assertEqual(done.returncode, 0, done.stdout)
            done = python(own, "-c", "import mltcp; from mltcp import library_path; print(mltcp.__file__, library_path())",
                          MLTCP_LIBRARY=os.environ["MLTCP_LIBRARY"])
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn(os.path.join(folder, "lib"), done.stdout)
            self.assertIn(os.environ["MLTCP_LIBRARY"], done.stdout)
            # `import mltcp` must work without the library, because some programs only read results. An error must name
            # the missing library when a program creates an endpoint.
            done = python(own, "-c", "import mltcp; mltcp.Endpoint('127.0.0.1')", MLTCP_LIBRARY="/nowhere/libmltcp.so.1")
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stdout, "LibraryError: /nowhere/libmltcp.so.1 cannot be loaded.*MLTCP_LIBRARY")

    def test_the_files_agree(self):
        import build_backend
        import mltcp

        project = (PYTHON / "pyproject.toml").read_text()
        versions = {re.search(r'^version = "(.*)"', project, re.M)[1], build_backend.VERSION, mltcp.__version__,
                    re.search(r"project\(mltcp VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]}
        self.assertEqual(len(versions), 1, versions)
        self.assertIn(re.search(r'^description = "(.*)"', project, re.M)[1], build_backend.METADATA)
        self.assertIn("Requires-Python: " + re.search(r'^requires-python = "(.*)"', project, re.M)[1],
                      build_backend.METADATA)

    def test_the_library_of_its_own_prefix_is_found(self):
        """If a library is beside the package, the package uses this library. If not, it gives the dynamic linker only
        the file name of the library."""
        find = "from mltcp import _library; print(_library._find())"
        multiarch = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"
        with tempfile.TemporaryDirectory() as folder:
            prefix = Path(folder).resolve()
            packages = prefix / "lib" / "python3" / "dist-packages"
            shutil.copytree(PYTHON / "mltcp", packages / "mltcp", ignore=shutil.ignore_patterns("__pycache__"))

            def found():
                done = python(sys.executable, "-c", find, PYTHONPATH=str(packages), PYTHONDONTWRITEBYTECODE="1")
                self.assertEqual(done.returncode, 0, done.stdout)
                return done.stdout.strip()

            self.assertEqual(found(), "libmltcp.so.1")
            for place in ("lib64", "lib/" + multiarch, "lib"):
                library = prefix / place / "libmltcp.so.1"
                library.parent.mkdir(exist_ok=True)
                library.touch()
                self.assertEqual(found(), str(library))
            # The library named by MLTCP_LIBRARY has priority.
            done = python(sys.executable, "-c", find, PYTHONPATH=str(packages), PYTHONDONTWRITEBYTECODE="1",
                          MLTCP_LIBRARY="/elsewhere/libmltcp.so.1")
            self.assertEqual(done.stdout.strip(), "/elsewhere/libmltcp.so.1")

    def test_the_page_names_all_of_a_jobs_report(self):
        from mltcp import _library as lib
        page = (ROOT / "docs/reference/python.md").read_text()
        for name in lib.report_of(lib.JobReport()):
            self.assertIn(f"`{name}`", page)

    def test_structs_are_those_of_the_header(self):
        """Python's structs have the same sizes as those that a C compiler makes from the header."""
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        import ctypes
        from mltcp import _library as lib
        sizes = "".join(f"static_assert(sizeof({name}) == {ctypes.sizeof(struct)} && "
                        f"offsetof({name}, {struct._fields_[-1][0]}) == {getattr(struct, struct._fields_[-1][0]).offset}, \"\");"
                        for name, struct in {
                            "mltcp_completion": lib.CompletionStruct, "mltcp_endpoint_options": lib.EndpointOptions,
                            "mltcp_post_options": lib.PostOptions, "mltcp_job_options": lib.JobOptions,
                            "mltcp_job_plan": lib.JobPlan, "mltcp_job_report": lib.JobReport,
                            "mltcp_connection_report": lib.ConnectionReport, "mltcp_endpoint_report": lib.EndpointReport}.items())
        subprocess.run([compiler, "-xc", "-fsyntax-only", "-"], text=True, check=True,
                       input=f'#include "{ROOT}/endpoint/mltcp.h"\n#include <assert.h>\n{sizes}\n')


if __name__ == "__main__":
    unittest.main()
