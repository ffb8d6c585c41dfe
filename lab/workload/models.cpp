// The table of models, and jobs made from these models (see models.h).
#include "mltcp/lab/workload/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {
namespace {

constexpr std::uint64_t kMillion = 1'000'000;
constexpr double kGiga = 1e9;
constexpr std::uint32_t kMaxWorkers = 1'000'000;
constexpr std::uint32_t kMaxBatch = 1'000'000;
constexpr double kMaxBytesPerParameter = 16;

/// Returns a vision model, given its number of multiply-adds.
constexpr Model vision(std::string_view name, std::uint64_t parameters, double multiply_adds, std::uint32_t batch,
                       std::string_view source) {
  return {name, Strategy::data, parameters, 2 * multiply_adds, batch, 0, "224 x 224 pixels", source};
}
constexpr Model language(std::string_view name, std::uint64_t parameters, std::uint32_t tokens, std::uint32_t batch,
                         std::string_view configuration, std::string_view source) {
  return {name, Strategy::data, parameters, 2.0 * static_cast<double>(parameters) * tokens, batch,
          0,    configuration,  source};
}

// Number of DLRM's dense parameters: the layers of 2048 neurons, the layers of 4096 neurons, and the layer between
// these two groups. The layer between the groups has two inputs: 64 looked-up rows of 128 values, and 2048 values of
// the layer before it.
constexpr std::uint64_t kDlrmDense = 8 * 2048 * 2048 + (64 * 128 + 2048) * 4096 + 16 * 4096 * 4096;
// GPT-3 XL: tokens per sample, and values per token at the boundary of two layers.
constexpr std::uint64_t kGpt3Tokens = 2048;
constexpr std::uint64_t kGpt3Width = 2048;

constexpr std::string_view kVggPaper =
    "Simonyan and Zisserman, ICLR 2015, table 2 (133, 138, 144 million for A, D, E); multiply-adds of D and E: He et "
    "al., CVPR 2016; of A: counted from table 1";
constexpr std::string_view kGpt2Paper = "Radford et al., \"Language models are unsupervised multitask learners\", 2019";

constexpr std::array<Model, 13> kTable{{
    vision("VGG11", 133 * kMillion, 7.6 * kGiga, 256, kVggPaper),
    vision("VGG16", 138 * kMillion, 15.3 * kGiga, 128, kVggPaper),
    vision("VGG19", 144 * kMillion, 19.6 * kGiga, 128, kVggPaper),
    vision("ResNet50", 25'600'000, 3.8 * kGiga, 256,
           "He et al., CVPR 2016, table 1 (operations); parameters as in Zagoruyko and Komodakis, BMVC 2016"),
    vision("WideResNet101", 126'900'000, 22.8 * kGiga, 96,
           "Zagoruyko and Komodakis, BMVC 2016, widening factor 2 of the 101 layers of He et al., counted from there"),
    language("BERT", 110 * kMillion, 512, 32, "base", "Devlin et al., NAACL 2019, section 3 (110M)"),
    language("RoBERTa", 355 * kMillion, 512, 24, "large", "Liu et al., arXiv 1907.11692, 2019, section 5 (355M)"),
    language("CamemBERT", 110 * kMillion, 512, 32, "base", "Martin et al., ACL 2020 (110M)"),
    language("XLM", 250 * kMillion, 256, 64, "XLM-15",
             "Lample and Conneau, NeurIPS 2019; Conneau et al., ACL 2020, appendix (250M)"),
    language(
        "GPT-1", 117 * kMillion, 512, 32, "12 layers of 768",
        "Radford et al., \"Improving language understanding by generative pre-training\", 2018; 117M as in Radford "
        "et al., 2019, table 2"),
    language("GPT-2", 345 * kMillion, 1024, 12, "medium, 24 layers of 1024", kGpt2Paper),
    {"GPT-3", Strategy::pipeline, 1300 * kMillion, 2.0 * 1300e6 * kGpt3Tokens, 4, kGpt3Tokens* kGpt3Width,
     "XL, 24 layers of 2048: scaled to fit", "Brown et al., NeurIPS 2020, table 2.1 (1.3B)"},
    {"DLRM", Strategy::embedding, kDlrmDense, 2.0 * kDlrmDense, 16384, std::uint64_t{64} * 128,
     "8 layers of 2048, 16 of 4096, 64 tables of rows of 128",
     "Naumov et al., arXiv 1906.00091, 2019; sizes as in Wang et al., \"TopoOpt\", NSDI 2023"},
}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

void check(const ModelOptions& options) {
  if (options.workers < 2 || options.workers > kMaxWorkers)
    throw InputError(fmt::format("the job has {} workers; give 2 to {}", options.workers, kMaxWorkers));
  if (options.batch > kMaxBatch)
    throw InputError(fmt::format("a batch of {} samples is out of range; give at most {}", options.batch, kMaxBatch));
  if (!(options.peak_flops >= 1e9 && options.peak_flops <= 1e18))
    throw InputError(
        fmt::format("a peak of {} operations per second is out of range; give 1e9 to 1e18", options.peak_flops));
  if (!(options.utilisation > 0 && options.utilisation <= 1))
    throw InputError(
        fmt::format("a utilisation of {} is out of range; give one above 0 and at most 1", options.utilisation));
  if (!(options.bytes_per_parameter > 0 && options.bytes_per_parameter <= kMaxBytesPerParameter))
    throw InputError(fmt::format("{} bytes per parameter are out of range; give a number above 0 and at most {}",
                                 options.bytes_per_parameter, kMaxBytesPerParameter));
  if (options.replicas < 1) throw InputError("the model has 0 replicas; give 1 or more");
}

Phase compute(double seconds, std::string_view label) {
  Phase phase;
  phase.compute = Nanos::from_seconds(seconds);
  phase.label = label;
  return phase;
}

Phase communicate(Collective collective, double bytes, std::uint32_t workers, std::string_view label) {
  Phase phase;
  phase.kind = Phase::Kind::communicate;
  const auto size = static_cast<Bytes>(std::ceil(bytes));
  // Sizes fit into 63 bits, even for the largest model with the maximum number of bytes per parameter.
  phase.bytes = collective == Collective::none ? size : *bytes_sent(collective, size, workers);
  phase.label = label;
  return phase;
}

}  // namespace

std::string_view name(Strategy strategy) {
  using enum Strategy;
  return word_of<Strategy>(
      strategy, {{data, "data parallel"}, {pipeline, "pipeline parallel"}, {embedding, "embedding parallel"}});
}

std::span<const Model> models() { return kTable; }

const Model& find_model(std::string_view name) {
  const std::string wanted = lower(name);
  for (const Model& model : kTable)
    if (lower(model.name) == wanted) return model;
  std::string known;
  for (const Model& model : kTable) known += (known.empty() ? "" : ", ") + std::string(model.name);
  throw InputError(fmt::format("{} is not a known model; write one of {}", in_quotes(name), known));
}

Job make_job(const Model& model, const ModelOptions& options) {
  check(options);
  const std::uint32_t workers = options.workers;
  const double batch = options.batch > 0 ? options.batch : model.batch;
  const double forward = model.forward_operations * batch / (options.peak_flops * options.utilisation);
  const double gradients = static_cast<double>(model.parameters) * options.bytes_per_parameter;
  const double exchanged = static_cast<double>(model.exchanged) * batch * options.bytes_per_parameter;
  Job job;
  job.name = model.name;
  switch (model.strategy) {
    case Strategy::data:
      job.phases = {compute(3 * forward, "forward and backward"),
                    communicate(Collective::all_reduce, gradients, workers, "gradients")};
      break;
    case Strategy::pipeline: {
      const std::uint32_t replicas = workers % options.replicas == 0 ? options.replicas : 1;
      const std::uint32_t stages = workers / replicas;
      const double stage = forward / stages * (1 + (stages - 1) / batch);
      const auto pass = [&](double seconds, std::string_view what, std::string_view sent) {
        job.phases.push_back(compute(seconds, what));
        if (stages > 1) job.phases.push_back(communicate(Collective::none, exchanged, workers, sent));
      };
      pass(stage, "forward", "activations");
      pass(2 * stage, "backward", "gradients of activations");
      if (replicas > 1)
        job.phases.push_back(communicate(Collective::all_reduce, gradients / stages, replicas, "gradients"));
      break;
    }
    case Strategy::embedding:
      job.phases = {communicate(Collective::all_to_all, exchanged, workers, "embeddings"),
                    compute(3 * forward, "forward and backward"),
                    communicate(Collective::all_to_all, exchanged, workers, "gradients of embeddings"),
                    communicate(Collective::all_reduce, gradients, workers, "gradients")};
      break;
  }
  return job;
}

}  // namespace mltcp::workload
