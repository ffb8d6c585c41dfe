// Turns the 12-column text of ASTRA-sim 1.0, LIBRA, SimAI and AICB (layer_trace.h) into a graph. The graph describes
// one iteration of the training loop (training_loop.h). All ranks do the same.
//
// Ranks that share a layer (tensor parallel) are adjacent. The numbers of ranks that hold the same part of the model
// differ by multiples of the size of a tensor-parallel group. Experts are spread over neighbours among these ranks. The
// sizes of groups are from the header. Sizes that the header does not state are from LIBRA's communicator file
// (libra.h), or follow from TraceOptions::ranks. If a job has too many ranks, only one group of ranks that reduce
// gradients together is kept.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/layer_trace.h"
#include "mltcp/lab/workload/traces/libra.h"
#include "mltcp/lab/workload/traces/trace_formats.h"
#include "mltcp/lab/workload/traces/training_loop.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 28;
// If a job has more nodes than this, only one group of its ranks is kept. So many nodes fit into the memory budget.
constexpr std::uint64_t kMaxNodes = 2'000'000;
constexpr std::uint64_t kMaxCutNodes = 16'000'000;  // a job with more nodes is rejected

std::string all_of(TraceInput& input, GraphBuilder& builder) {
  constexpr std::size_t times = 20;  // memory for the lines, layers and steps of the text, as a multiple of its size
  std::string text;
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + (std::size_t{1} << 16));
    const std::size_t read = input.read(text.data() + before, text.size() - before);
    text.resize(before + read);
    builder.hold(times * read);
    if (read == 0) return text;
    if (text.size() > kMaxText)
      throw InputError(
          fmt::format("{}: it has more than {} MB; give a trace of one iteration", input.name(), kMaxText / 1'000'000));
  }
}

class AstraTextReader {
 public:
  AstraTextReader(TraceInput& input, const TraceOptions& options)
      : builder_(kTwelveColumns, input),
        trace_(parse_trace(all_of(input, builder_), input.name())),
        options_(options) {}

  PartialGraph read() {
    find_sizes();
    run();
    const std::uint64_t all = std::uint64_t{model_} * data_;
    const bool one = options_.as_recorded;  // whether to make only one rank
    if (((one ? 1 : all) * steps_.size() > kMaxNodes || all > options_.max_ranks) && model_ > 1 && data_ > 1) {
      builder_.warn(
          fmt::format("of {} ranks, the {} that reduce gradients together are kept; collectives of "
                      "tensor-parallel groups ({} ranks each) are left out",
                      std::uint64_t{model_} * data_, data_, model_));
      cut_ = true;
    }
    const std::uint32_t ranks = cut_ ? data_ : static_cast<std::uint32_t>(all);
    if ((one ? 1 : std::uint64_t{ranks}) * steps_.size() > kMaxCutNodes)
      builder_.fail(fmt::format("{} ranks of {} steps each are too many", ranks, steps_.size()), "give fewer ranks");
    builder_.step("iteration", Nanos(0));  // readers of the graph do not search a named step for a period
    const std::uint32_t first = one ? std::min(options_.rank, ranks - 1) : 0;
    for (std::uint32_t rank = first; rank < (one ? first + 1 : ranks); ++rank) write(rank);
    PartialGraph part = builder_.take();
    part.world = ranks;
    part.gather_shards = options_.gather_size == GatherSize::shard;
    auto& warnings = part.graph.warnings;
    warnings.insert(warnings.end(), trace_.warnings.begin(), trace_.warnings.end());
    return part;
  }

 private:
  /// Runs the training loop with the selected collectives.
  void run() {
    const Trace trace = sized();
    LoopOptions loop{.workers = options_.one_worker ? options_.data_ranks : data_};
    std::vector<LoopStep> all = run_loop(trace, loop);
    const bool choose = !options_.network && options_.model_ranks == 0;
    loop.network = options_.network.value_or(choose ? Network::weight_gradient : Network::all);
    steps_ = loop.network == Network::all ? all : run_loop(trace, loop);
    const auto [count, bytes] = sent(steps_);
    if (choose && count == 0) steps_ = std::move(all);
    if (!choose || count == 0) return;
    const auto [count_of_all, bytes_of_all] = sent(all);
    if (count_of_all > count)
      builder_.warn(
          fmt::format("left out: {} in which a rank sends {}, of other passes than that of weight gradients, as these "
                      "may not cross the network; network \"all\" keeps them",
                      plural(count_of_all - count, "collective"), rounded(bytes_of_all - bytes)));
  }
  static std::pair<std::size_t, Bytes> sent(const std::vector<LoopStep>& steps) {
    std::pair<std::size_t, Bytes> sum{0, 0};
    for (const LoopStep& step : steps) {
      if (step.kind != LoopStep::Kind::send) continue;
      ++sum.first;
      sum.second = std::min(sum.second + step.bytes, Bytes{1} << 62U);
    }
    return sum;
  }

  /// Returns whether all ranks share all layers, as under MODEL and DISTRIBUTED_INFERENCE. Collectives of the forward
  /// pass and of input gradients then span all dimensions of the network (decode_involved_dimensions() of ASTRA-sim
  /// 1.0).
  [[nodiscard]] bool all_share_layers() const {
    return options_.model_ranks == 0 && trace_.model_group == 0 &&
           (trace_.parallelism == Parallelism::model || trace_.parallelism == Parallelism::distributed_inference);
  }

  void find_sizes() {
    if (options_.one_worker) {
      // Only the sizes of groups matter, so each group is a list of the first ranks.
      if (options_.model_ranks > 0) trace_.model_group = options_.model_ranks;
      for (const Group group : {Group::model, Group::data, Group::expert, Group::expert_data})
        data_ = std::max(data_, group_size(trace_, group, {.workers = options_.data_ranks}));
      return;
    }
    if (all_share_layers()) {
      constexpr std::uint32_t fewest = 2;
      const std::uint32_t ranks = options_.ranks > 0 ? options_.ranks : trace_.all_workers;
      data_ = std::max(options_.data_ranks, 1U);
      model_ = ranks > 0 ? std::max(ranks / data_, 1U) : fewest;
      if (ranks == 0)
        builder_.warn(fmt::format("the trace does not state how many ranks share a layer: assuming {}", model_));
      return check_sizes();
    }
    model_ = options_.model_ranks > 0 ? options_.model_ranks : trace_.model_group;
    if (model_ == 0) {
      model_ = 1;
      const bool lacks = std::ranges::any_of(trace_.layers, [](const Layer& layer) {
        return std::ranges::any_of(layer.passes, [](const LayerPass& pass) {
          return pass.collective != Collective::none && pass.group == Group::model;
        });
      });
      if (lacks)
        builder_.warn(
            fmt::format("the trace does not state the size of tensor-parallel groups, so their collectives are left "
                        "out; also give a communicator file of LIBRA: mltcp inspect {} {}",
                        builder_.source(), communicator_beside(builder_.source()).value_or("communicator.yml")));
    }
    if (options_.data_ranks > 0) {
      data_ = options_.data_ranks;
    } else if (options_.ranks > 0) {
      data_ = std::max(options_.ranks / model_, 1U);
    } else {
      Trace without_layers = trace_;
      without_layers.layers.clear();
      data_ = group_size(without_layers, Group::data, {});
      if (trace_.all_workers == 0)
        builder_.warn(fmt::format("the trace does not state how many ranks reduce gradients: assuming {}", data_));
    }
    check_sizes();
  }

  void check_sizes() {
    if (std::uint64_t{model_} * data_ > std::min<std::uint64_t>(10'000'000, std::uint64_t{options_.max_ranks} * 10))
      builder_.fail(fmt::format("{} times {} ranks are too many", model_, data_), "give fewer ranks");
    expert_ = std::clamp(trace_.expert_group, 1U, data_);
    if (data_ % expert_ != 0) {
      builder_.warn(
          fmt::format("{} ranks are no multiple of {} experts' ranks: experts are spread over all", data_, expert_));
      expert_ = data_;
    }
  }

  /// Returns the trace with the sizes of groups that find_sizes() has found.
  Trace sized() const {
    Trace trace = trace_;
    if (options_.one_worker) return trace;
    trace.model_group = model_;
    trace.expert_group = expert_;
    return trace;
  }

  std::vector<std::uint32_t> members(Group group, std::uint32_t rank) const {
    const std::uint32_t stride = cut_ ? 1 : model_;
    const std::uint32_t first = rank % stride;  // lowest rank that holds the same part of the model as `rank`
    const std::uint32_t place = rank / stride;
    std::vector<std::uint32_t> all;
    if (options_.one_worker) {
      all.resize(group_size(trace_, group, {.workers = options_.data_ranks}));
      std::iota(all.begin(), all.end(), 0U);
      return all;
    }
    switch (group) {
      case Group::model:
        for (std::uint32_t i = 0; i < model_ && !cut_; ++i) all.push_back(rank - first + i);
        break;
      case Group::data:
        for (std::uint32_t i = 0; i < data_; ++i) all.push_back(first + i * stride);
        break;
      case Group::expert:
        for (std::uint32_t i = 0; i < expert_; ++i) all.push_back(first + (place / expert_ * expert_ + i) * stride);
        break;
      case Group::expert_data:
        for (std::uint32_t i = place % expert_; i < data_; i += expert_) all.push_back(first + i * stride);
        break;
    }
    return all;
  }

  /// Returns the group of a rank, or nothing if the group has no other member. Lists of members are long, so a group's
  /// list is made only once. The first member identifies the group.
  std::optional<std::uint32_t> group_of(Group group, std::uint32_t rank) {
    const std::uint32_t stride = cut_ ? 1 : model_;
    const std::uint32_t place = rank / stride;
    const std::uint32_t first = group == Group::model    ? rank - rank % stride
                                : group == Group::data   ? rank % stride
                                : group == Group::expert ? rank % stride + place / expert_ * expert_ * stride
                                                         : rank % stride + place % expert_ * stride;
    const auto [found, is_new] = groups_.try_emplace({group, first}, std::nullopt);
    if (is_new)
      if (auto all = members(group, rank); all.size() > 1) found->second = builder_.group(std::move(all));
    return found->second;
  }

  void write(std::uint32_t rank) {
    const std::uint32_t position = builder_.rank(rank);
    std::array<std::optional<std::uint32_t>, 4> groups;  // numbers of the rank's groups, by kind
    std::array<std::optional<std::uint32_t>, 4> last;    // node of the last collective in each group, by kind
    std::optional<std::uint32_t> computed;
    std::vector<std::uint32_t> blocking;  // collectives that the next computation waits for
    Nanos joined;                         // if cut_: total time of computations since the last collective
    const auto compute = [&](std::uint32_t name, Nanos length, bool join) {
      if (length.count <= 0) return;
      if (join) {
        joined += length;
        return;
      }
      GraphNode node;
      node.name = name;
      node.lane = builder_.lane("compute");
      node.start = Nanos::never();
      node.length = length;
      std::vector<std::uint32_t> waits = std::exchange(blocking, {});
      if (computed) waits.push_back(*computed);
      std::ranges::sort(waits);
      computed = builder_.add(position, node, waits);
    };
    for (const LoopStep& step : steps_) {
      if (step.kind == LoopStep::Kind::update) {
        compute(builder_.name("update"), step.time, cut_);
        continue;
      }
      const Layer& layer = trace_.layers[step.layer];
      if (names_.size() <= step.layer) names_.resize(trace_.layers.size());
      auto& name = names_[step.layer][static_cast<std::size_t>(step.pass)];
      if (!name) name = builder_.name(one_line(fmt::format("{} {}", layer.name, workload::name(step.pass))));
      if (step.kind == LoopStep::Kind::compute) {
        compute(*name, step.time, cut_);
        continue;
      }
      const LayerPass& pass = layer.pass(step.pass);
      const auto which = static_cast<std::size_t>(pass.group);
      if (!groups[which]) groups[which] = group_of(pass.group, rank);
      if (!groups[which]) continue;
      compute(*name, std::exchange(joined, {}), false);
      GraphNode node;
      node.kind = GraphNode::Kind::collective;
      node.collective = pass.collective;
      node.name = *name;
      node.lane = builder_.lane(fmt::format("{} group", workload::name(pass.group)));
      node.group = *groups[which];
      node.bytes = pass.size;
      node.start = Nanos::never();
      if (pass.collective == Collective::broadcast) node.peer = builder_.part().graph.groups[*groups[which]].front();
      std::vector<std::uint32_t> waits = blocking;
      if (computed) waits.push_back(*computed);
      if (last[which]) waits.push_back(*last[which]);
      std::ranges::sort(waits);
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
      last[which] = builder_.add(position, node, waits);
      if (!step.overlap) blocking = {*last[which]};
    }
    if (joined.count > 0) compute(builder_.name("update"), joined, false);
  }

  GraphBuilder builder_;
  Trace trace_;
  TraceOptions options_;
  std::vector<LoopStep> steps_;
  std::vector<std::array<std::optional<std::uint32_t>, kPasses>> names_;
  /// Number of each group, by kind and first member; nothing if the group has one member.
  std::map<std::pair<Group, std::uint32_t>, std::optional<std::uint32_t>> groups_;
  std::uint32_t model_ = 1;
  std::uint32_t data_ = 1;
  std::uint32_t expert_ = 1;
  bool cut_ = false;
};

bool recognise_astra_text(const std::string& name, std::string_view beginning) {
  // Recognise the format by its first three lines, even if a layer contains a mistake.
  std::size_t columns = 0;
  std::size_t lines = 0;
  while (!beginning.empty() && lines < 3) {
    const std::size_t end = std::min(beginning.find('\n'), beginning.size());
    std::string_view line = trimmed(beginning.substr(0, end));
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
    if (line.empty()) continue;
    ++lines;
    std::vector<std::string_view> words;
    while (!line.empty()) {
      const std::size_t word = std::min(line.find_first_of(" \t"), line.size());
      words.push_back(line.substr(0, word));
      line = trimmed(line.substr(word));
    }
    columns = words.size();
    const bool layer = (columns == 12 || columns == 13) && (words[1].starts_with('-') || words[1] == "0") &&
                       words[2].find_first_not_of("0123456789") == std::string_view::npos;
    if (layer) return true;
    if (lines == 1) {
      constexpr std::array<std::string_view, 11> kinds{"DATA",
                                                       "MODEL",
                                                       "HYBRID_DATA_MODEL",
                                                       "HYBRID_MODEL_DATA",
                                                       "HYBRID_CUSTOMIZED",
                                                       "HYBRID_TRANSFORMER",
                                                       "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                                       "HYBRID_DLRM",
                                                       "HYBRID_DLRM_ENHANCED",
                                                       "DISTRIBUTED_INFERENCE",
                                                       "MICRO"};
      std::string_view kind = words[0];
      if (kind.ends_with(':')) kind.remove_suffix(1);
      if (std::ranges::find(kinds, kind) != kinds.end()) return true;
    }
  }
  static_cast<void>(name);
  return false;
}

PartialGraph read_astra_text(TraceInput& input, const TraceOptions& options) {
  return AstraTextReader(input, options).read();
}

}  // namespace

constinit const TraceFormat kAstraTextFormat{kTwelveColumns,
                                             "12 columns a layer: ASTRA-sim 1.0, LIBRA, SimAI, AICB; all ranks alike",
                                             recognise_astra_text, read_astra_text};

}  // namespace mltcp::workload
