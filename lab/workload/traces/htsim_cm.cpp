// Reader of htsim's connection matrices (.cm): flows between nodes with their sizes and starts, as a graph of messages.
//
//   Nodes 16
//   Connections 2
//   Triggers 1
//   0->13 id 1 start 0 size 2000000 send_done_trigger 1        a flow with its start in picoseconds
//   13->2 id 2 trigger 1 size 2000000                          a flow that starts when the trigger fires
//   trigger id 1 oneshot                                       other types: multishot; barrier count 2
//
// Each flow becomes a message from its source to its destination. Computations on both nodes represent its start (see
// FlowStarts). On each node, flows with a start begin in the order of their starts. A trigger fires when a flow that
// names it in send_done_trigger or recv_done_trigger has been delivered. A barrier fires when `count` flows have been
// delivered. Each delivery starts one flow of a multishot trigger, in the order of the file. If the end of a flow on
// node A starts a flow on node B, A signals B with a message of one byte. Priorities and switch failures have no
// effect.
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

constexpr std::uint64_t kMaxNodes = 1'000'000;
constexpr std::uint64_t kMaxFlows = 10'000'000;
constexpr std::uint64_t kMaxSignals = 1'000'000;  // maximum number of signals that one barrier sends
constexpr auto kMaxPicos = static_cast<double>(kLongestTrace.count) * 1000;
constexpr std::uint64_t kSignalTag = std::uint64_t{1} << 32;  // tag of messages that signal a flow's end

struct Flow {
  std::uint64_t line = 0;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  Nanos start;
  bool has_start = false;
  Bytes bytes = 0;
  std::uint64_t trigger = 0;  ///< trigger that starts this flow; 0 if none
  std::uint64_t sent = 0;     ///< trigger that this flow fires at its source; 0 if none
  std::uint64_t received = 0;
  // Indices of the flow's nodes within their ranks.
  std::uint32_t send = 0;
  std::uint32_t receive = 0;
};

struct Trigger {
  enum class Type { unspecified, oneshot, multishot, barrier };
  Type type = Type::unspecified;
  std::uint64_t line = 0;
  std::uint64_t count = 0;
  std::size_t fired = 0;           ///< number of entries of `fired_by` that have been written
  std::size_t started = 0;         ///< number of entries of `flows` that have been written
  std::vector<std::size_t> flows;  ///< flows that this trigger starts
  /// Flows that fire this trigger; true if the receive fires it, false if the send does.
  std::vector<std::pair<std::size_t, bool>> fired_by;
};

class HtsimCmReader {
 public:
  HtsimCmReader(TraceInput& input, const TraceOptions& options)
      : builder_("htsim connection matrix", input),
        lines_(input),
        max_nodes_(std::min<std::uint64_t>(kMaxNodes, options.max_ranks)) {}

  PartialGraph read() {
    std::string_view line;
    while (lines_.next(line)) {
      const auto all = words_of(line, " \t");
      if (all.empty() || all[0].starts_with('#')) continue;
      if (all[0] == "Nodes") {
        nodes_ = header(all, max_nodes_);
      } else if (all[0] == "Connections") {
        connections_ = header(all, kMaxFlows);
      } else if (all[0] == "Triggers") {
        triggers_expected_ = header(all, kMaxFlows);
      } else if (all[0] == "Failures") {
        header(all, kMaxFlows);
      } else if (all[0] == "trigger") {
        read_trigger(all);
      } else if (all[0] == "failure") {
        ++failures_;
      } else if (all[0].find("->") != std::string_view::npos) {
        read_flow(all);
      } else {
        lines_.fail(fmt::format("{} is not known", in_quotes(all[0])),
                    "begin the line with Nodes, Connections, Triggers, trigger or SOURCE->DESTINATION");
      }
    }
    check();
    write();
    PartialGraph part = builder_.take();
    part.world = static_cast<std::uint32_t>(*nodes_);
    part.common_clock = true;
    return part;
  }

 private:
  std::uint64_t number(std::string_view text, std::string_view what, std::uint64_t min, std::uint64_t max) const {
    const auto value = number_from<std::uint64_t>(text, min, max);
    if (!value)
      lines_.fail(fmt::format("{} of {} is not a whole number from {} to {}", in_quotes(text), what, min, max),
                  "write digits only");
    return *value;
  }
  std::uint64_t header(const std::vector<std::string_view>& all, std::uint64_t max) const {
    if (all.size() != 2) lines_.fail(fmt::format("{} has no number", in_quotes(all[0])), "write one after it");
    return number(all[1], all[0], 0, max);
  }
  std::string_view value(const std::vector<std::string_view>& all, std::size_t at) const {
    if (at + 1 >= all.size()) lines_.fail(fmt::format("{} has no value", in_quotes(all[at])), "write one after it");
    return all[at + 1];
  }

  void read_flow(const std::vector<std::string_view>& all) {
    if (!nodes_) lines_.fail("a flow before the number of nodes", "begin the file with a line \"Nodes N\"");
    if (flows_.size() == kMaxFlows) lines_.fail(fmt::format("more than {} flows", kMaxFlows), "give fewer");
    Flow flow;
    flow.line = lines_.number();
    const std::size_t arrow = all[0].find("->");
    const std::uint64_t last = *nodes_ == 0 ? 0 : *nodes_ - 1;
    flow.source = static_cast<std::uint32_t>(number(all[0].substr(0, arrow), "the source", 0, last));
    flow.destination = static_cast<std::uint32_t>(number(all[0].substr(arrow + 2), "the destination", 0, last));
    if (flow.source == flow.destination) lines_.fail("a flow from a node to itself", "name two nodes");
    for (std::size_t i = 1; i < all.size(); ++i) {
      const std::string_view key = all[i];
      if (key == "addon") continue;
      const std::string_view text = value(all, i++);
      if (key == "start")
        flow.start = picoseconds(text), flow.has_start = true;
      else if (key == "size")
        flow.bytes = number(text, "the size", 1, kMaxMessageBytes);
      else if (key == "trigger")
        flow.trigger = number(text, "the trigger", 1, UINT32_MAX);
      else if (key == "send_done_trigger")
        flow.sent = number(text, "the trigger", 1, UINT32_MAX);
      else if (key == "recv_done_trigger")
        flow.received = number(text, "the trigger", 1, UINT32_MAX);
      else if (key == "id" || key == "prio")
        number(text, key, 0, UINT32_MAX);
      else
        lines_.fail(fmt::format("{} is not known", in_quotes(key)),
                    "write start, size, id, prio, trigger, send_done_trigger or recv_done_trigger");
    }
    if (flow.bytes == 0) lines_.fail("the flow has no size, so it would never end", "write \"size BYTES\"");
    if (!flow.has_start && flow.trigger == 0)
      lines_.fail("the flow has neither start nor trigger", "write \"start PICOSECONDS\" or \"trigger ID\"");
    if (flow.has_start && flow.trigger != 0)
      lines_.fail("the flow has both a start and a trigger", "leave one of them out");
    const std::size_t index = flows_.size();
    constexpr std::size_t named = sizeof(Trigger::fired_by.front());
    for (const std::uint64_t trigger : {flow.trigger, flow.sent, flow.received})
      if (trigger != 0) builder_.hold(named);
    builder_.hold(sizeof(flow));
    if (flow.trigger != 0) trigger_of(flow.trigger).flows.push_back(index);
    if (flow.sent != 0) trigger_of(flow.sent).fired_by.emplace_back(index, false);
    if (flow.received != 0) trigger_of(flow.received).fired_by.emplace_back(index, true);
    flows_.push_back(flow);
  }

  Nanos picoseconds(std::string_view text) const {
    const auto picos = number_from<double>(text, 0, kMaxPicos);
    if (!picos)
      lines_.fail(
          fmt::format("{} of the start is not a number of picoseconds from 0 to {}", in_quotes(text), kMaxPicos),
          "write when the flow begins");
    return Nanos(std::llround(*picos / 1000));
  }

  Trigger& trigger_of(std::uint64_t id) {
    constexpr std::size_t place = 64;  // memory of a map entry in bytes, beyond its contents
    const auto [found, is_new] = triggers_.try_emplace(id);
    if (is_new) builder_.hold(sizeof(*found) + place);
    return found->second;
  }

  void read_trigger(const std::vector<std::string_view>& all) {
    using Type = Trigger::Type;
    std::uint64_t id = 0;
    Trigger trigger;
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (all[i] == "id")
        id = number(value(all, i), "the trigger", 1, UINT32_MAX), ++i;
      else if (all[i] == "count")
        trigger.count = number(value(all, i), "the count", 1, kMaxFlows), ++i;
      else if (all[i] == "oneshot")
        trigger.type = Type::oneshot;
      else if (all[i] == "multishot")
        trigger.type = Type::multishot;
      else if (all[i] == "barrier")
        trigger.type = Type::barrier;
      else
        lines_.fail(fmt::format("{} is not known", in_quotes(all[i])),
                    "write id, oneshot, multishot, barrier or count");
    }
    if (id == 0) lines_.fail("the trigger has no id", "write \"id N\"");
    if (trigger.type == Type::unspecified)
      lines_.fail("the trigger has no type", "write oneshot, multishot or barrier");
    if (trigger.type == Type::barrier && trigger.count == 0)
      lines_.fail("the barrier has no count", "write \"count N\" after it");
    Trigger& known = trigger_of(id);
    if (known.type != Type::unspecified) lines_.fail(fmt::format("trigger {} is given twice", id), "leave one out");
    known.type = trigger.type;
    known.count = trigger.count;
    known.line = lines_.number();
    ++triggers_read_;
  }

  void check() {
    if (!nodes_) builder_.fail("there is no \"Nodes\"", "begin the file with a line \"Nodes N\"");
    if (connections_ && *connections_ != flows_.size())
      builder_.fail(fmt::format("{} connections are announced and {} follow", *connections_, flows_.size()),
                    "write as many as announced; the file may be cut off");
    if (triggers_expected_ && *triggers_expected_ != triggers_read_)
      builder_.fail(fmt::format("{} triggers are announced and {} follow", *triggers_expected_, triggers_read_),
                    "write as many as announced; the file may be cut off");
    if (flows_.empty()) builder_.fail("there are no flows", "add lines \"SOURCE->DESTINATION start 0 size BYTES\"");
    for (const auto& [id, trigger] : triggers_) {
      if (trigger.type == Trigger::Type::unspecified)
        builder_.fail(fmt::format("trigger {} is named, but not described", id),
                      "add a line \"trigger id ID oneshot\"");
      const std::size_t needed = trigger.type == Trigger::Type::multishot ? trigger.flows.size()
                                 : trigger.type == Trigger::Type::barrier ? trigger.count
                                                                          : 1;
      if (!trigger.flows.empty() && trigger.fired_by.size() < needed)
        builder_.fail(fmt::format("trigger {} is fired {} times and needs {}, so flows wait for it forever", id,
                                  trigger.fired_by.size(), needed),
                      "let more flows name it in send_done_trigger or recv_done_trigger");
      if (trigger.type == Trigger::Type::barrier && trigger.count * trigger.flows.size() > kMaxSignals)
        builder_.fail(fmt::format("{} flows wait for {} by trigger {}", trigger.flows.size(), trigger.count, id),
                      "give fewer");
      if (trigger.type == Trigger::Type::oneshot && trigger.fired_by.size() > 1)
        builder_.warn(fmt::format("trigger {} fires once, when the first listed of {} flows has ended", id,
                                  trigger.fired_by.size()));
    }
    builder_.warn(failures_, "failure", "of switches without effect");
  }

  void write() {
    for (std::uint32_t rank = 0; rank < *nodes_; ++rank) builder_.rank(rank);
    builder_.step({}, Nanos(0));
    // FlowStarts requires flows in the order of their starts.
    std::vector<std::size_t> order(flows_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return flows_[a].start < flows_[b].start; });
    FlowStarts starts(builder_, *nodes_);
    for (const std::size_t index : order) {
      Flow& flow = flows_[index];
      const auto start = [&](std::uint32_t rank) {
        return flow.has_start ? starts.at(rank, flow.start) : std::vector<std::uint32_t>();
      };
      GraphNode node = named("flow");
      node.kind = GraphNode::Kind::send;
      node.bytes = flow.bytes;
      node.tag = index;
      node.peer = flow.destination;
      // write_triggered() later writes the sends of flows started by triggers, when all nodes for which they wait
      // exist.
      if (flow.trigger == 0) flow.send = builder_.add(flow.source, node, start(flow.source));
      node.kind = GraphNode::Kind::receive;
      node.peer = flow.source;
      flow.receive = builder_.add(flow.destination, node, start(flow.destination));
    }
    write_triggered();
    starts.finish(flows_[order.back()].start);
    for (std::uint32_t rank = 0; rank < *nodes_; ++rank) builder_.sort(rank);
  }

  // Writes the flows started by triggers, each after the flows that fire its trigger.
  void write_triggered() {
    std::vector<bool> there(flows_.size());
    std::vector<std::size_t> ready;  // written flows; fire() must still be called for their triggers
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      there[i] = flows_[i].trigger == 0;
      if (there[i]) ready.push_back(i);
    }
    std::size_t left = flows_.size() - ready.size();
    const auto fire = [&](std::uint64_t id) {
      if (id == 0) return;
      Trigger& trigger = triggers_[id];
      const auto& by = trigger.fired_by;
      while (trigger.fired < by.size() && there[by[trigger.fired].first]) ++trigger.fired;
      const bool multishot = trigger.type == Trigger::Type::multishot;
      const std::size_t needed = trigger.type == Trigger::Type::barrier ? trigger.count : 1;
      while (trigger.started < trigger.flows.size()) {
        const std::size_t first = multishot ? trigger.started : 0;
        if (trigger.fired < first + needed) return;
        const std::size_t index = trigger.flows[trigger.started++];
        start_after(flows_[index], index, std::span(by).subspan(first, needed));
        there[index] = true;
        ready.push_back(index);
        --left;
      }
    };
    while (!ready.empty()) {
      const std::size_t index = ready.back();
      ready.pop_back();
      fire(flows_[index].sent);
      fire(flows_[index].received);
    }
    if (left > 0) builder_.fail("flows wait for each other's triggers in a circle", "let one of them have a start");
  }

  void start_after(Flow& flow, std::size_t index, std::span<const std::pair<std::size_t, bool>> fired_by) {
    std::vector<std::uint32_t> waits;
    for (const auto& [by, received] : fired_by) {
      const Flow& ended = flows_[by];
      const std::uint32_t where = received ? ended.destination : ended.source;
      const std::uint32_t node = received ? ended.receive : ended.send;
      if (where == flow.source) {
        waits.push_back(node);
        continue;
      }
      GraphNode signal = named("trigger");
      signal.kind = GraphNode::Kind::send;
      signal.bytes = 1;
      signal.tag = kSignalTag + signals_++;
      signal.peer = flow.source;
      builder_.add(where, signal, std::vector{node});
      signal.kind = GraphNode::Kind::receive;
      signal.peer = where;
      waits.push_back(builder_.add(flow.source, signal));
    }
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    GraphNode node = named("flow");
    node.kind = GraphNode::Kind::send;
    node.bytes = flow.bytes;
    node.tag = index;
    node.peer = flow.destination;
    flow.send = builder_.add(flow.source, node, waits);
  }

  GraphNode named(std::string_view name) {
    GraphNode node;
    node.name = builder_.name(name);
    node.lane = builder_.lane("flows");
    node.start = Nanos::never();
    return node;
  }

  GraphBuilder builder_;
  TraceLines lines_;
  std::uint64_t max_nodes_;
  std::optional<std::uint64_t> nodes_;
  std::optional<std::uint64_t> connections_;
  std::optional<std::uint64_t> triggers_expected_;
  std::uint64_t triggers_read_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t signals_ = 0;
  std::vector<Flow> flows_;
  std::map<std::uint64_t, Trigger> triggers_;
};

bool recognise_htsim_cm(const std::string& /*name*/, std::string_view beginning) {
  // Recognised by "Nodes N" in the first line that is neither blank nor a comment.
  while (!beginning.empty()) {
    const std::size_t end = std::min(beginning.find('\n'), beginning.size());
    const auto all = words_of(trimmed(beginning.substr(0, end)), " \t");
    if (!all.empty() && !all[0].starts_with('#'))
      return all.size() == 2 && all[0] == "Nodes" && all[1].find_first_not_of("0123456789") == std::string_view::npos;
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
  }
  return false;
}

PartialGraph read_htsim_cm(TraceInput& input, const TraceOptions& options) {
  return HtsimCmReader(input, options).read();
}

}  // namespace

constinit const TraceFormat kHtsimFormat{
    "htsim connection matrix", "flows between nodes with their starts and triggers", recognise_htsim_cm, read_htsim_cm};

}  // namespace mltcp::workload
