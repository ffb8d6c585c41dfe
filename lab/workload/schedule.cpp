// The training loops, written as phases (see schedule.h).
#include "mltcp/lab/workload/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mltcp/base/error.h"

namespace mltcp::workload {
namespace {

constexpr std::uint32_t kDefaultWorkers = 2;
constexpr std::uint32_t kMostWorkers = 10'000'000;
constexpr double kMostScale = 1e6;
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;  // of nanoseconds and bytes, so that sums of two fit

// There may be millions, so it holds no text.
using Step = LoopStep;

std::string label(const Trace& trace, const Step& step) {
  return fmt::format("{} {}", trace.layers[step.layer].name, name(step.pass));
}

void check(const Trace& trace, const MappingOptions& options) {
  check(options, trace.file);
  if (trace.layers.empty())
    throw InputError(fmt::format("{}: layers: there is none; give a trace with at least one layer", trace.file));
}

// Whether the training loop runs the collective of this layer and pass.
bool issued(const Trace& trace, Parallelism parallelism, std::size_t layer, Pass pass) {
  const bool weight = pass == Pass::weight_gradient;
  switch (parallelism) {
    case Parallelism::unspecified:
    case Parallelism::hybrid_transformer:
    case Parallelism::hybrid_transformer_fwd_in_bckwd:
      return true;
    case Parallelism::hybrid_data_model:
    case Parallelism::hybrid_model_data:
      return pass != Pass::input_gradient || layer > 0;
    case Parallelism::data:
      return weight;
    case Parallelism::model:
      return !weight;
    case Parallelism::hybrid_customized:
      return issued(trace, trace.layers[layer].parallelism, layer, pass);
    case Parallelism::hybrid_dlrm:
    case Parallelism::hybrid_dlrm_enhanced:
      if (pass == Pass::forward)
        return layer == 0 && trace.layers[0].pass(Pass::forward).collective == Collective::all_to_all;
      return weight || layer == 0;
    case Parallelism::distributed_inference:
      return pass == Pass::forward;
    case Parallelism::micro:
      return weight && layer == 0;
  }
  return false;
}

bool selected(Network network, Pass pass, Group group) {
  switch (network) {
    case Network::weight_gradient:
      return pass == Pass::weight_gradient;
    case Network::inter_server:
      return pass == Pass::weight_gradient || group != Group::model;
    case Network::all:
      return true;
  }
  return false;
}

std::uint32_t data_workers(const Trace& trace, const MappingOptions& options) {
  if (options.workers > 0) return options.workers;
  const std::uint64_t copy = std::uint64_t{trace.model_group} * std::max(trace.pipeline_stages, 1U);
  if (trace.all_workers == 0 || copy == 0) return kDefaultWorkers;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(trace.all_workers / copy, 1));
}

// Runs the training loop once and writes down its steps.
class Loop {
 public:
  Loop(const Trace& trace, const MappingOptions& options) : trace_(trace), options_(options) {}

  std::vector<Step> run() {
    const auto layers = trace_.layers.size();
    switch (trace_.parallelism) {
      case Parallelism::micro:
        send(0, Pass::weight_gradient, false);
        break;
      case Parallelism::distributed_inference:
        forward(0, layers);
        break;
      case Parallelism::data:
      case Parallelism::hybrid_dlrm:
      case Parallelism::hybrid_dlrm_enhanced:
        forward(0, layers);
        backward_weight_first();
        break;
      default:
        forward(0, layers);
        backward_input_first();
    }
    delay_next_iteration();
    return std::move(steps_);
  }

 private:
  void forward(std::size_t from, std::size_t to) {
    for (std::size_t layer = from; layer < to; ++layer) {
      compute(layer, Pass::forward);
      send(layer, Pass::forward, false);
    }
  }

  void backward_input_first() {
    for (std::size_t layer = trace_.layers.size(); layer-- > 0;) {
      if (trace_.parallelism == Parallelism::hybrid_transformer_fwd_in_bckwd) recompute_for(layer);
      compute(layer, Pass::input_gradient);
      send(layer, Pass::input_gradient, false);
      compute(layer, Pass::weight_gradient);
      send(layer, Pass::weight_gradient, true);
    }
  }

  // Loops without input-gradient collectives but that of the embeddings, which nothing waits for before the end of
  // the iteration.
  void backward_weight_first() {
    const bool dlrm = trace_.parallelism != Parallelism::data;
    for (std::size_t layer = trace_.layers.size(); layer-- > 0;) {
      compute(layer, Pass::weight_gradient);
      send(layer, Pass::weight_gradient, true);
      if (layer > 0) compute(layer, Pass::input_gradient);
      if (dlrm && layer == std::size_t{trace_.last_bottom_layer} + 1) send(0, Pass::input_gradient, true);
    }
  }

  void recompute_for(std::size_t layer) {
    const auto& starts = trace_.recompute_before;
    if (!std::binary_search(starts.begin(), starts.end(), layer)) return;
    const auto after = std::upper_bound(trace_.checkpoints.begin(), trace_.checkpoints.end(), layer);
    if (after != trace_.checkpoints.begin()) forward(*std::prev(after), layer);
  }

  void compute(std::size_t layer, Pass pass) {
    const Nanos time = trace_.layers[layer].pass(pass).compute;
    steps_.push_back({Step::Kind::compute, pass, false, static_cast<std::uint32_t>(layer), time, 0});
  }

  void send(std::size_t layer, Pass pass, bool overlap) {
    const Bytes bytes = sent_bytes(trace_, layer, pass, options_);
    if (bytes == 0) return;
    steps_.push_back({Step::Kind::send, pass, overlap, static_cast<std::uint32_t>(layer), Nanos(), bytes});
    last_update_ = trace_.layers[layer].update;
    // What waits for a blocking collective waits for the update of its result too.
    if (!overlap) steps_.push_back(update());
  }

  // A collective that ends the iteration delays the next one by its update. The updates of other overlapping
  // collectives pass while there is still something to compute or to send.
  void delay_next_iteration() {
    if (!steps_.empty() && steps_.back().kind == Step::Kind::send && steps_.back().overlap)
      steps_.insert(steps_.begin(), update());
  }

  Step update() const { return {Step::Kind::update, Pass::forward, false, 0, last_update_, 0}; }

  const Trace& trace_;
  const MappingOptions& options_;
  std::vector<Step> steps_;
  Nanos last_update_;
};

// Of a phase made of the steps from `first` to `last`; null: none of them gives it a name.
std::string label(const Trace& trace, const Step* first, const Step* last) {
  if (first == nullptr) return {};
  std::string text = label(trace, *first);
  if (first->layer != last->layer || first->pass != last->pass) text += " .. " + label(trace, *last);
  return text;
}

}  // namespace

void check(const MappingOptions& options, const std::string& file) {
  const auto fail = [&](std::string_view option, std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}: {}; {}", file, option, cause, cure));
  };
  for (const auto& [scale, key] :
       {std::pair{options.compute_scale, "compute_scale"}, std::pair{options.bytes_scale, "bytes_scale"}})
    if (!(scale > 0 && scale <= kMostScale))
      fail(key, fmt::format("{} is out of range", scale), "give a factor above 0 and at most 1e6");
  if (options.workers > kMostWorkers)
    fail("workers", fmt::format("{} is out of range", options.workers), fmt::format("give 1 to {}", kMostWorkers));
}

std::optional<Network> network_from(std::string_view text) {
  for (const Network network : {Network::weight_gradient, Network::inter_server, Network::all})
    if (name(network) == text) return network;
  return std::nullopt;
}

std::string_view name(Network network) {
  switch (network) {
    case Network::weight_gradient:
      return "weight-gradient";
    case Network::inter_server:
      return "inter-server";
    case Network::all:
      return "all";
  }
  return "unknown";
}

std::uint32_t group_size(const Trace& trace, Group group, const MappingOptions& options) {
  const std::uint32_t workers = data_workers(trace, options);
  switch (group) {
    case Group::model:
      return trace.model_group > 0 ? trace.model_group : workers;
    case Group::data:
      return workers;
    case Group::expert:
      return trace.expert_group > 0 ? trace.expert_group : workers;
    case Group::expert_data:
      // The header's workers hold each expert once per expert group.
      return options.workers > 0 || trace.all_workers == 0 ? workers
                                                           : std::max(workers / std::max(trace.expert_group, 1U), 1U);
  }
  return 1;
}

Bytes sent_bytes(const Trace& trace, std::size_t layer, Pass pass, const MappingOptions& options) {
  const LayerPass& what = trace.layers[layer].pass(pass);
  if (!issued(trace, trace.parallelism, layer, pass) || !selected(options.network, pass, what.group)) return 0;
  const auto sent = bytes_sent(what.collective, what.size, group_size(trace, what.group, options), options.gather_size);
  const long double scaled =
      sent ? std::ceil(static_cast<long double>(*sent) * static_cast<long double>(options.bytes_scale)) : kMost + 1.0L;
  if (scaled > static_cast<long double>(kMost))
    throw InputError(fmt::format("{}:{}: {} size: a worker would send more than {} bytes; lower bytes_scale",
                                 trace.file, trace.layers[layer].line, name(pass), kMost));
  return static_cast<Bytes>(scaled);
}

std::vector<LoopStep> run_loop(const Trace& trace, const MappingOptions& options) {
  check(trace, options);
  return Loop(trace, options).run();
}

std::vector<Phase> to_phases(const Trace& trace, const MappingOptions& options) {
  check(trace, options);
  std::vector<Phase> phases;
  Uint128 computed = 0;         // unscaled, since the last communication: scaled as one, or steps of 1 ns would vanish
  const Step* first = nullptr;  // of the steps that make up the present phase and name it
  const Step* last = nullptr;
  Uint128 all_bytes = 0;
  long double all_nanos = 0;
  const auto flush = [&] {
    const long double scaled =
        std::round(static_cast<long double>(computed) * static_cast<long double>(options.compute_scale));
    all_nanos += scaled;
    if (all_nanos > static_cast<long double>(kMost))
      throw InputError(
          fmt::format("{}: the compute times of an iteration exceed 146 years; lower compute_scale", trace.file));
    if (scaled > 0) {
      Phase phase;
      phase.compute = Nanos(static_cast<std::int64_t>(scaled));
      phase.label = label(trace, first, last);
      phases.push_back(std::move(phase));
    }
    computed = 0;
    first = nullptr;
    last = nullptr;
  };
  const Step* first_sent = nullptr;  // of the last phase that sends
  const std::vector<Step> steps = Loop(trace, options).run();
  for (const Step& step : steps) {
    if (step.kind != Step::Kind::send) {
      if (step.time.count == 0) continue;
      if (step.kind == Step::Kind::compute) {
        if (first == nullptr) first = &step;
        last = &step;
      }
      computed += static_cast<std::uint64_t>(step.time.count);
      continue;
    }
    flush();
    all_bytes += step.bytes;
    if (all_bytes > kMost)
      throw InputError(fmt::format("{}: an iteration sends more than {} bytes; lower bytes_scale", trace.file, kMost));
    if (step.overlap && !phases.empty() && phases.back().kind == Phase::Kind::communicate && phases.back().overlap) {
      phases.back().bytes += step.bytes;
      phases.back().label = label(trace, first_sent, &step);
      continue;
    }
    first_sent = &step;
    Phase phase;
    phase.kind = Phase::Kind::communicate;
    phase.bytes = step.bytes;
    phase.overlap = step.overlap;
    phase.label = label(trace, step);
    phases.push_back(std::move(phase));
  }
  flush();
  return phases;
}

Job to_job(const Trace& trace, const std::string& job_name, const MappingOptions& options) {
  Job job;
  job.name = job_name;
  job.phases = to_phases(trace, options);
  if (job.bytes_per_iteration() == 0)
    throw InputError(
        fmt::format("{}: with {} workers and network = \"{}\" the trace sends nothing; set network = "
                    "\"all\", or workers to 2 or more",
                    trace.file, data_workers(trace, options), name(options.network)));
  return job;
}

}  // namespace mltcp::workload
