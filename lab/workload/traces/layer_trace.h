// Reader of the text format that describes training iterations layer by layer: the workload files of ASTRA-sim 1.0
// (Rashidi et al., ISPASS 2020). LIBRA (Won et al., ISPASS 2024), SimAI (Wang et al., NSDI 2025) and its generator AICB
// also write this format.
//
//   HYBRID_TRANSFORMER model_parallel_NPU_group: 8        first line, optional: how the training is parallelised
//   2                                                     number of layers; present if the first line is
//   qkv -1 5000 ALLREDUCE 1048576 5000 NONE 0 5000 ALLREDUCE 8388608 10        one line per layer; white space of any
//   mlp -1 9000 ALLREDUCE 1048576 9000 NONE 0 9000 ALLREDUCE 8388608 10        kind and amount separates columns
//
// A layer has 12 columns. The first two are name and dependency (reserved, not used). Each of the forward, the
// input-gradient and the weight-gradient pass has three columns: compute time, collective and size of the collective.
// The last column is the delay from the end of a collective of this layer to the use of its result. Times are in cycles
// of a 1 GHz clock, so in nanoseconds; sizes are in bytes. Under HYBRID_CUSTOMIZED a 13th column names the
// parallelism of the layer.
//
// The reader rejects ambiguous input with an InputError that names file, line and column. It tolerates other
// deviations: white space, CRLF, blank lines, a missing header, and a stated number of layers that is wrong, as in
// files published by AICB. `warnings` lists tolerated deviations that matter.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

/// The training loop named in the first line of a trace. It determines the order of the passes (see training_loop.h).
enum class Parallelism {
  unspecified,  ///< the file has no header
  data,
  model,
  hybrid_data_model,
  hybrid_model_data,
  hybrid_customized,
  hybrid_transformer,
  hybrid_transformer_fwd_in_bckwd,
  hybrid_dlrm,
  hybrid_dlrm_enhanced,
  distributed_inference,
  micro,
};

/// Returns the spelling in the first line of a trace, e.g. "HYBRID_TRANSFORMER". Returns "unspecified" if there is
/// none.
std::string_view name(Parallelism parallelism);

/// The workers that take part in a collective.
enum class Group {
  model,        ///< workers that share a layer (tensor parallel)
  data,         ///< workers that hold the same part of the model
  expert,       ///< workers among which the experts of a layer are spread (suffix _EP)
  expert_data,  ///< workers that hold the same experts (suffix _DP_EP)
};

std::string_view name(Group group);

enum class Pass : std::uint8_t { forward = 0, input_gradient = 1, weight_gradient = 2 };
inline constexpr std::size_t kPasses = 3;

/// Returns "forward", "input-gradient" or "weight-gradient".
std::string_view name(Pass pass);

/// One pass through one layer: computation, then a collective. `collective` is Collective::none if the pass has no
/// collective.
struct LayerPass {
  Nanos compute;
  Collective collective = Collective::none;
  Group group = Group::model;
  Bytes size = 0;  ///< bytes as stated in the file; see GatherSize for their meaning
};

struct Layer {
  std::string name;
  std::array<LayerPass, kPasses> passes;
  Nanos update;  ///< time from the end of a collective of this layer until its result can be used
  /// Under HYBRID_CUSTOMIZED, the parallelism of the layer. Under any other header, the parallelism of the whole trace.
  Parallelism parallelism = Parallelism::unspecified;
  std::uint32_t line = 0;  ///< line in the file, counted from 1

  [[nodiscard]] const LayerPass& pass(Pass which) const { return passes[static_cast<std::size_t>(which)]; }
};

struct Trace {
  std::string file;
  Parallelism parallelism = Parallelism::unspecified;
  std::vector<Layer> layers;  ///< in forward order; at least one
  /// Values from the header; 0 if the header does not state them.
  std::uint32_t model_group = 0;      ///< number of workers in a tensor-parallel group
  std::uint32_t expert_group = 0;     ///< number of workers in an expert-parallel group
  std::uint32_t pipeline_stages = 0;  ///< number of pipeline stages (pp)
  std::uint32_t all_workers = 0;      ///< number of all workers (all_gpus)
  /// HYBRID_DLRM: index of the last layer of the bottom MLP. The all-to-all of the embeddings must end before the next
  /// layer.
  std::uint32_t last_bottom_layer = 0;
  /// HYBRID_TRANSFORMER_FWD_IN_BCKWD: `checkpoints` are the layers whose inputs are stored. Before the backward pass of
  /// a layer in `recompute_before`, the forward pass is recomputed from the nearest checkpoint. Both lists contain
  /// ascending indices.
  std::vector<std::uint32_t> checkpoints;
  std::vector<std::uint32_t> recompute_before;
  /// Warnings of one line each, which begin with file and line.
  std::vector<std::string> warnings;
};

/// Parses a trace. `file` is used in messages. Throws InputError "FILE:LINE: COLUMN: cause; cure" in one line.
Trace parse_trace(std::string_view text, const std::string& file);

}  // namespace mltcp::workload
