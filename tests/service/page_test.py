#!/usr/bin/env python3
"""Tests docs/how-to/scheduler-service.md: runs the requests on the page with curl, and compares the answers.

Usage: page_test.py PROGRAM PAGE. The exit status is 77 if curl is not installed.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def blocks(page):
    """Returns the language and the text of each code block."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def differences(shown, answered, path=""):
    """Returns a list of the differences between two JSON values, with their paths. "..." on the page equals any
    value."""
    if shown == "...":
        return []
    if isinstance(shown, dict) and isinstance(answered, dict):
        found = [f"{path}: keys {sorted(set(shown) ^ set(answered))}"] if shown.keys() != answered.keys() else []
        for key in shown.keys() & answered.keys():
            found += differences(shown[key], answered[key], f"{path}.{key}")
        return found
    if isinstance(shown, list) and isinstance(answered, list) and len(shown) == len(answered):
        return [d for i, (a, b) in enumerate(zip(shown, answered)) for d in differences(a, b, f"{path}[{i}]")]
    if isinstance(shown, float) and isinstance(answered, float) and abs(shown - answered) < 1e-9:
        return []
    return [] if shown == answered else [f"{path}: the page has {shown}, the service {answered}"]


def main():
    program, page = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).read_text()
    if shutil.which("curl") is None:
        print("curl is not installed, which runs the requests: tools/setup installs it")
        return 77
    all_blocks = blocks(page)
    failures = requests = 0
    with tempfile.TemporaryDirectory() as folder:
        topology = next(text for language, text in all_blocks if language == "toml")
        (pathlib.Path(folder) / "cluster.toml").write_text(topology)
        service = subprocess.Popen(
            [program, "scheduler", "cluster.toml", "--slots-per-host", "8", "--socket", "scheduler.sock",
             "--state", "state"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            if not service.stdout.readline().startswith("ready "):
                print("the service does not start")
                return 1
            for (language, text), (next_language, shown) in zip(all_blocks, all_blocks[1:]):
                if language != "sh" or next_language != "json":
                    continue
                requests += 1
                done = subprocess.run(["bash", "-c", text], cwd=folder, capture_output=True, text=True, timeout=60)
                try:
                    found = differences(json.loads(shown), json.loads(done.stdout))
                except ValueError as error:
                    found = [f"no JSON: {error}: {done.stdout} {done.stderr}"]
                for difference in found:
                    print(f"{text}\n  {difference}")
                failures += bool(found)
        finally:
            service.terminate()
            service.wait(60)
    if service.returncode != 0 or requests < 6:
        print(f"exit status {service.returncode}, {requests} requests of the page found")
        return 1
    print(f"{requests} requests, {failures} answered otherwise than the page says")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
