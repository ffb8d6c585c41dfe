// Published models as training jobs: compute time and bytes of an iteration follow from the parameters and operations
// stated in the original papers, and from assumptions that are all arguments here.
//
//   compute      3 * forward operations per sample * batch / (peak * utilisation)   the backward pass costs twice the
//                forward one (Kaplan et al., "Scaling laws for neural language models", arXiv 2001.08361, section 2.1)
//   forward      of vision models 2 * multiply-adds of the papers; of language models 2 * parameters * tokens, per
//                sample
//   gradients    parameters * bytes per parameter
//
//   data parallel       compute, then a ring all-reduce of the gradients: one up phase per iteration. The forward and
//                       the backward pass are one compute phase, as nothing is sent between them.
//   pipeline parallel   stages times replicas; a stage holds an equal share of the layers. Forward pass, activations to
//                       the next stage, backward pass, their gradients back, then an all-reduce among the replicas:
//                       three up phases. A pipeline of p stages with m micro-batches (of one sample) computes for
//                       1 + (p-1)/m times as long as it would without its bubble (Huang et al., "GPipe", NeurIPS 2019).
//   embedding parallel  each worker holds some of the embedding tables, and a copy of the dense layers. All-to-all of
//                       the looked-up rows, forward and backward pass, all-to-all of their gradients, then an
//                       all-reduce of the dense layers' gradients: two up phases, the second of two collectives.
//
// These are the strategies in CASSINI's evaluation (arXiv 2308.00852): GPT-3 and DLRM hybrid, the others data parallel.
// All workers of a job are modelled like the busiest one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

enum class Strategy { data, pipeline, embedding };

/// "data parallel" and so on.
std::string_view name(Strategy strategy);

struct Model {
  std::string_view name;
  Strategy strategy = Strategy::data;
  /// Number of parameters with gradients to reduce; of Strategy::embedding only the dense ones.
  std::uint64_t parameters = 0;
  double forward_operations = 0;   ///< floating-point operations of the forward pass per sample
  std::uint32_t batch = 0;         ///< default samples per worker and iteration; Strategy::pipeline: per replica
  std::uint64_t exchanged = 0;     ///< values per sample that a stage passes on, or that a worker looks up
  std::string_view configuration;  ///< which one of several published configurations
  std::string_view source;         ///< authors, venue, year, and place of the numbers
};

/// All models, by family.
std::span<const Model> models();

/// Ignores case: "vgg16". Throws InputError that names the nearest one or all of them.
const Model& find_model(std::string_view name);

struct ModelOptions {
  std::uint32_t workers = 8;       ///< 2 to 1000000, one accelerator each
  std::uint32_t batch = 0;         ///< samples, as in Model::batch; 0 = that; at most 1000000
  double peak_flops = 156e12;      ///< per second; default: NVIDIA A100 in TF32 without sparsity (data sheet, 2021)
  double utilisation = 0.4;        ///< share of the peak that is reached, above 0, at most 1: an assumption
  double bytes_per_parameter = 4;  ///< of gradients and activations; default: fp32; above 0, at most 16
  std::uint32_t replicas = 2;      ///< Strategy::pipeline: number of replicas if it divides the workers, otherwise 1
};

/// A job named after the model, with only its phases set. Bytes are those that one worker sends. Throws InputError
/// "cause; cure" for options out of range.
Job make_job(const Model& model, const ModelOptions& options = {});

}  // namespace mltcp::workload
