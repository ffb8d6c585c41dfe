// Assigns the events of a trace of PyTorch's profiler to its steps. Finds when steps run on the GPU and what its
// kernels communicate. graph_of_events() (kineto_graph.h) makes a graph of the result.
//
// The host runs ahead of the GPU: when a step of the host ends, the GPU has hardly begun the step. So a kernel belongs
// to the step in which the host launched it, whenever the kernel runs. An unrecorded launch is assumed to be between
// the recorded calls with the next lower and the next higher number (`correlation`). If no recorded call has a lower
// number, the kernel belongs to no step.
//
// On the GPU a step begins when all kernels launched before it have ended, or when its first kernel begins, whichever
// is earlier. The step does not begin on the GPU before it begins on the host, or before the last communication of the
// previous step begins. It ends when its kernels and the host's step have ended, or when the next step begins. The last
// step is assumed to overlap a next step by as much as the previous step overlaps the last one. The first step lags
// behind the host by at most as much as the last step; if it lagged more, the GPU would have caught up and would wait
// for the host.
//
// A kernel's communication is described by its own arguments, or by those of the operation around its launch on the
// same thread. A group of operations (e.g. PyTorch's batch_isend_irecv()) is launched after its description: the kernel
// after "nccl:coalesced" runs the operations recorded before it. Several kernels may carry out one operation.
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
  const char* instead = nullptr;  ///< see KinetoDetails::instead
  Bytes size = 0;                 ///< bytes, as bytes_sent() expects them with GatherSize::total
  std::uint32_t workers = 1;
  std::int32_t group = -1;
  std::int64_t peer = -1;
  bool peer_of_group = false;
};

struct KinetoSteps {
  /// A step as the GPU runs it.
  struct Step : KinetoSpan {
    std::string name;  ///< one line; empty if the trace marks no steps
    Nanos launched;    ///< kernels that the host launches from this time on belong to the step
  };
  /// One kernel, or several kernels of one operation.
  struct Communication : KinetoSpan {
    const KinetoEvents::Communication* kernel = nullptr;
    Nanos launch;           ///< when the host launched it
    std::size_t step = 0;   ///< index in `steps`
    std::size_t first = 0;  ///< index in `transfers` of the first transfer
    std::size_t count = 0;  ///< number of transfers, at least 1; they run together
  };

  std::vector<Step> steps;                    ///< sorted by start; at least one
  Nanos launched_until;                       ///< kernels launched after this time belong to no step
  std::vector<Communication> communications;  ///< sorted by launch
  std::vector<KinetoTransfer> transfers;
  std::vector<std::string> warnings;  ///< one line each, about events that are left out or guessed

  /// Returns the index of the step that contains the launch. Returns an empty value if there is none.
  [[nodiscard]] std::optional<std::size_t> step_of(Nanos launch) const;
};

/// Finds the steps and communications of a trace. Marks the records in `events` that it uses. The result refers to
/// `events`. Throws InputError "FILE: cause; cure".
KinetoSteps find_kineto_steps(KinetoEvents& events, const KinetoKeep& keep = {});

}  // namespace mltcp::workload
