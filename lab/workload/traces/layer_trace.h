// Reader of the text format in which training iterations are described layer by layer: the workload files of
// ASTRA-sim 1.0 (Rashidi et al., ISPASS 2020), which LIBRA (Won et al., ISPASS 2024), SimAI (Wang et al., NSDI 2025)
// and its generator AICB write too.
//
//   HYBRID_TRANSFORMER model_parallel_NPU_group: 8        first line, optional: how the training is parallelised
//   2                                                     second line, there if the first is: the number of layers
//   qkv -1 5000 ALLREDUCE 1048576 5000 NONE 0 5000 ALLREDUCE 8388608 10        a line a layer, columns apart by white
//   mlp -1 9000 ALLREDUCE 1048576 9000 NONE 0 9000 ALLREDUCE 8388608 10        space of any kind and amount
//
// A layer has 12 columns: name, dependency (reserved, not used), then compute time, collective and its size for each of
// the forward, the input-gradient and the weight-gradient pass, and the delay between the end of a collective of this
// layer and the use of its result. Times are in cycles of a 1 GHz clock, so in nanoseconds; sizes are in bytes.
// Under HYBRID_CUSTOMIZED a 13th column names the policy of the layer.
//
// The reader rejects ambiguous input (InputError that names file, line and column) and tolerates other deviations:
// white space, CRLF, blank lines, a missing header, and a layer count that differs from the number of layers, as in
// files published by AICB. `warnings` lists what it tolerated, if it matters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

/// The training loop named in the first line; determines the order of the passes (see training_loop.h).
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

/// As spelled in the first line of a trace: "HYBRID_TRANSFORMER"; "unspecified" if there is none.
std::string_view name(Parallelism parallelism);

/// The participants of a collective.
enum class Group {
  model,        ///< workers that share a layer (tensor parallel)
  data,         ///< workers that hold the same part of the model
  expert,       ///< workers among which the experts of a layer are spread (suffix _EP)
  expert_data,  ///< workers that hold the same experts (suffix _DP_EP)
};

std::string_view name(Group group);

enum class Pass : std::uint8_t { forward = 0, input_gradient = 1, weight_gradient = 2 };
inline constexpr std::size_t kPasses = 3;

/// "forward", "input-gradient", "weight-gradient".
std::string_view name(Pass pass);

/// One pass through one layer: compute, then a collective (Collective::none: no collective).
struct LayerPass {
  Nanos compute;
  Collective collective = Collective::none;
  Group group = Group::model;
  Bytes size = 0;  ///< as in the file; see GatherSize for its meaning
};

struct Layer {
  std::string name;
  std::array<LayerPass, kPasses> passes;
  Nanos update;  ///< time from the end of a collective of this layer until its result can be used
  /// Under HYBRID_CUSTOMIZED the layer's own; otherwise the trace's.
  Parallelism parallelism = Parallelism::unspecified;
  std::uint32_t line = 0;  ///< in the file, from 1

  [[nodiscard]] const LayerPass& pass(Pass which) const { return passes[static_cast<std::size_t>(which)]; }
};

struct Trace {
  std::string file;
  Parallelism parallelism = Parallelism::unspecified;
  std::vector<Layer> layers;  ///< in forward order; at least one
  /// From the header; 0 if not stated.
  std::uint32_t model_group = 0;      ///< workers of a tensor-parallel group
  std::uint32_t expert_group = 0;     ///< workers of an expert-parallel group
  std::uint32_t pipeline_stages = 0;  ///< pp
  std::uint32_t all_workers = 0;      ///< all_gpus
  /// HYBRID_DLRM: index of the last layer of the bottom MLP, after which the embeddings' all-to-all must be complete.
  std::uint32_t last_bottom_layer = 0;
  /// HYBRID_TRANSFORMER_FWD_IN_BCKWD: layers whose input is kept, and layers before whose backward pass the forward
  /// pass is recomputed from the nearest checkpoint. Ascending indices.
  std::vector<std::uint32_t> checkpoints;
  std::vector<std::uint32_t> recompute_before;
  /// Warnings, each one line that begins with file and line.
  std::vector<std::string> warnings;
};

/// `file` is used in messages. Throws InputError: "FILE:LINE: COLUMN: cause; cure" in one line.
Trace parse_trace(std::string_view text, const std::string& file);

}  // namespace mltcp::workload
