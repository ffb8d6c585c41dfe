// Reader of AICB's communications in CSV ("physical" workloads, and logs of its runs). Each line is a call of a rank.
// All ranks make the same calls.
//
//   [rank0 ~ rank127]                                                           which ranks; may be missing
//   comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
//   CommType.all_reduce,CommGroup.tp_group,2,16777216,forward.MegatronEmbedding,None,None,,None,None,None,1
//   CommType.epoch_end,None,None,0,,None,None,,None,None,None,1                 ends an iteration
//
// Columns are found by their names. Groups are those of Megatron-LM: tensor-parallel ranks are next to each other, then
// data-parallel ranks, then pipeline stages. Groups of experts divide the data-parallel ranks. Calls before the first
// iteration (stages "init...") are left out. All other calls run one after the other. In a workload, only computations
// have times: those that were given to AICB, in nanoseconds. In a log of a run, computations and communications have
// measured times, in milliseconds. The size of an all-gather or a reduce-scatter is the total over all ranks of the
// group. Messages between pipeline stages are left out, because the file does not name their ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/trace_formats.h"
#include "mltcp/lab/workload/traces/trace_lines.h"

namespace mltcp::workload {
namespace {

constexpr std::uint64_t kMaxRanks = 1'000'000;
constexpr std::uint64_t kMaxNodes = 16'000'000;
constexpr auto kMaxTime = static_cast<double>(kLongestTrace.count);

constexpr std::uint64_t kMaxOfOne = 2'000'000;  // maximum number of nodes if only one rank is read

enum class GroupKind : std::uint8_t { tensor, data, pipeline, expert, expert_data, expert_tensor, all };

struct Row {
  Collective collective = Collective::none;  ///< kind of the collective; none for a computation
  GroupKind group = GroupKind::all;
  Bytes bytes = 0;
  double time = 0;  ///< time as in the file: nanoseconds in a workload, milliseconds in a log
  bool timed = false;
  std::uint32_t step = 0;
  std::uint32_t name = 0;
  std::uint64_t count = 1;
};

std::vector<std::string_view> fields(std::string_view line) {
  std::vector<std::string_view> all = parts_of(line, ',');
  for (std::string_view& field : all) field = trimmed(field);
  return all;
}

std::string_view bare(std::string_view text) {
  const std::size_t dot = text.find('.');
  return dot == std::string_view::npos ? text : text.substr(dot + 1);
}

class AicbCsvReader {
 public:
  AicbCsvReader(TraceInput& input, const TraceOptions& options)
      : builder_("AICB CSV", input), lines_(input), options_(options) {}

  PartialGraph read() {
    std::string_view line;
    while (lines_.next(line)) {
      if (trimmed(line).empty()) continue;
      if (columns_.empty() && trimmed(line).starts_with('['))
        read_ranks(trimmed(line));
      else if (columns_.empty())
        read_header(line);
      else
        read_row(line);
    }
    if (columns_.empty()) builder_.fail("there is no line of column names", "give a CSV file that AICB wrote");
    if (rows_.empty()) builder_.fail("there is no communication in it", "give a CSV file of a whole iteration");
    find_sizes();
    write();
    report();
    PartialGraph part = builder_.take();
    part.world = world_;
    return part;
  }

 private:
  std::uint64_t number(std::string_view text, std::string_view what, std::uint64_t min, std::uint64_t max) const {
    // Python writes a whole number as "4" or as "4.0".
    if (text.ends_with(".0")) text.remove_suffix(2);
    const auto value = number_from<std::uint64_t>(text, min, max);
    if (!value)
      lines_.fail(fmt::format("{}: {} is not a whole number from {} to {}", what, in_quotes(text), min, max),
                  "give a CSV file that AICB wrote");
    return *value;
  }

  /// Reads the line that states the ranks, e.g. "[rank0 ~ rank127]".
  void read_ranks(std::string_view line) {
    std::vector<std::uint64_t> found;
    for (std::size_t at = 0; (at = line.find("rank", at)) != std::string_view::npos;) {
      at += 4;
      const std::size_t end = line.find_first_not_of("0123456789", at);
      found.push_back(number(line.substr(at, end - at), "ranks", 0, kMaxRanks - 1));
    }
    if (found.size() != 2 || found[0] > found[1])
      lines_.fail(fmt::format("{} names no ranks", in_quotes(line)), "write \"[rank0 ~ rankN]\"");
    first_ = static_cast<std::uint32_t>(found[0]);
    last_ = static_cast<std::uint32_t>(found[1]);
  }

  void read_header(std::string_view line) {
    const auto all = fields(line);
    for (std::size_t i = 0; i < all.size(); ++i) columns_.emplace(std::string(all[i]), i);
    for (const std::string_view needed : {"comm_type", "comm_group", "comm_group_size", "msg_size"})
      if (columns_.find(needed) == columns_.end())
        lines_.fail(fmt::format("there is no column {}", in_quotes(needed)), "give a CSV file that AICB wrote");
    width_ = all.size();
  }

  void read_row(std::string_view line) {
    const auto all = fields(line);
    if (all.size() != width_)
      lines_.fail(fmt::format("{} columns where {} are expected", all.size(), width_),
                  "give a CSV file that AICB has written to its end");
    const auto field = [&](std::string_view key) {
      const auto found = columns_.find(key);
      return found == columns_.end() ? std::string_view() : all[found->second];
    };
    const std::string_view type = bare(field("comm_type"));
    if (type == "epoch_end") {
      if (in_step_) ++steps_;
      in_step_ = false;
      return;
    }
    if (field("stage").starts_with("init")) {
      ++before_;
      return;
    }
    Row row;
    const std::string_view elapsed = field("_elapsed_time");
    if (!elapsed.empty() && elapsed != "None") {
      const auto value = number_from<double>(elapsed, 0, kMaxTime);
      if (!value)
        lines_.fail(fmt::format("_elapsed_time: {} is not a time", in_quotes(elapsed)),
                    "give a CSV file that AICB wrote");
      row.time = *value;
      row.timed = true;
    }
    const std::string_view stage = field("stage");
    row.name = builder_.name(one_line(stage.empty() ? type : stage));
    if (type == "computation") {
      computations_ = true;
    } else if (type == "isend" || type == "irecv") {
      ++messages_;
      return;
    } else {
      take_collective(type, field("comm_group"), row);
      row.bytes = type == "barrier" ? 0 : number(field("msg_size"), "msg_size", 0, kMaxCallBytes);
      const auto size = static_cast<std::uint32_t>(number(field("comm_group_size"), "comm_group_size", 1, kMaxRanks));
      auto& known = sizes_[row.group];
      if (known != 0 && known != size)
        lines_.fail(fmt::format("{} has {} ranks here and {} before", in_quotes(field("comm_group")), size, known),
                    "give a file of one parallelisation");
      known = size;
      times_of_communication_ |= row.timed;
    }
    if (const std::string_view count = field("count"); !count.empty() && count != "None")
      row.count = number(count, "count", 1, 1'000'000);
    row.step = steps_;
    in_step_ = true;
    builder_.hold(sizeof(row));
    rows_.push_back(row);
  }

  void take_collective(std::string_view type, std::string_view group, Row& row) {
    static constexpr std::array<std::pair<std::string_view, Collective>, 9> kTypes{
        std::pair{"all_reduce", Collective::all_reduce},
        {"barrier", Collective::all_reduce},
        {"broadcast", Collective::broadcast},
        {"reduce", Collective::broadcast},
        {"all_gather", Collective::all_gather},
        {"all_gather_into_tensor", Collective::all_gather},
        {"reduce_scatter", Collective::reduce_scatter},
        {"reduce_scatter_tensor", Collective::reduce_scatter},
        {"all_to_all", Collective::all_to_all}};
    static constexpr std::array<std::pair<std::string_view, GroupKind>, 8> groups{
        std::pair{"tp_group", GroupKind::tensor},
        {"dp_group", GroupKind::data},
        {"pp_group", GroupKind::pipeline},
        {"ep_group", GroupKind::expert},
        {"ep_dp_group", GroupKind::expert_data},
        {"ep_tp_group", GroupKind::expert_tensor},
        {"all", GroupKind::all},
        {"all_nodes", GroupKind::all}};
    const auto found = std::ranges::find_if(kTypes, [&](const auto& each) { return each.first == type; });
    if (found == kTypes.end())
      lines_.fail(fmt::format("comm_type: {} is not known", in_quotes(type)), "leave the line out");
    const auto among = std::ranges::find_if(groups, [&](const auto& each) { return each.first == bare(group); });
    if (among == groups.end())
      lines_.fail(fmt::format("comm_group: {} is not known", in_quotes(group)), "leave the line out");
    if (type == "reduce") ++reduces_;
    row.collective = found->second;
    row.group = among->second;
  }

  void find_sizes() {
    const auto size = [&](GroupKind group) {
      const auto found = sizes_.find(group);
      return found == sizes_.end() ? 0U : found->second;
    };
    tensor_ = std::max(size(GroupKind::tensor), 1U);
    expert_ = std::max(size(GroupKind::expert), 1U);
    data_ = size(GroupKind::data);
    if (data_ == 0 && size(GroupKind::expert_data) > 0) data_ = expert_ * size(GroupKind::expert_data);
    std::uint64_t ranks = last_ ? std::uint64_t{*last_} + 1 : std::max(options_.ranks, size(GroupKind::all));
    if (data_ == 0) data_ = ranks > tensor_ ? static_cast<std::uint32_t>(ranks / tensor_) : expert_;
    const std::uint64_t one = std::uint64_t{tensor_} * data_;
    const std::uint64_t max = std::min<std::uint64_t>(kMaxRanks, options_.max_ranks);
    if (one > max) builder_.fail(fmt::format("{} times {} ranks are too many", tensor_, data_), "give fewer");
    stages_ =
        std::max<std::uint32_t>(size(GroupKind::pipeline), ranks > one ? static_cast<std::uint32_t>(ranks / one) : 1);
    ranks = std::max(ranks, one * stages_);
    if (ranks != one * stages_ || ranks > max)
      builder_.fail(
          fmt::format("{} ranks are not {} pipeline stages of {} times {} ranks", ranks, stages_, tensor_, data_),
          "give a file whose groups fit its ranks");
    if (data_ % expert_ != 0)
      builder_.fail(fmt::format("groups of {} ranks for experts do not divide {} data-parallel ones", expert_, data_),
                    "give a file whose groups fit its ranks");
    world_ = static_cast<std::uint32_t>(ranks);
    if (!last_) {
      first_ = 0;
      last_ = world_ - 1;
    }
  }

  std::vector<std::uint32_t> members(GroupKind group, std::uint32_t rank) const {
    const std::uint32_t one = tensor_ * data_;
    const std::uint32_t in_stage = rank % one;
    const std::uint32_t stage = rank - in_stage;
    const std::uint32_t tensor = in_stage % tensor_;
    const std::uint32_t data = in_stage / tensor_;
    std::vector<std::uint32_t> all;
    switch (group) {
      case GroupKind::tensor:
        for (std::uint32_t i = 0; i < tensor_; ++i) all.push_back(rank - tensor + i);
        break;
      case GroupKind::data:
        for (std::uint32_t i = 0; i < data_; ++i) all.push_back(stage + tensor + i * tensor_);
        break;
      case GroupKind::pipeline:
        for (std::uint32_t i = 0; i < stages_; ++i) all.push_back(in_stage + i * one);
        break;
      case GroupKind::expert:
        for (std::uint32_t i = 0; i < expert_; ++i)
          all.push_back(stage + tensor + (data / expert_ * expert_ + i) * tensor_);
        break;
      case GroupKind::expert_data:
        for (std::uint32_t i = data % expert_; i < data_; i += expert_) all.push_back(stage + tensor + i * tensor_);
        break;
      case GroupKind::expert_tensor:
        for (std::uint32_t i = 0; i < expert_ * tensor_; ++i)
          all.push_back(stage + data / expert_ * expert_ * tensor_ + i);
        break;
      case GroupKind::all:
        break;
    }
    return all;
  }

  /// Returns the group of a rank. Lists of members are long, so a group's list is made only once. The first member
  /// identifies the group.
  std::uint32_t group_of(GroupKind group, std::uint32_t rank) {
    const std::uint32_t one = tensor_ * data_;
    const std::uint32_t tensor = rank % tensor_;
    const std::uint32_t data = rank % one / tensor_;
    const std::uint32_t stage = rank - rank % one;
    std::uint32_t first = 0;
    switch (group) {
      case GroupKind::tensor:
        first = rank - tensor;
        break;
      case GroupKind::data:
        first = stage + tensor;
        break;
      case GroupKind::pipeline:
        first = rank % one;
        break;
      case GroupKind::expert:
        first = stage + tensor + data / expert_ * expert_ * tensor_;
        break;
      case GroupKind::expert_data:
        first = stage + tensor + data % expert_ * tensor_;
        break;
      case GroupKind::expert_tensor:
        first = stage + data / expert_ * expert_ * tensor_;
        break;
      case GroupKind::all:
        break;
    }
    const auto [found, is_new] = groups_.try_emplace({group, first}, 0);
    if (is_new) found->second = builder_.group(members(group, rank));
    return found->second;
  }

  void write() {
    for (std::uint32_t i = 0; i <= rows_.back().step; ++i) builder_.step(fmt::format("epoch {}", i + 1));
    std::uint64_t nodes = 0;
    for (const Row& row : rows_) nodes += row.count;
    const std::uint32_t from = options_.as_recorded ? std::clamp(options_.rank, first_, *last_) : first_;
    const std::uint32_t to = options_.as_recorded ? from : *last_;
    const std::uint64_t max = options_.as_recorded ? kMaxOfOne : kMaxNodes;
    if (nodes * (std::uint64_t{to} - from + 1) > max)
      builder_.fail(fmt::format("{} lines on {} ranks are too many", nodes, to - from + 1), "give fewer iterations");
    const double unit = times_of_communication_ ? 1e6 : 1;  // nanoseconds
    for (std::uint32_t rank = from; rank <= to; ++rank) {
      const std::uint32_t position = builder_.rank(rank);
      std::map<GroupKind, std::uint32_t> groups;  // numbers of the current rank's groups, by kind
      std::optional<std::uint32_t> last;
      for (const Row& row : rows_) {
        GraphNode node;
        node.name = row.name;
        node.step = row.step;
        node.start = Nanos::never();
        if (row.time * unit > kMaxTime)
          builder_.fail(fmt::format("an _elapsed_time of {} is longer than 115 days", row.time),
                        "give a CSV file that AICB wrote");
        node.length = Nanos(std::llround(row.time * unit));
        if (row.collective == Collective::none) {
          node.lane = builder_.lane("compute");
        } else {
          const auto [group, is_new] = groups.try_emplace(row.group, 0);
          if (is_new) group->second = group_of(row.group, rank);
          const auto& all = builder_.part().graph.groups[group->second];
          if (all.size() == 1 || world_ == 1) continue;
          node.kind = GraphNode::Kind::collective;
          node.collective = row.collective;
          node.bytes = row.bytes;
          node.lane = builder_.lane("communication");
          node.group = group->second;
          node.peer = all.empty() ? 0 : all.front();
        }
        for (std::uint64_t i = 0; i < row.count; ++i)
          last = builder_.add(position, node, last ? std::vector{*last} : std::vector<std::uint32_t>());
      }
    }
  }

  void report() {
    builder_.warn(before_, "line", "before the first iteration: left out");
    builder_.warn(messages_, "message", "between pipeline stages: left out");
    builder_.warn(reduces_, "reduction", "to one rank: taken as broadcasts from it");
    if (computations_)
      builder_.warn(times_of_communication_
                        ? "communications have times, so it is a log of a run: all times are taken as milliseconds"
                        : "communications have no times, so it is a workload: times are taken as nanoseconds");
    if (!computations_) builder_.warn("it has no computations: nothing is computed between collectives");
  }

  GraphBuilder builder_;
  TraceLines lines_;
  TraceOptions options_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::size_t width_ = 0;
  std::uint32_t first_ = 0;
  std::optional<std::uint32_t> last_;
  std::vector<Row> rows_;
  std::map<GroupKind, std::uint32_t> sizes_;
  /// Number of each group in the graph, by kind and first member.
  std::map<std::pair<GroupKind, std::uint32_t>, std::uint32_t> groups_;
  std::uint32_t steps_ = 0;  ///< number of iterations that have ended
  bool in_step_ = false;
  bool computations_ = false;
  bool times_of_communication_ = false;
  std::size_t before_ = 0;
  std::size_t messages_ = 0;
  std::size_t reduces_ = 0;
  std::uint32_t tensor_ = 1;
  std::uint32_t data_ = 1;
  std::uint32_t expert_ = 1;
  std::uint32_t stages_ = 1;
  std::uint32_t world_ = 1;
};

bool recognise_aicb_csv(const std::string& /*name*/, std::string_view beginning) {
  const std::string_view start = beginning.substr(0, 1024);
  return start.find("comm_type,") != std::string_view::npos && start.find("comm_group,") != std::string_view::npos;
}

PartialGraph read_aicb_csv(TraceInput& input, const TraceOptions& options) {
  return AicbCsvReader(input, options).read();
}

}  // namespace

constinit const TraceFormat kAicbFormat{"AICB CSV", "communications of all ranks alike, an iteration an epoch",
                                        recognise_aicb_csv, read_aicb_csv};

}  // namespace mltcp::workload
