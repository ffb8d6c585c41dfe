// Reader of flow files (flow.txt) of the HPCC simulator (Li et al., SIGCOMM 2019) and of ns-3 simulators that use the
// same format:
//
//   2                                  the number of flows
//   0 1 3 100 200000000 2.000000000    source, destination, priority group, port, bytes, start in seconds
//   4 1 3 100 1000 2.000500000
//
// Each flow becomes a message that begins at the flow's start. Times count from the earliest start. Nodes have the
// numbers of the simulator's topology file; ranks go from 0 to the highest node number that has a flow. Priority groups
// and ports have no effect.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/trace_formats.h"
#include "mltcp/lab/workload/traces/trace_lines.h"

namespace mltcp::workload {
namespace {

constexpr std::uint64_t kMaxFlows = 10'000'000;
constexpr double kMaxSeconds = 1e9;  // maximum start in seconds: 31 years
constexpr std::size_t kColumns = 6;

/// The words of a line. If the line has more words than fit into `word`, `count` is one more than the size of `word`.
struct Words {
  std::array<std::string_view, kColumns> word;
  std::size_t count = 0;

  explicit Words(std::string_view line) {
    while (count <= kColumns) {
      const std::size_t begin = line.find_first_not_of(" \t\r");
      if (begin == std::string_view::npos) return;
      line.remove_prefix(begin);
      const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
      if (count < kColumns) word[count] = line.substr(0, end);
      ++count;
      line.remove_prefix(end);
    }
  }
};

struct Flow {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  Bytes bytes = 0;
  Nanos start;
};

class HpccFlowsReader {
 public:
  HpccFlowsReader(TraceInput& input, const TraceOptions& options)
      : builder_(kHpccFlows.name, input), lines_(input), max_nodes_(std::max(options.max_ranks, 1U)) {}

  PartialGraph read() {
    std::optional<std::uint64_t> announced;
    std::string_view line;
    while (lines_.next(line)) {
      const Words words(line);
      if (words.count == 0) continue;
      if (!announced)
        announced = whole(words.word[0], "the number of flows", 0, kMaxFlows);
      else
        add(words);
    }
    if (announced.value_or(0) != flows_.size())
      builder_.fail(fmt::format("{} flows are announced and {} follow", announced.value_or(0), flows_.size()),
                    "write as many as announced in the first line; the file may be cut off");
    if (flows_.empty()) builder_.fail("there are no flows", "add lines \"SOURCE DESTINATION 3 100 BYTES SECONDS\"");
    write();
    PartialGraph part = builder_.take();
    part.world = nodes_;
    part.common_clock = true;
    return part;
  }

 private:
  std::uint64_t whole(std::string_view text, std::string_view what, std::uint64_t min, std::uint64_t max) const {
    const auto value = number_from<std::uint64_t>(text);
    if (!value || *value < min || *value > max)
      lines_.fail(fmt::format("{} of {} is not a whole number from {} to {}", in_quotes(text), what, min, max),
                  "write SOURCE DESTINATION PRIORITY PORT BYTES SECONDS");
    return *value;
  }

  void add(const Words& words) {
    const auto& [source, destination, priority, port, bytes, start] = words.word;
    if (words.count != kColumns)
      lines_.fail(fmt::format("the line has {} columns than 6", words.count < kColumns ? "fewer" : "more"),
                  "write SOURCE DESTINATION PRIORITY PORT BYTES SECONDS");
    if (flows_.size() == kMaxFlows) lines_.fail(fmt::format("more than {} flows", kMaxFlows), "give fewer");
    Flow flow;
    flow.source = static_cast<std::uint32_t>(whole(source, "the source", 0, max_nodes_ - 1));
    flow.destination = static_cast<std::uint32_t>(whole(destination, "the destination", 0, max_nodes_ - 1));
    if (flow.source == flow.destination) lines_.fail("a flow from a node to itself", "name two nodes");
    whole(priority, "the priority group", 0, UINT32_MAX);
    whole(port, "the port", 0, UINT32_MAX);
    flow.bytes = whole(bytes, "the bytes", 1, kMaxMessageBytes);
    const auto seconds = number_from<double>(start);
    if (!seconds || !(*seconds >= 0) || *seconds > kMaxSeconds)
      lines_.fail(fmt::format("{} of the start is not a number of seconds from 0 to {}", in_quotes(start), kMaxSeconds),
                  "write when the flow begins");
    flow.start = Nanos(std::llround(*seconds * 1e9));
    builder_.hold(sizeof(flow));
    nodes_ = std::max({nodes_, flow.source + 1, flow.destination + 1});
    flows_.push_back(flow);
  }

  void write() {
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) builder_.rank(rank);
    builder_.step({}, Nanos(0));
    std::ranges::stable_sort(flows_, {}, &Flow::start);
    const Nanos beginning = flows_.front().start;
    FlowStarts starts(builder_, nodes_);
    for (std::size_t index = 0; index < flows_.size(); ++index) {
      const Flow& flow = flows_[index];
      const Nanos start = flow.start - beginning;
      GraphNode node;
      node.lane = builder_.lane("flows");
      node.name = builder_.name("flow");
      node.kind = GraphNode::Kind::send;
      node.bytes = flow.bytes;
      node.tag = index;
      node.peer = flow.destination;
      node.start = Nanos::never();  // the file states planned starts, no recorded times
      builder_.add(flow.source, node, starts.at(flow.source, start));
      node.kind = GraphNode::Kind::receive;
      node.peer = flow.source;
      builder_.add(flow.destination, node, starts.at(flow.destination, start));
    }
    starts.finish(flows_.back().start - beginning);
  }

  GraphBuilder builder_;
  TraceLines lines_;
  std::uint32_t max_nodes_;
  std::uint32_t nodes_ = 0;
  std::vector<Flow> flows_;
};

bool recognise_hpcc_flows(const std::string&, std::string_view beginning) {
  // The format is recognised by a first line with one whole number, followed by a line of six numbers. The six numbers
  // may have fractions.
  std::size_t lines = 0;
  while (!beginning.empty()) {
    const std::size_t end = std::min(beginning.find('\n'), beginning.size());
    const Words words(beginning.substr(0, end));
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
    if (words.count == 0) continue;
    if (lines++ == 0) {
      if (words.count != 1 || !number_from<std::uint64_t>(words.word[0])) return false;
    } else {
      for (std::size_t i = 0; i < std::min(words.count, kColumns); ++i)
        if (!number_from<double>(words.word[i])) return false;
      return words.count >= kColumns;
    }
  }
  return false;
}

PartialGraph read_hpcc_flows(TraceInput& input, const TraceOptions& options) {
  return HpccFlowsReader(input, options).read();
}

}  // namespace

const TraceFormat kHpccFlows{"HPCC flows", "flows between nodes with their starts, as of ns-3 (flow.txt)",
                             recognise_hpcc_flows, read_hpcc_flows};

}  // namespace mltcp::workload
