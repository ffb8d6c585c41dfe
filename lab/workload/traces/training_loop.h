// Runs the training loop of a layer-by-layer description: one iteration of one worker.
//
// The order of the passes is that of the training loops of ASTRA-sim 1.0 (Rashidi et al., ISPASS 2020):
//
//   forward       layers in order: compute, then the forward collective, which blocks
//   backward      layers in reverse order: input-gradient compute and its collective, then weight-gradient compute,
//                 then the weight-gradient collective, which overlaps with later steps
//   DATA          only the collectives of the weight gradients; weight gradient before input gradient; no input
//                 gradient for the first layer
//   MODEL         no weight-gradient collectives; no input-gradient collective for the first layer, as in all HYBRID_*
//                 loops except those of transformers and DLRM
//   HYBRID_TRANSFORMER_FWD_IN_BCKWD   like HYBRID_TRANSFORMER, but the backward pass recomputes activations from
//                                     checkpoints
//   HYBRID_DLRM   forward all-to-all of the embeddings (layer 0); weight gradient before input gradient; the all-to-all
//                 of the gradients starts after the top MLP and overlaps with the backward pass of the bottom MLP
//   DISTRIBUTED_INFERENCE             only the forward pass
//   MICRO         only the weight-gradient collective of the first layer
//   no header     like HYBRID_TRANSFORMER: every collective that the file names
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

/// Selects the collectives that cross the shared link. All others are left out: they take no time and send nothing.
enum class Network {
  weight_gradient,  ///< collectives of the weight-gradient pass; all others stay within a server
  inter_server,     ///< all collectives but tensor-parallel ones; includes all-to-alls among experts
  all,              ///< all collectives
};

/// Converts "weight-gradient", "inter-server" or "all". Returns an empty value for any other text.
std::optional<Network> network_from(std::string_view text);
std::string_view name(Network network);

struct LoopOptions {
  /// Number of workers that reduce weight gradients together (Group::data and Group::expert_data). If 0, the number is
  /// all_gpus / (model group * pp) from the header of the trace, where pp is 1 if it is missing. The number is 2 if the
  /// header lacks all_gpus or the model group. Model and expert groups have the sizes stated in the header, or this
  /// number of workers if the header states no size.
  std::uint32_t workers = 0;
  Network network = Network::all;
};

/// Returns the number of workers in a collective of `group`, at least 1.
std::uint32_t group_size(const Trace& trace, Group group, const LoopOptions& options);

struct LoopStep {
  enum class Kind : std::uint8_t { compute, update, send };  ///< an update is a delay after a collective
  Kind kind = Kind::compute;
  Pass pass = Pass::forward;
  bool overlap = false;  ///< true if later steps do not wait for the bytes
  std::uint32_t layer = 0;
  Nanos time;
  Bytes bytes = 0;  ///< bytes that one worker sends; above 0 if `kind` is send
};
/// Returns the steps of one iteration: computation, and those collectives of several workers that cross the network.
std::vector<LoopStep> run_loop(const Trace& trace, const LoopOptions& options);

}  // namespace mltcp::workload
