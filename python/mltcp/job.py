"""Training jobs. The congestion control of a job's connections follows the iterations of the job."""

from __future__ import annotations

import contextlib
import ctypes
from typing import TYPE_CHECKING, Any, Iterator, Optional

from . import _library as lib
from ._errors import Code
from .connection import Connection, nanoseconds

if TYPE_CHECKING:
    from .endpoint import Endpoint

_PLAN_STATES = ("none", "active", "removed", "stale", "invalid", "misfit", "no_iterations", "unknown_job")


class Job:
    """A training job, made by Endpoint.job(). The end of a `with` block removes the job, and its connections continue
    without a job."""

    def __init__(self, endpoint: "Endpoint", handle: int) -> None:
        self._endpoint = endpoint
        self.handle = handle

    def _call(self, name: str, *arguments: Any) -> None:
        self._endpoint._lib.check(getattr(self._endpoint._lib, name)(self._endpoint._pointer, self.handle, *arguments))

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self._endpoint.closed:
            self.remove()

    def attach(self, *connections: Connection) -> None:
        """Assigns `connections` to the job: messages sent on them from now on belong to the job."""
        for connection in connections:
            self._call("job_attach", connection.handle)

    def begin_iteration(self, size: int = 0) -> None:
        """Begins the next iteration. `size` is the number of bytes that the iteration sends on all connections of the
        job; 0 if it is not known."""
        self._call("job_begin_iteration", size)

    def end_iteration(self) -> None:
        """Marks the point at which the iteration has sent its data, and the job begins to compute."""
        self._call("job_end_iteration")

    @contextlib.contextmanager
    def iteration(self, size: int = 0) -> Iterator[None]:
        """Returns a context manager that begins an iteration and ends it. Put all sends of the iteration inside."""
        self.begin_iteration(size)
        try:
            yield
        finally:
            self.end_iteration()

    def set_rate(self, bits_per_second: int) -> None:
        """Sets the maximum rate of the job on the wire; 0 removes the limit."""
        self._call("job_set_rate", bits_per_second)

    def set_plan(self, slot: float, period: float, *, tolerance: float = 0.05, gradual: bool = False,
                 gradual_step: float = 0.1, valid_until: Optional[float] = None, clock_bound: float = 0) -> str:
        """Sets a plan (docs/explanation/plans.md): the iterations of the job begin to send at slot + k * period. Times
        are in seconds on the clock of Endpoint.now(). Returns "active", or the reason why the plan does not apply."""
        plan = lib.JobPlan()
        plan.slot_ns = round(slot * 1e9)
        plan.period_ns = round(period * 1e9)
        plan.tolerance = tolerance
        plan.correction = 1 if gradual else 0
        plan.gradual_step = gradual_step
        plan.valid_until_ns = nanoseconds(valid_until)
        plan.clock_bound_ns = round(clock_bound * 1e9)
        return self._set(plan)

    def set_plan_from_environment(self) -> str:
        """Sets the plan that a cluster scheduler passes in the environment (docs/reference/environment.md). Returns
        "none" if the environment contains no plan, else the result of set_plan()."""
        plan = lib.JobPlan(struct_size=ctypes.sizeof(lib.JobPlan))
        library = self._endpoint._lib
        code = library.plan_from_environment(self._endpoint._pointer, ctypes.byref(plan))
        if code == Code.NOTHING:
            return "none"
        library.check(code)
        return self._set(plan)

    def _set(self, plan: lib.JobPlan) -> str:
        state = ctypes.c_int32()
        self._call("job_set_plan", ctypes.byref(plan), ctypes.byref(state))
        return _PLAN_STATES[state.value] if 0 <= state.value < len(_PLAN_STATES) else str(state.value)

    def clear_plan(self) -> None:
        self._call("job_clear_plan")

    def report(self) -> dict:
        """Returns the state of the job as congestion control sees it. The keys are the members of mltcp_job_report in
        mltcp.h."""
        report = lib.JobReport()
        self._call("report_job", ctypes.byref(report))
        return lib.report_of(report)

    def remove(self) -> None:
        self._call("job_remove")
