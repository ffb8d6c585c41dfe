// Runs the training loop of a layer-by-layer description: one iteration of one worker.
//
// The order of the passes is that of the training loops of ASTRA-sim 1.0 (Rashidi et al., ISPASS 2020):
//
//   forward       layers in order: compute, then the forward collective, which blocks
//   backward      layers in reverse order: input-gradient compute and its collective, then weight-gradient compute,
//                 then the weight-gradient collective, which overlaps with what follows
//   DATA          no collectives but those of the weight gradients; weight gradient before input gradient, and no
//                 input gradient for the first layer
//   MODEL         no weight-gradient collectives; like all HYBRID_* but the transformers' and DLRM's, no
//                 input-gradient collective for the first layer
//   HYBRID_TRANSFORMER_FWD_IN_BCKWD   as above, with activations recomputed from checkpoints in the backward pass
//   HYBRID_DLRM   forward all-to-all of the embeddings (layer 0); weight before input gradient; the gradients'
//                 all-to-all starts when the top MLP is done and overlaps with the backward pass of the bottom MLP
//   DISTRIBUTED_INFERENCE             forward only
//   MICRO         the weight-gradient collective of the first layer and nothing else
//   no header     as HYBRID_TRANSFORMER: every collective that the file names
//
// docs/reference/workload.md describes what the loop leaves out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/traces/layer_trace.h"

namespace mltcp::workload {

/// Which collectives cross the shared link. Others are left out: they take no time and send nothing.
enum class Network {
  weight_gradient,  ///< those of the weight-gradient pass; the others stay within a server
  inter_server,     ///< all but tensor-parallel ones, including all-to-alls among experts
  all,              ///< all of them
};

/// "weight-gradient", "inter-server", "all"; empty for any other text.
std::optional<Network> network_from(std::string_view text);
std::string_view name(Network network);

struct LoopOptions {
  /// Number of workers that reduce weight gradients, data-parallel and experts' alike; 0: by the header of the trace
  /// (all_gpus / (model group * pp)), or 2 if the header does not have it. Model and expert groups have the header's
  /// sizes, or else this one.
  std::uint32_t workers = 0;
  Network network = Network::all;
};

/// Number of workers in a collective of `group`; at least 1.
std::uint32_t group_size(const Trace& trace, Group group, const LoopOptions& options);

struct LoopStep {
  enum class Kind : std::uint8_t { compute, update, send };  ///< update: a delay, which no phase is named after
  Kind kind = Kind::compute;
  Pass pass = Pass::forward;
  bool overlap = false;  ///< later steps do not wait for the bytes
  std::uint32_t layer = 0;
  Nanos time;
  Bytes bytes = 0;  ///< sent by one worker; above 0
};
/// One iteration of the loop: computation, and the collectives of several workers that cross the network.
std::vector<LoopStep> run_loop(const Trace& trace, const LoopOptions& options);

}  // namespace mltcp::workload
