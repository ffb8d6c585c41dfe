// Published models as training jobs. The compute time and the bytes of an iteration follow from the parameters and
// operations in the original papers, and from assumptions, all of which are arguments here.
//
//   compute             3 * forward operations per sample * batch / (peak * utilisation). The backward pass costs
//                       twice as much as the forward pass (Kaplan et al., "Scaling laws for neural language models",
//                       arXiv 2001.08361, section 2.1).
//   forward operations  2 * multiply-adds per sample for vision models; 2 * parameters * tokens for language models
//   gradients           parameters * bytes per parameter
//
//   data parallel       A compute phase, then a ring all-reduce of the gradients: one up phase per iteration. Nothing
//                       is sent between the forward and the backward pass, so both are one compute phase.
//   pipeline parallel   The job has stages * replicas workers. Each stage holds an equal share of the layers. There are
//                       three up phases. After the forward pass, activations go to the next stage. After the backward
//                       pass, the gradients of activations go to the previous stage. Then the replicas all-reduce their
//                       gradients. With p stages and m micro-batches of one sample, a pipeline computes for 1 + (p-1)/m
//                       times as long as without its bubble (Huang et al., "GPipe", NeurIPS 2019).
//   embedding parallel  Each worker holds some of the embedding tables, and a copy of the dense layers. There are two
//                       up phases. Before computing, an all-to-all exchanges the looked-up rows. After computing, an
//                       all-to-all exchanges the gradients of these rows, then an all-reduce sums the gradients of the
//                       dense layers.
//
// CASSINI's evaluation (arXiv 2308.00852) trains GPT-3 and DLRM with hybrid strategies, and all other models with data
// parallelism. Every worker of a job is modelled like the busiest worker.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

enum class Strategy { data, pipeline, embedding };

/// Returns a name such as "data parallel".
std::string_view name(Strategy strategy);

struct Model {
  std::string_view name;
  Strategy strategy = Strategy::data;
  /// Number of parameters whose gradients are reduced. For Strategy::embedding, only the dense parameters.
  std::uint64_t parameters = 0;
  double forward_operations = 0;  ///< floating-point operations per sample in the forward pass
  /// Default number of samples per iteration: for each worker, or for each replica with Strategy::pipeline.
  std::uint32_t batch = 0;
  std::uint64_t exchanged = 0;     ///< values per sample: sent to the next stage (pipeline), or looked up (embedding)
  std::string_view configuration;  ///< published configuration, e.g. "medium, 24 layers of 1024"
  std::string_view source;         ///< authors, venue and year, and where the paper states the numbers
};

/// Returns all models, ordered by family.
std::span<const Model> models();

/// Returns the model of this name, ignoring case, e.g. "vgg16". Throws InputError with all names if there is none.
const Model& find_model(std::string_view name);

struct ModelOptions {
  std::uint32_t workers = 8;  ///< number of workers, each with one accelerator; 2 to 1000000
  std::uint32_t batch = 0;    ///< number of samples, at most 1000000; 0: the model's default batch
  /// Peak rate of an accelerator in floating-point operations per second. Default: NVIDIA A100 in TF32 without sparsity
  /// (data sheet, 2021).
  double peak_flops = 156e12;
  double utilisation = 0.4;        ///< assumed share of the peak that a job reaches; above 0, at most 1
  double bytes_per_parameter = 4;  ///< bytes of a gradient or activation; above 0, at most 16; default: fp32
  /// Strategy::pipeline: number of replicas; counts as 1 if it does not divide `workers`.
  std::uint32_t replicas = 2;
};

/// Returns a job with the name and the phases of the model. Its other fields have default values. Bytes are those that
/// one worker sends. Throws InputError "cause; cure" if an option is out of range.
Job make_job(const Model& model, const ModelOptions& options = {});

}  // namespace mltcp::workload
