"""Results of experiments: files of schema mltcp.results/1, written by `mltcp run --json` and similar commands
(docs/reference/results-file.md), as plain dicts and lists, or as data frames if pandas is installed."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Union

SCHEMA = "mltcp.results/1"
# Fields of a run that are copied to the rows of its jobs.
_RUN_FIELDS = ("policy", "cc", "datapath", "seed")


class Results:
    """A results file. `data` is its whole contents."""

    def __init__(self, data: Dict[str, Any], name: str = "the results") -> None:
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != SCHEMA:
            raise ValueError(f"{name}: its schema is {schema!r}, but {SCHEMA!r} is needed; give a file that mltcp run, "
                             "gen or testbed has written by --json")
        self.data = data

    @property
    def experiment(self) -> str:
        return self.data["experiment"]

    @property
    def runs(self) -> List[Dict[str, Any]]:
        """The runs, one per policy."""
        return self.data["runs"]

    def jobs(self) -> List[Dict[str, Any]]:
        """A row for each job of each run, with its numbers and texts in the file."""
        rows = []
        for run in self.runs:
            head = {"experiment": self.experiment, **{name: run.get(name) for name in _RUN_FIELDS}}
            for job in run["jobs"]:
                plain = {("job" if name == "name" else name): value for name, value in job.items()
                         if not isinstance(value, (list, dict))}
                rows.append({**head, **plain})
        return rows

    def iterations(self) -> List[Dict[str, Any]]:
        """A row for each iteration of each job of each run: when it began and how long it took."""
        rows = []
        for run in self.runs:
            head = {"experiment": self.experiment, **{name: run.get(name) for name in _RUN_FIELDS}}
            for job in run["jobs"]:
                for number, (start, duration) in enumerate(zip(job["start_ns"], job["iteration_ns"])):
                    rows.append({**head, "job": job["name"], "iteration": number, "start_ns": start,
                                 "iteration_ns": duration, "isolated_ns": job.get("isolated_ns")})
        return rows

    def jobs_frame(self) -> Any:
        """jobs() as a pandas.DataFrame."""
        return _pandas().DataFrame(self.jobs())

    def iterations_frame(self) -> Any:
        """iterations() as a pandas.DataFrame."""
        return _pandas().DataFrame(self.iterations())


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("data frames need pandas, which is not installed; install it (pip install pandas), or use "
                          "jobs() and iterations(), which are lists of dicts") from error
    return pandas


def load_results(file: Union[str, "os.PathLike[str]"]) -> Results:
    """Reads a results file. OSError, ValueError."""
    with open(file, encoding="utf-8") as stream:
        try:
            data = json.load(stream)
        except ValueError as error:
            raise ValueError(f"{os.fspath(file)}: is not JSON: {error}; give a file that --json has written") from None
    return Results(data, os.fspath(file))
