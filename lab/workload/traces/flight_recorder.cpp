// Reader of dumps of PyTorch's Flight Recorder, a ring buffer of the last operations of a rank's process groups. It
// reads the pickle that a watchdog or torch._C._distributed_c10d._dump_nccl_trace() writes. It also reads the JSON of
// _dump_nccl_trace_json() and of the debug server. Both formats may have version 1 or 2.
//
//   {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "entries": [
//     {"record_id": 7, "process_group": ["0", "default_pg"], "collective_seq_id": 8, "p2p_seq_id": 0, "op_id": 8,
//      "profiling_name": "nccl:all_reduce", "time_created_ns": 1724781437000000000, "duration_ms": 0.5,
//      "input_sizes": [[3, 4]], "input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"],
//      "state": "completed", "is_p2p": false}, ...]}
//
// An entry is a collective or a message. A message has a name such as "nccl:send 0->1" or "nccl:recv 1<-0", which
// contains ranks of the group. An entry "nccl:coalesced" follows entries that were launched together, and is not an
// operation.
//
// Times are those of creation on the host, in nanoseconds since 1970. With durations (TORCH_NCCL_ENABLE_TIMING=1), an
// operation begins when it has been created and the previous operation of its group has ended. Time in which no
// operation runs is computation, which waits for earlier operations. Without durations, the time from one creation to
// the next is computation. An operation then runs in parallel with the next computation, and the computation after that
// waits for it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/issue_order.h"
#include "mltcp/lab/workload/traces/json_elements.h"
#include "mltcp/lab/workload/traces/pickle.h"
#include "mltcp/lab/workload/traces/recorded.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload {
namespace {

constexpr std::string_view kDumpAgain = "copy or dump it again";
constexpr std::int64_t kMinClock = 1'000'000'000'000'000'000;  // minimum creation time in ns, in the year 2001
constexpr std::int64_t kMaxGap = 1'000'000'000'000'000;        // maximum gap between operations in ns: eleven days
constexpr std::size_t kMaxMembers = 16'000'000;                // maximum number of ranks in all groups together

using Kind = GraphNode::Kind;

struct Tensors {
  Bytes bytes = 0;
  bool stated = false;
};

struct FlightEntry {
  Kind kind = Kind::collective;
  NamedCollective what;
  bool gathers = false;  ///< whether the operation is a gather or a scatter; `what` is then its replacement
  std::uint32_t name = 0;
  std::size_t group = 0;  ///< index in groups_
  std::uint32_t own = 0;  ///< for a message: number of the own rank in the group
  std::uint32_t other = 0;
  Tensors in;
  Tensors out;
  std::int64_t created = 0;
  Nanos length;              ///< duration; 0 if unknown
  std::uint64_t number = 0;  ///< number among the group's collectives, from 1; 0 if it has none
};

struct ProcessGroup {
  std::string name;
  std::vector<std::uint32_t> ranks;                   ///< as listed in the dump; empty if not listed
  bool all = false;                                   ///< whether the group is the whole job, or is assumed to be
  bool numbered = true;                               ///< whether sequence numbers count only collectives
  std::optional<std::pair<bool, std::int64_t>> last;  ///< last entry: whether it is a message, and its sequence number
  /// Index in operations_ of the last operation with the number in `last`.
  std::optional<std::size_t> newest;
  /// Number of scheduled entries with the number in `last`. They may be parts of a coalesced operation.
  std::size_t open = 0;
  std::size_t first_open = 0;  ///< number of the first entry that `open` counts
  std::string open_shown;
  // The members below are used while nodes are written.
  bool used = false;
  bool has_own = true;      ///< whether the dump's rank is a member
  std::uint32_t root = 0;   ///< lowest rank of the group
  std::uint32_t index = 0;  ///< number of the group in the graph
  std::uint32_t lane = 0;
  Nanos ended;  ///< end of the group's last operation
  /// Number of the last collective; `equal` counts the collectives with this number, by kind.
  std::uint64_t number = 0;
  std::map<Collective, std::uint64_t> equal;
};

class FlightRecorderReader {
 public:
  explicit FlightRecorderReader(TraceInput& input)
      : builder_(kFlightRecorder.name, input), input_(input), own_(rank_in_name(input.name())) {}

  PartialGraph read() {
    const auto each = [this](const rapidjson::Value& entry) { add(entry); };
    const auto member = [this](std::string_view key, const rapidjson::Value& value) {
      if (key == "pg_config") add_groups(value);
    };
    // JsonElements does not pass members above 16 MiB to `member`.
    const bool pickled = is_pickle(input_.beginning());
    if (pickled) {
      const std::function<void(std::size_t)> hold = [this](std::size_t bytes) { builder_.hold(bytes); };
      Pickle pickle(input_, hold);
      place_ = [&] { return pickle.place(); };
      pickle.read("entries", "frames", each, member);
    } else {
      JsonElements elements(input_, "entries");
      place_ = [&] { return elements.place(); };
      elements.read(each, member);
    }
    for (ProcessGroup& group : groups_) settle(group);
    if (entries_ == 0)
      builder_.fail("it has no entries",
                    "set TORCH_FR_BUFFER_SIZE=2000 (older PyTorch: TORCH_NCCL_TRACE_BUFFER_SIZE) and dump again");
    write();
    tell();
    PartialGraph part = builder_.take();
    part.world = world_;
    part.common_clock = measured_;
    return part;
  }

 private:
  [[noreturn]] void fail(std::string_view cause) const {
    builder_.fail(fmt::format("{}: {}", place_(), cause), kDumpAgain);
  }

  // ---- Groups ----

  std::size_t group_named(std::string_view name) {
    const auto [at, added] = group_of_.try_emplace(std::string(name), groups_.size());
    if (added) {
      builder_.hold(sizeof(ProcessGroup) + sizeof(*at) + kPlace + 2 * name.size());
      groups_.emplace_back();
      groups_.back().name = name;
    }
    return at->second;
  }

  void add_groups(const rapidjson::Value& config) {
    if (!config.IsObject()) return;
    for (const auto& [key, value] : config.GetObject()) {
      ProcessGroup& group = groups_[group_named(json::text(&key))];
      group.ranks = ranks_of(json::member(value, "ranks"));
      members_ += group.ranks.size();
      builder_.hold(group.ranks.size() * sizeof(kMaxRank));
      if (members_ > kMaxMembers) builder_.fail("its groups are too large in all", "dump a job of fewer ranks");
      const bool is_default = json::text(json::member(value, "desc")) == "default_pg" || group.name == "0";
      bool whole = true;
      for (std::size_t i = 0; i < group.ranks.size(); ++i) whole = whole && group.ranks[i] == i;
      group.all = is_default && whole;
      if (group.all) world_ = std::max(world_, static_cast<std::uint32_t>(group.ranks.size()));
    }
  }

  /// Reads a list of ranks, or a text such as "[0, 1]".
  std::vector<std::uint32_t> ranks_of(const rapidjson::Value* value) const {
    std::vector<std::uint32_t> ranks;
    const auto take = [&](std::int64_t rank) {
      if (rank < 0 || rank >= kMaxRank || ranks.size() >= kMaxRank)
        builder_.fail(fmt::format("a group has a rank {}, which is out of range", rank), kDumpAgain);
      ranks.push_back(static_cast<std::uint32_t>(rank));
    };
    std::int64_t rank = 0;
    if (value != nullptr && value->IsArray()) {
      for (const auto& one : value->GetArray())
        if (json::whole(&one, rank)) take(rank);
      return ranks;
    }
    const std::string_view text = json::text(value);
    for (const char* at = text.data(); at < text.data() + text.size();) {
      const auto [end, error] = std::from_chars(at, text.data() + text.size(), rank);
      if (error == std::errc()) take(rank);
      at = end == at ? at + 1 : end;
    }
    return ranks;
  }

  // ---- Entries ----

  static std::optional<std::int64_t> number(const rapidjson::Value& entry, const char* key) {
    std::int64_t value = 0;
    return json::whole(json::member(entry, key), value) ? std::optional(value) : std::nullopt;
  }

  std::size_t group_of(const rapidjson::Value& entry) {
    const rapidjson::Value* group = json::member(entry, "process_group");
    if (group != nullptr && group->IsArray() && !group->Empty()) group = &(*group)[0];
    if (group == nullptr || !group->IsString()) group = json::member(entry, "pg_name");
    if (group != nullptr && group->IsString()) return group_named(json::text(group));
    const auto id = number(entry, "pg_id");
    return group_named(id ? std::to_string(*id) : "0");
  }

  void add(const rapidjson::Value& entry) {
    if (!entry.IsObject()) fail("this is not an entry");
    const std::string_view title = json::text(json::member(entry, "profiling_name"));
    if (title.empty()) fail("it has no \"profiling_name\"");
    ++entries_;
    const auto record = number(entry, "record_id");
    if (record && *record >= 0) {
      first_record_ = std::min(first_record_, *record);
      last_record_ = std::max(last_record_, *record);
      ++records_;
    }
    const std::string_view name = title.substr(title.find(':') == std::string_view::npos ? 0 : title.find(':') + 1);
    FlightEntry one;
    one.group = group_of(entry);
    ProcessGroup& group = groups_[one.group];
    // Since version 2.0, messages are numbered separately. In older versions, they are numbered together with
    // collectives.
    const auto collective = number(entry, "collective_seq_id");
    const auto any = collective ? collective : number(entry, "seq_id");
    const rapidjson::Value* p2p = json::member(entry, "is_p2p");
    const bool send = name.starts_with("send");
    const bool message = send || name.starts_with("recv");
    const bool counts_messages = p2p != nullptr && p2p->IsBool() ? p2p->GetBool() : message;
    const auto place =
        std::pair(counts_messages, (counts_messages && collective ? number(entry, "p2p_seq_id") : any).value_or(0));
    const auto before = std::exchange(group.last, place);
    if (before != place) settle(group);
    const std::optional<Nanos> length = length_of(entry);
    const bool coalesced = name == "coalesced";
    // The parts of a coalesced operation remain "scheduled" for ever. The state of the entry "coalesced", which comes
    // last, shows whether they have ended.
    if (coalesced) group.open = 0;
    const std::string_view state = json::text(json::member(entry, "state"));
    if (!state.empty() && state != "completed") {
      const std::string shown = record ? fmt::format("{}, record {}", in_quotes(title), *record) : in_quotes(title);
      if (state == "started" || coalesced || length) {
        ++(state == "started" ? started_ : scheduled_);
        hangs(entries_, shown);
      } else if (group.open++ == 0) {
        if (shown.size() > group.open_shown.size()) builder_.hold(shown.size() - group.open_shown.size());
        group.first_open = entries_;
        group.open_shown = shown;
      }
    }
    if (coalesced) {
      if (before != place) ++partless_;
      if (length && group.newest) {
        operations_[*group.newest].length = *length;
        measured_ = true;
      }
      return;
    }
    if (message && !collective) group.numbered = false;
    one.name = builder_.name(title);
    one.in = tensors(entry, "input_sizes", "input_dtypes");
    one.out = tensors(entry, "output_sizes", "output_dtypes");
    if (message) {
      one.kind = send ? Kind::send : Kind::receive;
      if (!ends(name, one)) fail(fmt::format("{} does not name two ranks", in_quotes(title)));
    } else {
      const auto what = collective_named(name);
      if (!what) {
        count(unknown_, title);
        return;
      }
      one.what = *what;
      one.what.barrier = what->barrier || name.find("barrier") != std::string_view::npos;
      one.gathers = name.starts_with("gather") || name.starts_with("scatter");
      if (what->instead != nullptr) count(taken_as_[what->instead], name);
      if (any && *any >= 0) one.number = static_cast<std::uint64_t>(*any) + 1;
    }
    if (!one.in.stated && !one.out.stated && !one.what.barrier) {
      count(unsized_, title);
      return;
    }
    one.created = number(entry, "time_created_ns").value_or(0);
    plausible_ = plausible_ && one.created >= kMinClock && one.created <= kLatestStart.count &&
                 (operations_.empty() || one.created - operations_.back().created <= kMaxGap);
    // If the clock was set back, use the time of the previous operation.
    if (!operations_.empty()) one.created = std::max(one.created, operations_.back().created);
    one.length = length.value_or(Nanos(0));
    measured_ = measured_ || length;
    builder_.hold(sizeof(one));
    group.newest = operations_.size();
    operations_.push_back(one);
  }

  std::optional<Nanos> length_of(const rapidjson::Value& entry) {
    const rapidjson::Value* duration = json::member(entry, "duration_ms");
    if (duration == nullptr || !duration->IsNumber()) return std::nullopt;
    const double length = duration->GetDouble() * 1e6;
    if (length >= 0 && length <= static_cast<double>(kMaxGap)) return Nanos(std::llround(length));
    ++implausible_;
    return std::nullopt;
  }

  /// Called when no more entries with the group's last sequence number follow.
  void settle(ProcessGroup& group) {
    scheduled_ += group.open;
    if (group.open > 0) hangs(group.first_open, group.open_shown);
    group.open = 0;
    group.newest.reset();
  }

  void hangs(std::size_t entry, const std::string& shown) {
    if (!hanging_.empty() && entry > hanging_at_) return;
    hanging_at_ = entry;
    hanging_ = shown;
  }

  void count(std::map<std::string, std::size_t, std::less<>>& counts, std::string_view what) {
    auto at = counts.find(what);
    if (at == counts.end()) {
      builder_.hold(sizeof(*at) + kPlace + what.size());
      at = counts.emplace(what, 0).first;
    }
    ++at->second;
  }

  /// Reads the ranks of a message from its name, e.g. "send 1->2" or "recv 3<-0". The own rank is first.
  static bool ends(std::string_view name, FlightEntry& one) {
    const std::string_view arrow = one.kind == Kind::send ? "->" : "<-";
    const std::size_t middle = name.find(arrow);
    const std::size_t space = name.find(' ');
    if (middle == std::string_view::npos || space == std::string_view::npos || space > middle) return false;
    const auto own = number_from<std::uint32_t>(trimmed(name.substr(space, middle - space)));
    const auto other = number_from<std::uint32_t>(trimmed(name.substr(middle + 2)));
    one.own = own.value_or(one.own);
    one.other = other.value_or(one.other);
    return own && other;
  }

  /// Returns the size of all tensors of an operation together.
  Tensors tensors(const rapidjson::Value& entry, const char* sizes, const char* types) {
    Tensors all;
    const rapidjson::Value* shapes = json::member(entry, sizes);
    if (shapes == nullptr || !shapes->IsArray()) return all;
    const rapidjson::Value* dtypes = json::member(entry, types);
    bool typed = true;
    for (rapidjson::SizeType i = 0; i < shapes->Size(); ++i) {
      const rapidjson::Value& shape = (*shapes)[i];
      if (!shape.IsArray()) fail(fmt::format("\"{}\" has an element that is not a list of sizes", sizes));
      const bool has_type = dtypes != nullptr && dtypes->IsArray() && i < dtypes->Size();
      const auto element = has_type ? element_bytes(json::text(&(*dtypes)[i])) : std::nullopt;
      typed = typed && element;
      constexpr Bytes guessed = 4;
      Uint128 bytes = element.value_or(guessed);
      for (const auto& dimension : shape.GetArray()) {
        std::int64_t size = 0;
        if (!json::whole(&dimension, size) || size < 0)
          fail(fmt::format("\"{}\" has an element that is not a size", sizes));
        bytes *= static_cast<std::uint64_t>(size);
        if (bytes > kMaxMessageBytes) break;
      }
      if (bytes > kMaxMessageBytes || all.bytes + static_cast<Bytes>(bytes) > kMaxMessageBytes)
        fail(fmt::format("\"{}\" is of more than {} bytes", sizes, kMaxMessageBytes));
      all.bytes += static_cast<Bytes>(bytes);
      all.stated = true;
    }
    if (all.stated && !typed) ++untyped_;
    return all;
  }

  // ---- The graph ----

  /// Returns S of collective.h, given the sizes of a rank's input and output. `ranks` is the size of the group; 0 if
  /// unknown.
  static Bytes size_of(const FlightEntry& one, Bytes ranks) {
    const Bytes in = one.in.bytes;
    const Bytes out = one.out.bytes;
    const auto of_all = [&](Bytes part) {
      return ranks == 0 ? part : std::min(part, kMaxMessageBytes / ranks) * ranks;
    };
    if (one.what.barrier) return 0;
    if (one.gathers) return std::max({in, out, of_all(std::min(in == 0 ? out : in, out == 0 ? in : out))});
    if (one.what.collective == Collective::all_gather) return out > in ? out : of_all(in);
    if (one.what.collective == Collective::reduce_scatter) return in > out ? in : of_all(out);
    if (one.what.collective == Collective::all_to_all) return in != 0 ? in : out;
    return std::max(in, out);
  }

  void write() {
    if (own_ == kUnknownRank)
      for (const FlightEntry& one : operations_)
        if (one.kind != Kind::collective && one.own < groups_[one.group].ranks.size()) {
          own_ = groups_[one.group].ranks[one.own];
          break;
        }
    measured_ = measured_ && plausible_;
    order_.emplace(builder_, builder_.rank(own_));
    compute_ = builder_.name("compute");
    computing_ = builder_.lane("computation");
    Nanos at = operations_.empty() ? Nanos(0) : Nanos(operations_.front().created);
    std::int64_t posted = 0;
    for (const FlightEntry& one : operations_) {
      ProcessGroup& group = groups_[one.group];
      if (!std::exchange(group.used, true)) use(group);
      const bool message = one.kind != Kind::collective;
      GraphNode node;
      node.kind = one.kind;
      node.name = one.name;
      node.lane = group.lane;
      node.start = Nanos::never();
      if (measured_) {
        node.start = message ? Nanos(one.created) : std::max(Nanos(one.created), group.ended);
        node.length = one.length;
        constexpr Nanos latest(kLatestStart.count + kMaxGap);
        group.ended = std::min(std::max(group.ended, node.start + node.length), latest);
      }
      if (plausible_) compute_until(at, measured_ ? node.start : Nanos(one.created));
      if (measured_) at = std::max(at, node.start + node.length);
      if (message ? !find_other(one, group, node) : !find_collective(one, group, node)) continue;
      order_->post(node, posted);
      since_.push_back(posted++);
    }
  }

  void use(ProcessGroup& group) {
    group.lane = builder_.lane(fmt::format("group {}", one_line(group.name)));
    if (group.ranks.empty()) {
      group.all = group.name == "0";
      if (!group.all) ++unlisted_;
      group.index = builder_.group({}, group.all ? PartialGraph::Group{} : PartialGraph::Group{0, group.name});
      return;
    }
    group.root = *std::ranges::min_element(group.ranks);
    group.has_own = own_ == kUnknownRank || std::ranges::find(group.ranks, own_) != group.ranks.end();
    group.index = builder_.group(group.all ? std::vector<std::uint32_t>() : group.ranks);
  }

  void compute_until(Nanos& at, Nanos until) {
    if (until <= at) return;
    GraphNode node;
    node.name = compute_;
    node.lane = computing_;
    node.start = measured_ ? at : Nanos::never();
    node.length = until - at;
    if (measured_) std::swap(before_, since_);
    for (const std::int64_t request : before_) order_->wait(request);
    before_.clear();
    std::swap(before_, since_);
    order_->compute(node);
    at = until;
  }

  bool find_collective(const FlightEntry& one, ProcessGroup& group, GraphNode& node) {
    node.collective = one.what.collective;
    node.bytes = size_of(one, group.ranks.size());
    node.group = group.index;
    node.peer = group.root;
    if (group.ranks.size() == 1) {
      ++alone_;
      return false;
    }
    if (!group.has_own) {
      ++foreign_;
      return false;
    }
    if (node.bytes == 0 && !one.what.barrier) {
      ++empty_;
      return false;
    }
    if (node.collective == Collective::broadcast) ++rootless_;
    node.tag = group.numbered ? tag_of(one, group) : 0;
    return true;
  }

  /// Returns a tag that identifies the collective, or 0 if it has no number. Collectives that were launched together
  /// have the same number, so the tag includes the position of the collective among the collectives of its kind with
  /// this number.
  static std::uint64_t tag_of(const FlightEntry& one, ProcessGroup& group) {
    constexpr unsigned bits = 12;
    if (one.number == 0 || one.number >> (63U - bits) != 0) return 0;
    if (std::exchange(group.number, one.number) != one.number) group.equal.clear();
    return one.number << bits | std::min<std::uint64_t>(group.equal[one.what.collective]++, (1U << bits) - 1);
  }

  bool find_other(const FlightEntry& one, const ProcessGroup& group, GraphNode& node) {
    node.bytes = one.kind == Kind::send ? one.in.bytes : one.out.bytes;
    if (node.bytes == 0) node.bytes = std::max(one.in.bytes, one.out.bytes);
    const auto in_job = [&](std::uint32_t rank) {
      if (rank < group.ranks.size()) return group.ranks[rank];
      return group.ranks.empty() && group.all && rank < kMaxRank ? rank : kUnknownRank;
    };
    node.peer = in_job(one.other);
    if (node.bytes == 0) {
      ++empty_;
      return false;
    }
    if (node.peer == kUnknownRank || in_job(one.own) != own_ || node.peer == own_) {
      ++peerless_;
      return false;
    }
    return true;
  }

  void tell() {
    if (records_ > 0) {
      const auto span = static_cast<std::uint64_t>(last_record_ - first_record_) + 1;
      builder_.warn(static_cast<std::size_t>(first_record_), "operation",
                    "before the first one: missing, since the buffer keeps only the last ones (TORCH_FR_BUFFER_SIZE)");
      if (span > records_)
        builder_.warn(span - records_, "operation",
                      "in between: missing, as in a dump of operations that have not ended");
    }
    if (started_ + scheduled_ > 0)
      builder_.warn(
          fmt::format("{} had not ended at the time of the dump ({} started, {} only scheduled; the first is {}): the "
                      "job may hang there, and later operations are missing",
                      plural(started_ + scheduled_, "operation"), started_, scheduled_, hanging_));
    for (const auto& [what, count] : unsized_)
      builder_.warn(fmt::format("{} of {} without sizes: left out; dumps of version 2.4 and later have them",
                                plural(count, "call"), in_quotes(what)));
    builder_.warn(partless_, "coalesced operation",
                  "without its operations: left out; dumps of version 2.7 and later have them");
    builder_.warn(untyped_, "size", "of an unknown type: assuming four bytes an element");
    for (const auto& [what, count] : unknown_)
      builder_.warn(fmt::format("{} is not a known operation: {} left out", in_quotes(what), count));
    for (const auto& [instead, names] : taken_as_)
      for (const auto& [name, count] : names)
        builder_.warn(fmt::format("{}: taken as {}", plural(count, one_line(name)), instead));
    if (rootless_ > 0)
      builder_.warn(fmt::format("the trace does not name the root of {}: assuming the first rank of each group",
                                plural(rootless_, "broadcast")));
    builder_.warn(alone_, "communication", "with a group of one rank: left out");
    builder_.warn(empty_, "communication", "of no bytes: left out");
    builder_.warn(foreign_, "collective",
                  "of a group that the rank is not in: left out; name the file by its rank, e.g. nccl_trace_rank_3");
    builder_.warn(peerless_, "message", "whose ends are not known, or are not of this rank: left out");
    builder_.warn(unlisted_, "group", "without its ranks: assuming those whose dumps name it");
    builder_.warn(implausible_, "duration", "out of range: not used");
    if (!plausible_)
      builder_.warn("its times are missing or out of range: computation is left out");
    else if (!measured_)
      builder_.warn(
          "it has no durations (TORCH_NCCL_ENABLE_TIMING=1 records them): the time between calls is taken as "
          "computation, and each communication is assumed to overlap with the first computation after it");
  }

  GraphBuilder builder_;
  TraceInput& input_;
  std::uint32_t own_;
  std::function<std::string()> place_;
  std::map<std::string, std::size_t, std::less<>> group_of_;
  std::vector<ProcessGroup> groups_;
  std::vector<FlightEntry> operations_;
  std::uint32_t world_ = 0;
  std::size_t members_ = 0;
  bool plausible_ = true;  ///< whether all times are plausible
  bool measured_ = false;  ///< whether durations were recorded
  // The members below are used while nodes are written.
  std::optional<IssueOrder> order_;
  std::uint32_t compute_ = 0;
  std::uint32_t computing_ = 0;
  std::vector<std::int64_t> since_;   ///< operations since the last computation was written
  std::vector<std::int64_t> before_;  ///< operations in parallel with the last computation
  // The members below are used for warnings at the end.
  std::size_t entries_ = 0;
  std::int64_t first_record_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_record_ = 0;
  std::uint64_t records_ = 0;
  std::size_t started_ = 0;
  std::size_t scheduled_ = 0;
  std::string hanging_;  ///< title of the first operation that had not ended
  std::size_t hanging_at_ = 0;
  std::map<std::string, std::size_t, std::less<>> unsized_;
  std::map<std::string, std::size_t, std::less<>> unknown_;
  std::map<std::string, std::map<std::string, std::size_t, std::less<>>> taken_as_;
  std::size_t partless_ = 0;
  std::size_t untyped_ = 0;
  std::size_t rootless_ = 0;
  std::size_t alone_ = 0;
  std::size_t empty_ = 0;
  std::size_t foreign_ = 0;
  std::size_t peerless_ = 0;
  std::size_t implausible_ = 0;
  std::size_t unlisted_ = 0;
};

bool recognise_flight_recorder(const std::string&, std::string_view beginning) {
  const auto has = [&](std::string_view what) { return beginning.find(what) != std::string_view::npos; };
  if (is_pickle(beginning)) return has("pg_config") || has("profiling_name") || has("nccl_version");
  return trimmed(beginning).starts_with('{') &&
         ((has("\"profiling_name\"") && has("\"time_created_ns\"")) || (has("\"pg_config\"") && has("\"version\"")));
}

PartialGraph read_flight_recorder(TraceInput& input, const TraceOptions&) { return FlightRecorderReader(input).read(); }

}  // namespace

const TraceFormat kFlightRecorder{"PyTorch Flight Recorder",
                                  "the last operations of a rank's process groups, a dump a rank",
                                  recognise_flight_recorder, read_flight_recorder};

}  // namespace mltcp::workload
