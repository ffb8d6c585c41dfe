// Converts a trace to a job: one training iteration as phases of the worker whose link is shared.
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
// An iteration ends when its bytes have been delivered. What the job model can't express is said in docs/workload.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/trace.h"

namespace mltcp::workload {

/// Which collectives cross the shared link. Others are omitted: they take no time and send nothing.
enum class Network {
  weight_gradient,  ///< those of the weight-gradient pass; the others stay within a server
  inter_server,     ///< all but tensor-parallel ones, including all-to-alls among experts
  all,              ///< all of them
};

/// "weight-gradient", "inter-server", "all"; empty for any other text.
std::optional<Network> network_from(std::string_view text);
std::string_view name(Network network);

struct MappingOptions {
  /// Number of workers that reduce weight gradients, data-parallel and experts' alike; 0: by the header of the trace
  /// (all_gpus / (model group * pp)), or 2 if that does not say. Model and expert groups have the header's sizes, or
  /// else this one.
  std::uint32_t workers = 0;
  Network network = Network::weight_gradient;
  GatherSize gather_size = GatherSize::total;
  double compute_scale = 1.0;  ///< factor of all compute times and update delays; above 0, at most 1e6
  double bytes_scale = 1.0;    ///< factor of the bytes that a worker sends; above 0, at most 1e6
};

/// Throws InputError that begins with `file` if a number is out of range.
void check(const MappingOptions& options, const std::string& file);

/// Number of workers in a collective of `group`; at least 1.
std::uint32_t group_size(const Trace& trace, Group group, const MappingOptions& options);

/// Scaled bytes that one worker sends over the shared link for the collective of this layer and pass. 0 if there is
/// none: the trace has none, its training loop does not run it, it does not cross the shared link, or it has a single
/// worker. `layer` is an index in trace.layers. Throws InputError if the bytes do not fit into 62 bits.
Bytes sent_bytes(const Trace& trace, std::size_t layer, Pass pass, const MappingOptions& options);

/// A step of the training loop, before steps are merged and scaled.
struct LoopStep {
  enum class Kind : std::uint8_t { compute, update, send };  ///< update: a delay, which no phase is named after
  Kind kind = Kind::compute;
  Pass pass = Pass::forward;
  bool overlap = false;  ///< what is sent blocks nothing that follows
  std::uint32_t layer = 0;
  Nanos time;
  Bytes bytes = 0;  ///< that one worker sends, scaled
};
/// One iteration of the loop: computation, and the collectives that cross the network. Throws InputError as above.
std::vector<LoopStep> run_loop(const Trace& trace, const MappingOptions& options);

/// The phases of one iteration. Adjacent compute phases are merged, as are adjacent overlapping communications; phases
/// of length 0 are omitted. There may be no communication at all. Throws InputError if options are out of range or a
/// sum exceeds 62 bits.
std::vector<Phase> to_phases(const Trace& trace, const MappingOptions& options = {});

/// A job with these phases and defaults otherwise. Throws InputError, also if it would send nothing.
Job to_job(const Trace& trace, const std::string& job_name, const MappingOptions& options = {});

}  // namespace mltcp::workload
