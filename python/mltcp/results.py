"""Reads the results files of experiments, which `mltcp run --json` and similar commands write with schema
mltcp.results/1 (docs/reference/results-file.md). Results are plain dicts and lists. With pandas installed, they are
available as data frames."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Union

SCHEMA = "mltcp.results/1"
# Fields of a run that jobs() and iterations() copy into each row.
_RUN_FIELDS = ("policy", "cc", "datapath", "seed")


class Results:
    """The contents of a results file. `data` holds the whole JSON object."""

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
        """Returns the runs of the experiment, one for each policy."""
        return self.data["runs"]

    def jobs(self) -> List[Dict[str, Any]]:
        """Returns a row for each job of each run. A row holds the numbers and texts of the job; lists are left out."""
        rows = []
        for run in self.runs:
            head = {"experiment": self.experiment, **{name: run.get(name) for name in _RUN_FIELDS}}
            for job in run["jobs"]:
                plain = {("job" if name == "name" else name): value for name, value in job.items()
                         if not isinstance(value, (list, dict))}
                rows.append({**head, **plain})
        return rows

    def iterations(self) -> List[Dict[str, Any]]:
        """Returns a row for each iteration of each job of each run, with the start time and the duration of the
        iteration."""
        rows = []
        for run in self.runs:
            head = {"experiment": self.experiment, **{name: run.get(name) for name in _RUN_FIELDS}}
            for job in run["jobs"]:
                for number, (start, duration) in enumerate(zip(job["start_ns"], job["iteration_ns"])):
                    rows.append({**head, "job": job["name"], "iteration": number, "start_ns": start,
                                 "iteration_ns": duration, "isolated_ns": job.get("isolated_ns")})
        return rows

    def jobs_frame(self) -> Any:
        """Returns the rows of jobs() as a pandas.DataFrame."""
        return _pandas().DataFrame(self.jobs())

    def iterations_frame(self) -> Any:
        """Returns the rows of iterations() as a pandas.DataFrame."""
        return _pandas().DataFrame(self.iterations())


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("data frames need pandas, which is not installed; install it (pip install pandas), or use "
                          "jobs() and iterations(), which are lists of dicts") from error
    return pandas


def load_results(file: Union[str, "os.PathLike[str]"]) -> Results:
    """Reads a results file. Raises OSError if it cannot be read, and ValueError if it is not a results file."""
    with open(file, encoding="utf-8") as stream:
        try:
            data = json.load(stream)
        except ValueError as error:
            raise ValueError(f"{os.fspath(file)}: is not JSON: {error}; give a file that --json has written") from None
    return Results(data, os.fspath(file))
