"""Runs Python programs in forks of this process. This process has already imported PyTorch, because the import takes
longer than most tests. Tests of the end of an interpreter use new processes instead of forks. Importing this module
ends the program with status 77 if this interpreter has no PyTorch with Gloo."""
import os
import runpy
import signal
import sys
import tempfile
import traceback

try:
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: {sys.executable} has no PyTorch ({error}); install Debian's python3-torch")
    sys.exit(77)
if not dist.is_available() or not dist.is_gloo_available():
    print("skipped: this PyTorch has no Gloo")
    sys.exit(77)


class Forked:
    """Runs a program in a fork. `arguments` begins with the program's path, and `environment` is its whole environment.
    The standard output can be read while the program runs. The standard error can be read only after the program has
    ended."""

    def __init__(self, arguments, environment):
        self.returncode = None
        self._error = tempfile.TemporaryFile(mode="w+")
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _become(arguments, environment, writing, self._error.fileno())
        os.close(writing)
        self.stdout = os.fdopen(reading, encoding="utf-8")

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self):
        os.kill(self.pid, 9)

    def communicate(self):
        """Waits until the program ends. Returns the rest of its output: (standard output, standard error)."""
        if self._error.closed:
            return "", ""
        out = self.stdout.read()
        self.stdout.close()
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with self._error:
            self._error.seek(0)
            return out, self._error.read()


def _become(arguments, environment, out, error):
    status = 1
    signal.alarm(200)  # ends a program that hangs
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(error, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", encoding="utf-8")
        os.environ.clear()
        os.environ.update(environment)
        dist.set_debug_level_from_env()  # PyTorch read the debug level at the import, before `environment` was set
        sys.argv = [str(one) for one in arguments]
        runpy.run_path(sys.argv[0], run_name="__main__")
        if dist.is_initialized():  # lets sent messages arrive, as the end of an interpreter does
            dist.destroy_process_group()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
