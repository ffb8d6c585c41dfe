// Reader of Chakra execution traces, in Protocol Buffers and in JSON.
//
// Protocol Buffers (.et): a sequence of messages, each preceded by its length as a varint. The first message is a
// GlobalMetadata, all others are Nodes. A field of value 0 may be missing. Lists of numbers may be packed or not. JSON:
// a sequence of the same objects, as protobuf converts them, or a list "workload_graph" with other keys.
//
//   nodes            COMM_SEND_NODE, COMM_RECV_NODE and COMM_COLL_NODE are communications if they have attributes.
//                    Without attributes they are the host's part of a communication, and count as computations.
//                    COMP_NODE, MEM_LOAD_NODE, MEM_STORE_NODE and other nodes are computations.
//   dependencies     data_deps and ctrl_deps. Dependencies on nodes that are not in the file are left out and counted.
//                    If the dependencies form a cycle, ctrl_deps are left out. A cycle arises if an operation of the
//                    host has called the operation that it waits for.
//   attributes       comm_type, comm_size, comm_src, comm_dst, comm_tag, comm_root, pg_name or comm_group,
//                    involved_dim and is_cpu_op, as numbers of any type
//   sizes            bytes that a rank contributes; for an all-gather, its shard
//   times            microseconds; nanoseconds if the file was converted from ASTRA-sim's text format, which counts
//                    cycles of a 1 GHz clock. The metadata, or the names that the converter gives, show this.
//   groups           ranks whose files name the same group; the whole job if there is only one file
//   ranks            from the file's name, e.g. rank 3 from NAME.3.et
//
// If the trace contains kernels of a GPU, operations of the host take no time, because they run in parallel with the
// kernels. Communication then waits for the preceding kernels, as the streams of PyTorch's process groups do.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chakra.pb.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file_format.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/json_elements.h"
#include "mltcp/lab/workload/traces/recorded.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kMaxMessage = std::size_t{64} << 20;
constexpr auto kMaxTime = static_cast<std::uint64_t>(kLongestTrace.count);
constexpr std::string_view kRecordAgain = "record or convert it again";

/// Numbers of node types in the schema.
enum NodeType : std::int64_t {
  kInvalid = 0,
  kMetadata = 1,
  kLoad = 2,
  kStore = 3,
  kCompute = 4,
  kSend = 5,
  kReceive = 6,
  kCollective = 7
};
constexpr std::array<std::string_view, 10> kCollectives{
    "all_reduce", "reduce",         "all_gather",           "gather", "scatter", "broadcast",
    "all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier"};

/// A node, read from Protocol Buffers or from JSON.
struct Entry {
  std::uint64_t id = 0;
  std::string_view name;
  std::int64_t type = kInvalid;
  std::vector<std::uint64_t> dependencies;
  std::vector<std::uint64_t> control;
  std::uint64_t start = 0;
  std::uint64_t duration = 0;
  std::optional<std::int64_t> communication;  ///< comm_type as a number
  std::string communication_name;             ///< comm_type as a text
  std::optional<std::int64_t> size;
  std::optional<std::int64_t> source;
  std::optional<std::int64_t> destination;
  std::optional<std::int64_t> tag;
  std::optional<std::int64_t> root;
  std::string group;
  bool some_dimensions = false;  ///< whether involved_dim excludes some dimensions
  bool host = false;             ///< whether is_cpu_op is set

  void clear() {
    std::vector<std::uint64_t> lists[] = {std::move(dependencies), std::move(control)};
    *this = Entry();
    dependencies = std::move(lists[0]);
    control = std::move(lists[1]);
    dependencies.clear();
    control.clear();
  }
  /// Sets the attribute `key`, whose value is a number or a text.
  void set(std::string_view key, std::optional<std::int64_t> number, std::string_view text) {
    if (key == "comm_type") {
      communication = number;
      communication_name = number ? std::string_view() : text;  // a text that contains a number counts as a number
    } else if (key == "comm_size") {
      size = number;
    } else if (key == "comm_src") {
      source = number;
    } else if (key == "comm_dst") {
      destination = number;
    } else if (key == "comm_tag") {
      tag = number;
    } else if (key == "comm_root" || key == "root_rank" || key == "root") {
      root = number;
    } else if (key == "pg_name" || key == "comm_group") {
      group = number ? std::to_string(*number) : std::string(text);
    } else if (key == "is_cpu_op") {
      host = number.value_or(0) != 0;
    }
  }
};

/// Collects the nodes of a file, which belong to one rank.
class ChakraReader {
 public:
  ChakraReader(std::string_view format, const TraceInput& input)
      : builder_(format, input), rank_(builder_.rank(rank_in_name(input.name()))) {}

  GraphBuilder& builder() { return builder_; }
  void in_nanoseconds() { nanoseconds_ = true; }

  void add(const Entry& entry) {
    const auto index = static_cast<std::uint32_t>(hosts_.size());
    places_.emplace_back(entry.id, index);
    GraphNode node;
    node.name = builder_.name(entry.name);
    node.lane = builder_.lane(entry.host ? "host" : "device");
    node.length = Nanos(static_cast<std::int64_t>(std::min(entry.duration, kMaxTime)));
    if (entry.duration > kMaxTime)
      builder_.fail(fmt::format("node {}: it lasts {}, longer than any", index + 1, entry.duration), kRecordAgain);
    const bool late = entry.start > static_cast<std::uint64_t>(kLatestStart.count);
    if (late) ++late_;
    node.start = late || entry.start == 0 ? Nanos::never() : Nanos(static_cast<std::int64_t>(entry.start));
    converted_ = converted_ || from_text(entry.name);
    if (entry.type == kSend || entry.type == kReceive)
      message(entry, node, index);
    else if (entry.type == kCollective)
      collective(entry, node, index);
    else if (entry.type < kInvalid || entry.type > kCollective)
      ++unknown_types_;
    // The host's part of a communication does not count as a computation of the device.
    if (node.kind == GraphNode::Kind::compute && !entry.host && node.length.count > 0 && entry.type == kCompute)
      device_ = true;
    hosts_.push_back(entry.host && node.kind == GraphNode::Kind::compute);
    dependencies_.insert(dependencies_.end(), entry.dependencies.begin(), entry.dependencies.end());
    dependencies_.insert(dependencies_.end(), entry.control.begin(), entry.control.end());
    counts_.emplace_back(entry.dependencies.size(), entry.control.size());
    const std::size_t dependencies = entry.dependencies.size() + entry.control.size();
    builder_.hold(sizeof(places_.front()) + sizeof(counts_.front()) + dependencies * sizeof(dependencies_.front()));
    builder_.keep(dependencies * sizeof(std::uint32_t));  // memory for the waits that finish() adds to the node
    builder_.add(rank_, node);
  }

  PartialGraph finish() {
    RankGraph& rank = builder_.part().graph.ranks[rank_];
    std::vector<GraphNode>& nodes = rank.nodes;
    if (nodes.empty()) builder_.fail("it has no nodes", kRecordAgain);
    sort_places();
    if (own_rank_) take_own_rank();
    const bool nanoseconds = nanoseconds_ || converted_;
    if (nanoseconds && !nanoseconds_)
      builder_.warn("times are taken as nanoseconds, as in traces converted from ASTRA-sim's text format");
    std::size_t lost = 0;
    std::size_t host_operations = 0;
    std::int64_t host_time = 0;
    Nanos all_lengths;
    const std::int64_t unit = nanoseconds ? 1 : 1000;
    // For each node: number of its data dependencies. They come before its control dependencies in the list of waits.
    std::vector<std::uint32_t> on_data;
    std::size_t at = 0;
    rank.waits.reserve(dependencies_.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      GraphNode& node = nodes[i];
      if (node.length.count > static_cast<std::int64_t>(kMaxTime) / unit)
        builder_.fail(fmt::format("node {}: it lasts longer than any", i + 1), kRecordAgain);
      node.length = node.length * unit;
      all_lengths += node.length;
      if (all_lengths > kLongestTrace)
        builder_.fail("its nodes last more than 115 days in all",
                      "its times are damaged, or of another unit; record it again");
      if (!node.start.is_never()) {
        const bool late = node.start > kLatestStart / unit;
        if (late) ++late_;
        node.start = late ? Nanos::never() : node.start * unit;
      }
      if (hosts_[i] && device_ && node.length.count > 0) {
        ++host_operations;
        host_time += std::min<std::int64_t>(node.length.count, std::int64_t{1} << 40);
        node.length = Nanos(0);
      }
      node.first_wait = static_cast<std::uint32_t>(rank.waits.size());
      const std::size_t data_end = at + counts_[i].first;
      std::uint32_t data = 0;
      for (const std::size_t end = data_end + counts_[i].second; at < end; ++at) {
        const auto found = std::lower_bound(places_.begin(), places_.end(), std::pair(dependencies_[at], 0U));
        if (found == places_.end() || found->first != dependencies_[at]) {
          ++lost;
          continue;
        }
        if (at < data_end) ++data;
        rank.waits.push_back(found->second);
        ++node.waits;
      }
      on_data.push_back(data);
    }
    dependencies_ = {};
    places_ = {};
    if (lost > 0)
      builder_.warn(fmt::format("{} {} on nodes that are not in the file: left out", lost,
                                lost == 1 ? "dependency" : "dependencies"));
    if (host_operations > 0)
      builder_.warn(fmt::format("{} of the host, {} in all, take no time: they run beside the device's",
                                plural(host_operations, "operation"), to_text(Nanos(host_time / 1000 * 1000))));
    builder_.warn(late_, "start", "after the year 2096: left out");
    builder_.warn(unknown_types_, "node", "of an unknown type: taken as computations");
    builder_.warn(dimensions_, "collective", "of some dimensions of the network: taken as those of the whole job");
    for (const auto& [what, count] : taken_as_)
      builder_.warn(fmt::format("{}: taken as {}", plural(count, what.first), what.second));
    if (without_size_ == 0 && !communicates_) without_size_ = host_without_size_;
    builder_.warn(without_size_, "communication", "without a size or kind: left out");
    builder_.warn(empty_, "communication", "of 0 bytes: collectives are taken as barriers, messages are left out");
    if (!builder_.try_sort(rank_)) {
      builder_.warn("ctrl_deps are left out: with them nodes wait for each other");
      for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].waits = on_data[i];
      builder_.sort(rank_);
    }
    if (host_operations > 0) wait_for_device();
    PartialGraph part = builder_.take();
    part.gather_shards = true;
    return part;
  }

 private:
  /// Sorts places_. A hash table would allow a hostile file to choose ids that collide.
  void sort_places() {
    std::ranges::sort(places_);
    const auto none = static_cast<std::uint32_t>(places_.size());
    std::uint32_t twice = none;
    for (std::size_t i = 1; i < places_.size(); ++i)
      if (places_[i].first == places_[i - 1].first) twice = std::min(twice, places_[i].second);
    if (twice == none) return;
    const auto same = std::ranges::find_if(places_, [&](const auto& at) { return at.second == twice; });
    builder_.fail(fmt::format("node {}: id {} is given twice", twice + 1, same->first), kRecordAgain);
  }

  /// Sets the file's rank according to its messages: the source of sends, and the destination of receives.
  void take_own_rank() {
    std::uint32_t& rank = builder_.part().rank_of[rank_];
    const auto& [own, index] = *own_rank_;
    if (rank != kUnknownRank && rank != own)
      builder_.fail(fmt::format("node {} is of rank {}, the file's name says {}", index + 1, own, rank),
                    "rename the file, so that its name ends with its rank");
    rank = own;
  }
  void find_own_rank(const Entry& entry, std::uint32_t index) {
    const bool send = entry.type == kSend;
    const std::optional<std::int64_t>& stated = send ? entry.source : entry.destination;
    if (!stated) return;
    const std::uint32_t rank = rank_of(stated, send ? "comm_src" : "comm_dst", index);
    if (!own_rank_) own_rank_ = {rank, index};
    if (own_rank_->first != rank)
      builder_.fail(fmt::format("node {} is of rank {}, node {} of rank {}", own_rank_->second + 1, own_rank_->first,
                                index + 1, rank),
                    "give a file for each rank");
  }

  /// Makes communication wait for earlier kernels, as a library's stream does. The trace contains this dependency only
  /// through operations of the host, which take no time here.
  void wait_for_device() {
    RankGraph& rank = builder_.part().graph.ranks[rank_];
    std::optional<std::uint32_t> computed;
    for (std::uint32_t i = 0; i < rank.nodes.size(); ++i) {
      GraphNode& node = rank.nodes[i];
      if (node.kind == GraphNode::Kind::compute) {
        if (node.length.count > 0) computed = i;
        continue;
      }
      if (!computed) continue;
      const std::vector<std::uint32_t> waits(rank.waits.begin() + node.first_wait,
                                             rank.waits.begin() + node.first_wait + node.waits);
      node.first_wait = static_cast<std::uint32_t>(rank.waits.size());
      node.waits = static_cast<std::uint32_t>(waits.size() + 1);
      builder_.keep(node.waits * sizeof(*computed));
      rank.waits.insert(rank.waits.end(), waits.begin(), waits.end());
      rank.waits.push_back(*computed);
    }
  }

  /// Returns whether the converter of the text format made the name, e.g. "COMP_NODE_conv1_FWD".
  static bool from_text(std::string_view name) {
    return name.starts_with("COMP_NODE_") &&
           (name.ends_with("_FWD") || name.ends_with("_BWD_WG") || name.ends_with("_BWD_IG"));
  }

  Bytes bytes_of(const Entry& entry, std::uint32_t index) const {
    const std::int64_t size = entry.size.value_or(0);
    if (size < 0 || static_cast<Bytes>(size) > kMaxMessageBytes)
      builder_.fail(fmt::format("node {}: comm_size {} is out of range", index + 1, size), kRecordAgain);
    return static_cast<Bytes>(size);
  }

  std::uint32_t rank_of(std::optional<std::int64_t> rank, std::string_view key, std::uint32_t index) const {
    constexpr std::int64_t max = 1'000'000;
    if (!rank || *rank < 0 || *rank >= max)
      builder_.fail(fmt::format("node {}: {} is missing or no rank", index + 1, key), kRecordAgain);
    return static_cast<std::uint32_t>(*rank);
  }

  /// Returns whether the communication has no size and is therefore left out. Its node then only takes time.
  bool left_out(const Entry& entry) {
    const bool is_size_missing = !entry.size;
    if (is_size_missing) ++(entry.host ? host_without_size_ : without_size_);
    if (entry.size == 0) ++empty_;
    return is_size_missing;
  }

  void message(const Entry& entry, GraphNode& node, std::uint32_t index) {
    const bool send = entry.type == kSend;
    node.bytes = bytes_of(entry, index);
    if (left_out(entry) || node.bytes == 0) return;
    communicates_ = true;
    node.kind = send ? GraphNode::Kind::send : GraphNode::Kind::receive;
    node.peer = send ? rank_of(entry.destination, "comm_dst", index) : rank_of(entry.source, "comm_src", index);
    node.tag = static_cast<std::uint64_t>(entry.tag.value_or(0));
    find_own_rank(entry, index);
  }

  void collective(const Entry& entry, GraphNode& node, std::uint32_t index) {
    std::string_view name = entry.communication_name;
    if (name.empty()) {
      const std::int64_t type = entry.communication.value_or(0);
      if (type < 0 || type >= static_cast<std::int64_t>(kCollectives.size())) {
        builder_.warn(fmt::format("node {}: comm_type {} is unknown; it is taken as an all-reduce", index + 1, type));
        name = kCollectives[0];
      } else {
        name = kCollectives[static_cast<std::size_t>(type)];
      }
    }
    auto what = collective_named(name);
    if (!what) {
      builder_.warn(
          fmt::format("node {}: comm_type {} is unknown; it is taken as an all-reduce", index + 1, in_quotes(name)));
      what = collective_named(kCollectives[0]);
    }
    if (!what->barrier && left_out(entry)) return;
    node.bytes = what->barrier ? 0 : bytes_of(entry, index);
    if (what->instead != nullptr) ++taken_as_[{std::string(name), what->instead}];
    node.kind = GraphNode::Kind::collective;
    node.collective = what->collective;
    communicates_ = true;
    if (entry.some_dimensions) ++dimensions_;
    node.group = builder_.group({}, {0, entry.group});
    if (node.collective == Collective::broadcast && entry.root) node.peer = rank_of(entry.root, "comm_root", index);
  }

  GraphBuilder builder_;
  std::uint32_t rank_;
  std::vector<bool> hosts_;
  std::vector<std::uint64_t> dependencies_;
  /// By node: number of data dependencies, and number of control dependencies.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> places_;  ///< id and index of each node; sorted in finish()
  std::map<std::pair<std::string, std::string>, std::size_t> taken_as_;
  std::size_t unknown_types_ = 0;
  std::size_t late_ = 0;          ///< number of starts beyond kLatestStart
  std::size_t without_size_ = 0;  ///< number of communications without a size or kind
  /// Number of the host's communications without a size or kind. The kernels of these communications usually have both.
  std::size_t host_without_size_ = 0;
  std::size_t empty_ = 0;  ///< number of communications of 0 bytes that are not barriers
  bool communicates_ = false;
  std::size_t dimensions_ = 0;
  /// The file's rank, taken from its messages, and the index of the first node that states this rank.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> own_rank_;
  bool nanoseconds_ = false;
  bool converted_ = false;
  bool device_ = false;
};

// ---- Protocol Buffers ----

/// Reads a varint at the beginning of `bytes`. Returns its length in bytes, or 0 if it is incomplete or invalid.
std::size_t varint(std::string_view bytes, std::uint64_t& value) {
  constexpr std::size_t longest = 10;
  value = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), longest); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << (7 * i);
    if (byte < 0x80U) return i + 1;
  }
  return 0;
}

/// Reads the messages of an input one by one.
class Messages {
 public:
  explicit Messages(TraceInput& input) : input_(&input) {}

  /// Sets `message` to the next message, which is valid until the next call. Returns false at the end of the input.
  bool next(std::string_view& message) {
    std::uint64_t size = 0;
    std::size_t length = varint(rest(), size);
    while (length == 0) {
      constexpr std::size_t longest = 10;
      if (rest().size() >= longest) fail("the length of a message is wrong");
      if (!more(1)) {
        if (rest().empty()) return false;
        fail("it is cut off in a message's length");
      }
      length = varint(rest(), size);
    }
    if (size > kMaxMessage) fail(fmt::format("a message of {} bytes, more than any is long", size));
    if (rest().size() < length + size && !more(length + static_cast<std::size_t>(size) - rest().size()))
      fail(fmt::format("it is cut off in a message of {} bytes", size));
    message = rest().substr(length, static_cast<std::size_t>(size));
    at_ += length + static_cast<std::size_t>(size);
    ++count_;
    return true;
  }

  [[noreturn]] void fail(std::string_view cause) const {
    throw InputError(fmt::format("{}: byte {}, message {}: {}; copy or record it again", input_->name(), before_ + at_,
                                 count_ + 1, cause));
  }

 private:
  [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(at_, end_ - at_); }
  /// Reads at least `count` more bytes. Returns false if the input ends first.
  bool more(std::size_t count) {
    constexpr std::size_t part = std::size_t{256} << 10;
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_), buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
              buffer_.begin());
    before_ += at_;
    end_ -= at_;
    at_ = 0;
    while (count > 0) {
      if (buffer_.size() < end_ + part) buffer_.resize(end_ + part);
      const std::size_t got = input_->read(buffer_.data() + end_, part);
      if (got == 0) return false;
      end_ += got;
      count -= std::min(count, got);
    }
    return true;
  }

  TraceInput* input_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t before_ = 0;  ///< number of input bytes before the buffer
  std::size_t count_ = 0;
};

std::optional<std::int64_t> number_of(const chakra::Attribute& attribute) {
  using A = chakra::Attribute;
  switch (attribute.value_case()) {
    case A::kInt32Value:
      return attribute.int32_value();
    case A::kInt64Value:
      return attribute.int64_value();
    case A::kUint32Value:
      return attribute.uint32_value();
    case A::kUint64Value:
      return static_cast<std::int64_t>(attribute.uint64_value());
    case A::kSint32Value:
      return attribute.sint32_value();
    case A::kSint64Value:
      return attribute.sint64_value();
    case A::kFixed32Value:
      return attribute.fixed32_value();
    case A::kFixed64Value:
      return static_cast<std::int64_t>(attribute.fixed64_value());
    case A::kSfixed32Value:
      return attribute.sfixed32_value();
    case A::kSfixed64Value:
      return attribute.sfixed64_value();
    case A::kBoolValue:
      return attribute.bool_value() ? 1 : 0;
    case A::kInt64List:
      return attribute.int64_list().values_size() == 1 ? std::optional(attribute.int64_list().values(0)) : std::nullopt;
    case A::kStringValue:
      return number_from<std::int64_t>(attribute.string_value());
    default:
      return std::nullopt;
  }
}

bool is_astra_text(std::string_view text) {
  for (const std::string_view first : {"MICRO", "DATA", "MODEL", "HYBRID_", "TRANSFORMER", "DLRM"})
    if (trimmed(text).starts_with(first)) return true;
  return false;
}

/// Returns whether `bytes` contain only the fields of metadata. The parser alone would accept other fields.
bool is_metadata(std::string_view bytes, chakra::GlobalMetadata& metadata) {
  if (!metadata.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  while (!bytes.empty()) {
    if (bytes.front() != '\x0a' && bytes.front() != '\x12') return false;
    std::uint64_t size = 0;
    const std::size_t length = varint(bytes.substr(1), size);
    if (length == 0 || bytes.size() - 1 - length < size) return false;
    bytes.remove_prefix(1 + length + static_cast<std::size_t>(size));
  }
  return std::ranges::all_of(metadata.attributes(), [](const chakra::Attribute& one) { return !one.name().empty(); });
}
bool is_node(const chakra::Node& node) {
  return !node.name().empty() && node.type() > kInvalid && node.type() <= kCollective;
}

bool recognise_chakra(const std::string&, std::string_view beginning) {
  // Reject text, because any byte can be the length of a message, e.g. the first digit of a table of numbers. The tags
  // of a node are control characters, so text contains no nodes.
  if (is_text(beginning)) return false;
  std::uint64_t size = 0;
  const std::size_t length = varint(beginning, size);
  if (length == 0 || size > kMaxMessage) return false;
  const auto whole = [&](std::string_view bytes) { return bytes.size() == size; };
  std::string_view message = beginning.substr(length, static_cast<std::size_t>(size));
  chakra::GlobalMetadata metadata;
  chakra::Node node;
  if (!whole(message)) {
    // The metadata may be longer than `beginning`. Check only that they begin with the version or an attribute.
    std::uint64_t inner = 0;
    return beginning.size() > length && (message.starts_with('\x12') || message.starts_with('\x0a')) &&
           varint(message.substr(1), inner) > 0 && inner < size;
  }
  if (is_metadata(message, metadata)) {
    const std::string_view rest = beginning.substr(length + message.size());
    const std::size_t next = varint(rest, size);
    if (next == 0) return rest.empty() && !message.empty();
    message = rest.substr(next, static_cast<std::size_t>(std::min<std::uint64_t>(size, kMaxMessage)));
    if (!whole(message)) return !metadata.version().empty() || metadata.attributes_size() > 0;
  }
  return node.ParseFromArray(message.data(), static_cast<int>(message.size())) && is_node(node);
}

PartialGraph read_chakra(TraceInput& input, const TraceOptions&) {
  Messages messages(input);
  ChakraReader reader(kChakra.name, input);
  std::string_view message;
  chakra::Node node;
  Entry entry;
  bool first = true;
  while (messages.next(message)) {
    const auto size = static_cast<int>(message.size());
    if (std::exchange(first, false)) {
      chakra::GlobalMetadata metadata;
      if (is_metadata(message, metadata)) {
        for (const chakra::Attribute& attribute : metadata.attributes())
          if (attribute.name() == "input_file" && is_astra_text(attribute.string_value())) reader.in_nanoseconds();
        continue;
      }
    }
    if (!node.ParseFromArray(message.data(), size)) messages.fail("it is not a node");
    entry.clear();
    entry.id = node.id();
    entry.name = node.name();
    entry.type = node.type();
    entry.start = node.start();
    entry.duration = node.duration();
    entry.dependencies.assign(node.data_dependencies().begin(), node.data_dependencies().end());
    entry.control.assign(node.control_dependencies().begin(), node.control_dependencies().end());
    for (const chakra::Attribute& attribute : node.attributes()) {
      if (attribute.name() == "involved_dim") {
        const auto& dimensions = attribute.bool_list().values();
        entry.some_dimensions = std::ranges::find(dimensions, false) != dimensions.end();
        continue;
      }
      entry.set(attribute.name(), number_of(attribute), attribute.string_value());
    }
    reader.add(entry);
  }
  return reader.finish();
}

// ---- JSON ----

constexpr std::string_view kGraphKey = "workload_graph";

bool recognise_json(const std::string&, std::string_view beginning) {
  const std::string_view text = trimmed(beginning);
  if (!text.starts_with('{')) return false;
  const bool typed =
      text.find("\"type\": \"COM") != std::string_view::npos || text.find("\"type\":\"COM") != std::string_view::npos;
  return text.find("\"workload_graph\"") != std::string_view::npos ||
         (typed && text.find("\"nodes\"") == std::string_view::npos) ||
         text.find("\"durationMicros\"") != std::string_view::npos;
}

/// Returns the common form of "ctrlDeps" and "ctrl_deps", which is "ctrldeps".
std::string plain_key(const rapidjson::Value& name) {
  std::string key(name.GetString(), name.GetStringLength());
  std::erase(key, '_');
  for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}

std::optional<std::int64_t> number_of(const rapidjson::Value& value) {
  std::int64_t number = 0;
  if (value.IsBool()) return value.GetBool() ? 1 : 0;
  return json::whole(&value, number) ? std::optional(number) : std::nullopt;
}

/// Returns the number, rounded. Returns nothing if `value` is not a number, or is below 0.
std::optional<std::uint64_t> time_of(const rapidjson::Value& value) {
  constexpr double max = 9e18;
  if (value.IsDouble() && value.GetDouble() >= 0 && value.GetDouble() < max)
    return static_cast<std::uint64_t>(value.GetDouble() + 0.5);
  const auto number = number_of(value);
  return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

std::int64_t type_named(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kNames{"INVALID_NODE",   "METADATA_NODE", "MEM_LOAD_NODE",
                                                          "MEM_STORE_NODE", "COMP_NODE",     "COMM_SEND_NODE",
                                                          "COMM_RECV_NODE", "COMM_COLL_NODE"};
  return std::ranges::find(kNames, name) - kNames.begin();
}

void set_attribute(Entry& entry, std::string_view name, const rapidjson::Value& value) {
  if (name == "involved_dim" && value.IsObject() && value.MemberCount() == 1) {
    const rapidjson::Value& list = value.MemberBegin()->value;
    if (list.IsArray())
      for (const auto& one : list.GetArray())
        entry.some_dimensions = entry.some_dimensions || (one.IsBool() && !one.GetBool());
    return;
  }
  entry.set(name, number_of(value), json::text(&value));
}

PartialGraph read_json(TraceInput& input, const TraceOptions&) {
  const bool listed = input.beginning().find("\"workload_graph\"") != std::string_view::npos;
  JsonElements elements(input, listed ? kGraphKey : std::string_view());
  ChakraReader reader(kChakraJson.name, input);
  std::uint32_t world = 0;
  Entry entry;
  bool first = true;
  const auto fail = [&](std::string_view cause) {
    reader.builder().fail(fmt::format("{}: {}", elements.place(), cause), kRecordAgain);
  };
  elements.read(
      [&](const rapidjson::Value& value) {
        if (!value.IsObject()) fail("this is not a node");
        entry.clear();
        bool is_node = false;
        for (const auto& member : value.GetObject()) {
          const std::string key = plain_key(member.name);
          const std::optional<std::int64_t> number = number_of(member.value);
          if (key == "id") {
            if (!number || *number < 0) fail("id is not a number");
            entry.id = static_cast<std::uint64_t>(*number);
            is_node = true;
          } else if (key == "name") {
            entry.name = json::text(&member.value);
            is_node = true;
          } else if (key == "nodetype" || key == "type") {
            entry.type = number ? *number : type_named(json::text(&member.value));
            is_node = true;
          } else if (key == "ctrldeps" || key == "datadeps") {
            if (!member.value.IsArray()) fail(fmt::format("{} is not a list", key));
            for (const auto& one : member.value.GetArray()) {
              const auto id = number_of(one);
              if (!id || *id < 0) fail(fmt::format("{} has an element that is not an id", key));
              (key == "ctrldeps" ? entry.control : entry.dependencies).push_back(static_cast<std::uint64_t>(*id));
            }
          } else if (key == "runtime" || key == "durationmicros") {
            const auto time = time_of(member.value);
            if (!time) fail(fmt::format("{} is not a duration", key));
            entry.duration = *time;
          } else if (key == "starttimemicros" || key == "starttime") {
            const auto time = time_of(member.value);
            if (!time) fail(fmt::format("{} is not a time", key));
            entry.start = *time;
          } else if (key == "attr" && member.value.IsArray()) {
            for (const auto& attribute : member.value.GetArray()) {
              const std::string_view name = json::text(json::member(attribute, "name"));
              if (name.empty()) continue;
              for (const auto& part : attribute.GetObject())
                if (std::string_view(part.name.GetString(), part.name.GetStringLength()) != "name")
                  set_attribute(entry, name, part.value);
            }
          } else {
            set_attribute(entry, std::string_view(member.name.GetString(), member.name.GetStringLength()),
                          member.value);
          }
        }
        if (std::exchange(first, false) && !is_node) return;  // metadata
        if (json::member(value, "version") != nullptr && entry.name.empty()) return;
        reader.add(entry);
      },
      [&](std::string_view key, const rapidjson::Value& value) {
        const auto number = number_of(value);
        constexpr std::int64_t max = 1'000'000;
        if ((key == "ngpus" || key == "num_npus") && number && *number > 0 && *number <= max)
          world = static_cast<std::uint32_t>(*number);
      });
  PartialGraph part = reader.finish();
  part.world = world;
  return part;
}

}  // namespace

const TraceFormat kChakra{"Chakra execution trace",
                          "nodes with dependencies, times and communication (Protocol Buffers, .et)", recognise_chakra,
                          read_chakra};
const TraceFormat kChakraJson{"Chakra execution trace (JSON)", "the same as JSON", recognise_json, read_json};

}  // namespace mltcp::workload
