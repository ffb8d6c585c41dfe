// Assigns the events of a trace of PyTorch's profiler to its steps, and finds when steps run on the GPU and what its
// kernels communicate. All readers of such traces begin with this.
//
// The host runs ahead of the GPU: when a step of the host ends, the GPU has hardly begun it. So a kernel belongs to the
// step in which the host launched it, whenever it runs. If its launch was not recorded, it lies between the calls with
// the next lower and the next higher number (`correlation`); before the first of them, the kernel belongs to no step.
//
// On the GPU a step begins when all kernels launched before it have ended, or when its first kernel begins, whichever
// is earlier; but not before the host's step begins, nor before the last communication of the step before begins. It
// ends when its kernels and the host's step have ended, or when the next step begins. The last step is taken to overlap
// with a next one by as much as the step before it does. The first step lags the host by at most as much as the last
// one: otherwise the GPU has caught up, and waits for the host.
//
// A kernel's communication is described by its own arguments, or by those of the operation around its launch on its
// thread. A group of operations (e.g. PyTorch's batch_isend_irecv()) is launched after its description: the kernel
// after "nccl:coalesced" has the operations recorded before it. Several kernels may carry out one operation.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/lab/workload/traces/kineto_events.h"

namespace mltcp::workload {

struct KinetoTransfer {
  KinetoDetails::Kind kind = KinetoDetails::Kind::unknown;
  Collective collective = Collective::none;
  const char* instead = nullptr;  ///< as in KinetoDetails
  Bytes size = 0;                 ///< as for bytes_sent() with GatherSize::total
  std::uint32_t workers = 1;
  std::int32_t group = -1;
  std::int64_t peer = -1;
  bool peer_of_group = false;
};

struct KinetoSteps {
  /// A step on the GPU.
  struct Step : KinetoSpan {
    std::string name;  ///< in one line; empty if the trace marks no steps
    Nanos launched;    ///< kernels launched from this time on belong to it
  };
  /// One kernel, or several kernels of one operation.
  struct Communication : KinetoSpan {
    const KinetoEvents::Communication* kernel = nullptr;
    Nanos launch;           ///< in its step
    std::size_t step = 0;   ///< index in `steps`
    std::size_t first = 0;  ///< index in `transfers`
    std::size_t count = 0;  ///< number of transfers, which run together; at least one
  };

  std::vector<Step> steps;                    ///< by start; at least one
  Nanos launched_until;                       ///< kernels launched later belong to no step
  std::vector<Communication> communications;  ///< by launch
  std::vector<KinetoTransfer> transfers;
  std::vector<std::string> warnings;  ///< on events left out or guessed

  /// The step of a launch; empty if there is none.
  [[nodiscard]] std::optional<std::size_t> step_of(Nanos launch) const;
};

/// Marks the records that it uses in `events`. The result refers to `events`. Throws InputError "FILE: cause; cure".
KinetoSteps find_kineto_steps(KinetoEvents& events, const KinetoKeep& keep = {});

}  // namespace mltcp::workload
