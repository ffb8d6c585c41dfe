// Reader of PyTorch's execution traces (ExecutionTraceObserver): JSON of the operators that a rank ran, with their
// tensors; schemas 1.0.x and 1.1.x.
//
//   communication  nodes record_param_comms: collective, tensors, group and root or peer, in `inputs` or `attrs`. In
//                  traces without such nodes, the nodes named nccl:NAME are used
//   waiting        record_param_comms of "wait": later nodes wait for the collective with the same request
//   groups         node "## process_group:init ##"; without it, each group has all ranks of the job
//   steps          nodes ProfilerStep#N; nodes before the first one belong to its step
//   rank           as stated in communications, or in the file's name: trace_3.json
//
// This format has no times, so operators other than communications are left out.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/issue_order.h"
#include "mltcp/lab/workload/traces/json_elements.h"
#include "mltcp/lab/workload/traces/recorded.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload {
namespace {

constexpr std::string_view kRecordAgain = "record it again";
constexpr std::size_t kMaxGroups = 100'000;
constexpr int kMaxDepth = 8;

/// A node that is kept. The file lists nodes in the order of their ends.
struct Node {
  std::int64_t id = 0;
  std::string step;       ///< "ProfilerStep#4", if the node begins a step
  std::string operation;  ///< operation of record_param_comms: "allreduce", "wait"
  bool kernel = false;    ///< true for nccl:NAME, which has fewer details than record_param_comms
  std::string group;      ///< name of the group in the trace
  std::uint32_t group_size = 0;
  std::int64_t who = -1;  ///< rank of the caller in the group, or of the root, or of the peer
  std::optional<std::int64_t> request;
  Bytes in = 0;
  Bytes out = 0;
};
struct ProcessGroup {
  std::vector<std::uint32_t> ranks;
  std::uint32_t size = 0;
};

/// Returns the bytes of all tensors in a value. A tensor is [id, storage, offset, elements, bytes per element, device].
/// A value is a tensor or a list of values.
Bytes tensor_bytes(const rapidjson::Value& value, int depth = 0) {
  if (!value.IsArray() || depth > kMaxDepth) return 0;
  constexpr rapidjson::SizeType elements = 3;
  constexpr rapidjson::SizeType element_size = 4;
  constexpr rapidjson::SizeType size = 6;
  if (value.Size() == size && value[0].IsNumber() && value[size - 1].IsString()) {
    if (!value[elements].IsUint64() || !value[element_size].IsUint64()) return 0;
    const Uint128 bytes = static_cast<Uint128>(value[elements].GetUint64()) * value[element_size].GetUint64();
    return bytes > kMaxMessageBytes ? kMaxMessageBytes + 1 : static_cast<Bytes>(bytes);
  }
  Bytes sum = 0;
  for (const auto& one : value.GetArray()) sum = std::min(sum + tensor_bytes(one, depth + 1), kMaxMessageBytes + 1);
  return sum;
}

class PytorchEtReader {
 public:
  explicit PytorchEtReader(TraceInput& input) : builder_(kPytorchEt.name, input), elements_(input, "nodes") {}

  PartialGraph read() {
    elements_.read([this](const rapidjson::Value& value) { add(value); });
    return finish();
  }

 private:
  [[noreturn]] void fail(std::string_view cause) const {
    builder_.fail(fmt::format("{}: {}", elements_.place(), cause), kRecordAgain);
  }

  void add(const rapidjson::Value& value) {
    if (!value.IsObject()) fail("this is not a node");
    const std::string_view name = json::text(json::member(value, "name"));
    Node node;
    if (!json::whole(json::member(value, "id"), node.id)) fail("it has no id");
    ++nodes_;
    if (name.find("process_group:init") != std::string_view::npos) {
      add_groups(value);
    } else if (name.starts_with("ProfilerStep#")) {
      node.step = name;
      keep(std::move(node));
    } else if (name == "record_param_comms") {
      communication(value, node);
    } else if (name.starts_with("nccl:")) {
      node.kernel = true;
      node.operation = name.substr(5);
      sizes(value, node);
      keep(std::move(node));
    }
  }

  void keep(Node node) {
    builder_.hold(sizeof(node) + node.step.size() + node.operation.size() + node.group.size());
    kept_.push_back(std::move(node));
  }

  /// Returns the list with this key in either schema: {"values": [...]} or [...]. Returns nullptr if there is none.
  static const rapidjson::Value* values(const rapidjson::Value& node, const char* key) {
    const rapidjson::Value* found = json::member(node, key);
    if (found != nullptr && found->IsObject()) found = json::member(*found, "values");
    return found != nullptr && found->IsArray() ? found : nullptr;
  }

  static void sizes(const rapidjson::Value& value, Node& node) {
    if (const auto* inputs = values(value, "inputs"); inputs != nullptr && !inputs->Empty())
      node.in = tensor_bytes((*inputs)[0].IsArray() ? (*inputs)[0] : *inputs);
    if (const auto* outputs = values(value, "outputs")) node.out = tensor_bytes(*outputs);
  }

  void communication(const rapidjson::Value& value, Node& node) {
    const auto* inputs = values(value, "inputs");
    if (inputs != nullptr) {
      // The name of the operation follows the request, the group and the rank. A tensor may precede these.
      for (rapidjson::SizeType i = 3; i < inputs->Size() && i <= 4; ++i) {
        const rapidjson::Value& text = (*inputs)[i];
        if (!text.IsString()) continue;
        node.operation = json::text(&text);
        json::whole(&(*inputs)[i - 1], node.who);
        node.group = group_name((*inputs)[i - 2]);
        std::int64_t request = 0;
        if (json::whole(&(*inputs)[i - 3], request)) node.request = request;
        break;
      }
    }
    sizes(value, node);
    const rapidjson::Value* attributes = json::member(value, "attrs");
    Bytes in = 0;
    Bytes out = 0;
    std::optional<Bytes> element;
    if (attributes != nullptr && attributes->IsArray())
      for (const auto& attribute : attributes->GetArray()) {
        const std::string_view key = json::text(json::member(attribute, "name"));
        const rapidjson::Value* of = json::member(attribute, "value");
        std::int64_t number = 0;
        const bool whole = json::whole(of, number);
        if (key == "collective_name" && !json::text(of).empty()) node.operation = json::text(of);
        if (key == "dtype") element = element_bytes(json::text(of));
        if (key == "in_msg_nelems" && whole && number > 0) in = static_cast<Bytes>(number);
        if (key == "out_msg_nelems" && whole && number > 0) out = static_cast<Bytes>(number);
        if (key == "group_size" && whole && number > 0 && number <= kMaxRank)
          node.group_size = static_cast<std::uint32_t>(number);
        if (key == "pg_name" && !json::text(of).empty()) node.group = json::text(of);
        if ((key == "root_rank" || key == "dst_rank" || key == "src_rank") && whole && number >= 0) node.who = number;
      }
    if (element && (node.in == 0 || in > 0))
      node.in = in > kMaxMessageBytes / *element ? kMaxMessageBytes + 1 : in * *element;
    if (element && (node.out == 0 || out > 0))
      node.out = out > kMaxMessageBytes / *element ? kMaxMessageBytes + 1 : out * *element;
    if (node.operation.empty()) {
      ++nameless_;
      return;
    }
    keep(std::move(node));
  }

  static std::string group_name(const rapidjson::Value& value) {
    // The list contains name and description.
    if (value.IsArray() && !value.Empty()) return std::string(json::text(&value[0]));
    std::int64_t number = 0;
    return json::whole(&value, number) ? std::to_string(number) : std::string(json::text(&value));
  }

  /// Reads the list of process groups, which is a text that contains JSON.
  void add_groups(const rapidjson::Value& value) {
    const auto* inputs = values(value, "inputs");
    if (inputs == nullptr || inputs->Empty() || !(*inputs)[0].IsString()) return;
    rapidjson::Document list;
    list.Parse<rapidjson::kParseIterativeFlag>((*inputs)[0].GetString(), (*inputs)[0].GetStringLength());
    if (list.HasParseError() || !list.IsArray()) {
      builder_.warn("the list of process groups is damaged or cut off: left out");
      return;
    }
    for (const auto& one : list.GetArray()) {
      ProcessGroup group;
      std::int64_t size = 0;
      if (json::whole(json::member(one, "group_size"), size) && size > 0 && size <= kMaxRank)
        group.size = static_cast<std::uint32_t>(size);
      if (const auto* ranks = json::member(one, "ranks"); ranks != nullptr && ranks->IsArray())
        for (const auto& rank : ranks->GetArray())
          if (rank.IsUint() && rank.GetUint() < kMaxRank) group.ranks.push_back(rank.GetUint());
      if (group.ranks.empty()) world_ = std::max(world_, group.size);
      if (groups_.size() > kMaxGroups) return;
      for (const char* key : {"pg_name", "backend_id", "uid"})
        if (const auto* name = json::member(one, key)) {
          const auto [at, is_new] = groups_.emplace(group_name(*name), group);
          if (is_new)
            builder_.hold(sizeof(*at) + kPlace + at->first.size() + group.ranks.size() * sizeof(group.ranks.front()));
        }
    }
  }

  PartialGraph finish() {
    if (nodes_ == 0) builder_.fail("it has no nodes", kRecordAgain);
    std::ranges::stable_sort(kept_, {}, &Node::id);
    const bool states_operations = std::ranges::any_of(
        kept_, [](const Node& node) { return !node.kernel && collective_named(node.operation).has_value(); });
    const std::uint32_t rank = own_rank();
    const std::uint32_t position = builder_.rank(rank);
    IssueOrder order(builder_, position);
    bool stepped = false;
    std::size_t others = 0;
    for (const Node& node : kept_) {
      if (!node.step.empty()) {
        const std::uint32_t step = builder_.step(node.step);
        if (std::exchange(stepped, true)) order.next_step(step);
      } else if (node.operation == "wait") {
        if (node.request) order.wait(*node.request);
      } else if (node.kernel != states_operations) {
        if (!post(node, rank, order)) ++others;
      }
    }
    if (nameless_ + others > 0)
      builder_.warn(fmt::format("{} that is not a collective or message, or has no size: left out",
                                plural(nameless_ + others, "communication")));
    for (const auto& [what, count] : taken_as_)
      builder_.warn(fmt::format("{}: taken as {}", plural(count, what.first), what.second));
    builder_.warn("this format has no times: computation is left out");
    PartialGraph part = builder_.take();
    part.world = world_;
    return part;
  }

  /// Returns the caller's rank in the group of all ranks, if a communication states it. If none does, returns the rank
  /// in the file's name.
  [[nodiscard]] std::uint32_t own_rank() const {
    for (const Node& node : kept_) {
      const auto what = collective_named(node.operation);
      const bool own = node.operation == "wait" ||
                       (what && !node.kernel && what->collective != Collective::broadcast && what->instead == nullptr);
      const auto group = groups_.find(node.group);
      const bool all = group == groups_.end() ? groups_.empty() : group->second.ranks.empty();
      if (own && all && node.who >= 0 && node.who < kMaxRank && (world_ == 0 || node.who < world_))
        return static_cast<std::uint32_t>(node.who);
    }
    const std::uint32_t named = rank_in_name(builder_.source());
    return world_ != 0 && named >= world_ ? kUnknownRank : named;
  }

  bool post(const Node& from, std::uint32_t rank, IssueOrder& order) {
    GraphNode node;
    node.name = builder_.name(from.operation);
    node.lane = builder_.lane("communication");
    node.start = Nanos::never();
    if (from.in > kMaxMessageBytes || from.out > kMaxMessageBytes)
      builder_.fail(fmt::format("node of id {}: its size is out of range", from.id), kRecordAgain);
    const auto group = groups_.find(from.group);
    const ProcessGroup known = group == groups_.end() ? ProcessGroup{{}, from.group_size} : group->second;
    const bool send = from.operation == "send" || from.operation == "isend";
    if (send || from.operation == "recv" || from.operation == "irecv") {
      node.bytes = std::max(from.in, from.out);
      std::int64_t peer = from.who;
      if (peer >= 0 && static_cast<std::size_t>(peer) < known.ranks.size())
        peer = known.ranks[static_cast<std::size_t>(peer)];
      if (node.bytes == 0 || peer < 0 || peer >= kMaxRank || peer == static_cast<std::int64_t>(rank)) return false;
      node.kind = send ? GraphNode::Kind::send : GraphNode::Kind::receive;
      node.peer = static_cast<std::uint32_t>(peer);
      order.post(node, from.request);
      return true;
    }
    const auto what = collective_named(from.operation);
    if (!what) return false;
    if (what->instead != nullptr) ++taken_as_[{from.operation, what->instead}];
    node.kind = GraphNode::Kind::collective;
    node.collective = what->collective;
    node.bytes = what->collective == Collective::all_gather ? std::max(from.in, from.out)
                 : from.in != 0                             ? from.in
                                                            : from.out;
    if (what->barrier) node.bytes = 0;
    if (node.bytes == 0 && !what->barrier) return false;
    if (!known.ranks.empty())
      node.group = builder_.group(known.ranks);
    else
      node.group = builder_.group({}, {known.size == world_ ? 0 : known.size, known.size == world_ ? "" : from.group});
    if (node.collective == Collective::broadcast && from.who >= 0 && from.who < kMaxRank) {
      const auto root = static_cast<std::size_t>(from.who);
      node.peer = root < known.ranks.size() ? known.ranks[root] : static_cast<std::uint32_t>(root);
    }
    order.post(node, from.request);
    return true;
  }

  GraphBuilder builder_;
  JsonElements elements_;
  std::vector<Node> kept_;
  std::map<std::string, ProcessGroup> groups_;
  std::map<std::pair<std::string, std::string>, std::size_t> taken_as_;
  std::uint32_t world_ = 0;
  std::size_t nodes_ = 0;
  std::size_t nameless_ = 0;
};

bool recognise_pytorch_et(const std::string&, std::string_view beginning) {
  const std::string_view text = trimmed(beginning);
  if (!text.starts_with('{')) return false;
  return text.find("\"schema\"") != std::string_view::npos && text.find("\"nodes\"") != std::string_view::npos &&
         text.find("\"traceEvents\"") == std::string_view::npos;
}

PartialGraph read_pytorch_et(TraceInput& input, const TraceOptions&) { return PytorchEtReader(input).read(); }

}  // namespace

const TraceFormat kPytorchEt{"PyTorch execution trace", "the communication of a rank, in order, without times",
                             recognise_pytorch_et, read_pytorch_et};

}  // namespace mltcp::workload
