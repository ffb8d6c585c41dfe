// See training_loop.h.
#include "mltcp/lab/workload/traces/training_loop.h"

#include "mltcp/base/text_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mltcp::workload {
namespace {

constexpr std::uint32_t kDefaultWorkers = 2;

// Returns whether the training loop runs the collective of this layer and pass.
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

std::uint32_t data_workers(const Trace& trace, const LoopOptions& options) {
  if (options.workers > 0) return options.workers;
  const std::uint64_t copy = std::uint64_t{trace.model_group} * std::max(trace.pipeline_stages, 1U);
  if (trace.all_workers == 0 || copy == 0) return kDefaultWorkers;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(trace.all_workers / copy, 1));
}

/// Returns the bytes that a worker sends in the collective of this layer and pass. Returns 0 if the trace has no
/// collective, if the training loop does not run it, if it does not cross the shared link, or if it has a single
/// worker.
Bytes sent_bytes(const Trace& trace, std::size_t layer, Pass pass, const LoopOptions& options) {
  const LayerPass& what = trace.layers[layer].pass(pass);
  if (!issued(trace, trace.parallelism, layer, pass) || !selected(options.network, pass, what.group)) return 0;
  // The reader limits sizes, so the result is in range.
  return bytes_sent(what.collective, what.size, group_size(trace, what.group, options)).value();
}

// Runs the training loop once and records its steps.
class Loop {
 public:
  Loop(const Trace& trace, const LoopOptions& options) : trace_(trace), options_(options) {}

  std::vector<LoopStep> run() {
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

  // Backward pass of loops that compute weight gradients first. Their only input-gradient collective, if any, is that
  // of the embeddings. Nothing waits for it before the end of the iteration.
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
    if (!std::ranges::binary_search(starts, layer)) return;
    const auto after = std::ranges::upper_bound(trace_.checkpoints, layer);
    if (after != trace_.checkpoints.begin()) forward(*std::prev(after), layer);
  }

  void compute(std::size_t layer, Pass pass) {
    const Nanos time = trace_.layers[layer].pass(pass).compute;
    steps_.push_back({LoopStep::Kind::compute, pass, false, static_cast<std::uint32_t>(layer), time, 0});
  }

  void send(std::size_t layer, Pass pass, bool overlap) {
    const Bytes bytes = sent_bytes(trace_, layer, pass, options_);
    if (bytes == 0) return;
    steps_.push_back({LoopStep::Kind::send, pass, overlap, static_cast<std::uint32_t>(layer), Nanos(), bytes});
    last_update_ = trace_.layers[layer].update;
    // Steps that wait for a blocking collective also wait for the update of its result.
    if (!overlap) steps_.push_back(update());
  }

  // If an overlapping collective ends the iteration, its update delays the next iteration. Updates of other overlapping
  // collectives run during later computation or communication.
  void delay_next_iteration() {
    if (!steps_.empty() && steps_.back().kind == LoopStep::Kind::send && steps_.back().overlap)
      steps_.insert(steps_.begin(), update());
  }

  LoopStep update() const { return {LoopStep::Kind::update, Pass::forward, false, 0, last_update_, 0}; }

  const Trace& trace_;
  const LoopOptions& options_;
  std::vector<LoopStep> steps_;
  Nanos last_update_;
};

}  // namespace

std::optional<Network> network_from(std::string_view text) {
  for (const Network network : {Network::weight_gradient, Network::inter_server, Network::all})
    if (name(network) == text) return network;
  return std::nullopt;
}

std::string_view name(Network network) {
  using enum Network;
  return word_of<Network>(network,
                          {{weight_gradient, "weight-gradient"}, {inter_server, "inter-server"}, {all, "all"}});
}

std::uint32_t group_size(const Trace& trace, Group group, const LoopOptions& options) {
  const std::uint32_t workers = data_workers(trace, options);
  switch (group) {
    case Group::model:
      return trace.model_group > 0 ? trace.model_group : workers;
    case Group::data:
      return workers;
    case Group::expert:
      return trace.expert_group > 0 ? trace.expert_group : workers;
    case Group::expert_data:
      // Each expert group has one copy of each expert, so this is the number of expert groups.
      return options.workers > 0 || trace.all_workers == 0 ? workers
                                                           : std::max(workers / std::max(trace.expert_group, 1U), 1U);
  }
  return 1;
}

std::vector<LoopStep> run_loop(const Trace& trace, const LoopOptions& options) { return Loop(trace, options).run(); }

}  // namespace mltcp::workload
