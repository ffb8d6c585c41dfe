// What of a trace of PyTorch's profiler belongs to which of its steps, when these run on the GPU, and what its kernels
// communicate: what all readers of such traces begin with.
//
// The host runs ahead of the GPU: a step of the host is over when the GPU has hardly begun with it. So what the host
// launched in a step belongs to it, whenever it runs. A kernel whose launch was not recorded was launched between the
// calls of the numbers (`correlation`) next to its own; before the first of them, it belongs to no step.
//
// On the GPU a step begins when what was launched before it has ended, or when the first kernel launched in it begins,
// whichever is earlier; but not before the host's step begins, nor before the last communication of the step before.
// It ends with what was launched in it and with the host's step, or where the next one begins; of the last, as much is
// taken to go on beside a next one as of the step before. The first is behind the
// host's by no more than the last one ends behind it: otherwise the GPU has caught up, and waits for the host.
//
// What a kernel communicates stands in its own arguments, or in those of what encloses its launch on its thread. A
// group of operations (PyTorch's batch_isend_irecv() and its kind) is launched after what tells of it: the kernel that
// follows "nccl:coalesced" has what was recorded before that. Kernels of one operation communicate it together.
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
  /// On the GPU.
  struct Step : KinetoSpan {
    std::string name;  ///< in one line; empty if the trace marks none
    Nanos launched;    ///< since when what the host launches belongs to it
  };
  /// One kernel, or several of one operation.
  struct Communication : KinetoSpan {
    const KinetoEvents::Communication* kernel = nullptr;
    Nanos launch;           ///< in its step
    std::size_t step = 0;   ///< index in `steps`
    std::size_t first = 0;  ///< index in `transfers`
    std::size_t count = 0;  ///< of transfers, which go on together; at least one
  };

  std::vector<Step> steps;                    ///< by start; at least one
  Nanos launched_until;                       ///< what is launched later belongs to no step
  std::vector<Communication> communications;  ///< by launch
  std::vector<KinetoTransfer> transfers;
  std::vector<std::string> warnings;  ///< what was left out or guessed

  /// The step of a launch; nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> step_of(Nanos launch) const;
};

/// Marks in `events` what is used, and refers to them. Throws InputError "FILE: cause; cure".
KinetoSteps find_kineto_steps(KinetoEvents& events, const KinetoKeep& keep = {});

}  // namespace mltcp::workload
