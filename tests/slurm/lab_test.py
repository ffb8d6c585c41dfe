"""Tests a short run of the Slurm laboratory: jobs under Slurm alone, and with the service, which gives them slots."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import slurm_cluster  # noqa: E402


def main():
    if reason := slurm_cluster.lacking():
        print(f"Skipped: {reason}")
        return 77
    build = os.environ["MLTCP_BUILD"]
    with tempfile.TemporaryDirectory(prefix="mltcp-lab-") as folder:
        done = subprocess.run([sys.executable, f"{HERE}/lab", "--build", build, "--seconds", "6", "--json", f"{folder}/lab.json"],
                              check=False, capture_output=True, text=True, timeout=250)
        print(done.stdout + done.stderr)
        if "is forbidden" in done.stderr or "can't be had" in done.stderr or "no permission" in done.stderr:
            print("Skipped: testbeds can't be made here (mltcp doctor)")
            return 77
        assert done.returncode == 0, done.returncode
        with open(f"{folder}/lab.json", encoding="utf-8") as stream:
            results = json.load(stream)
        left = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("mltcp-slurm-lab")]
        assert not left, left
    runs = {run["name"]: run["jobs"] for run in results["runs"]}
    assert [len(jobs) for jobs in runs.values()] == [6, 6], runs
    for job in runs["plain"]:
        assert job["time_shift_ns"] is None and job["job"] in (-1, 0), job
    # Performance is measured separately, on a machine without other load. This test only checks that each job was
    # placed and got its number and its settings.
    numbers = {job["job"] for job in runs["service"]}
    assert len(numbers) == 6 and min(numbers) >= 1, numbers
    for job in runs["service"]:
        assert job["score"] is not None and job["iterations"] > 5, job
    held = [job for job in runs["service"] if job["time_shift_ns"] is not None]
    assert held and any(job["on_slot"] > 0 for job in held), runs["service"]
    return 0


if __name__ == "__main__":
    sys.exit(main())
