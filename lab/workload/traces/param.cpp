// Reader of communication traces of PARAM (its basic form, JSON): a list of the operations that a rank posted.
//
//   {"comms": "all_reduce", "in_msg_size": 1000, "out_msg_size": 1000, "dtype": "float", "pg_id": 0, "world_size": 8,
//    "global_ranks": [...], "root": 0, "req": 5, "startTime_ns": 1000, "markers": ["## step 3 ##"]}
//
//   sizes     numbers of elements of type `dtype`
//   groups    "init" entries and `global_ranks`, by `pg_id`; without these, any `world_size` ranks
//   waiting   "wait" entries: later entries wait for the entry with the same `req`
//   steps     a step begins when a marker with the word step or iteration changes
//   times     the rank computes between the `startTime_ns` of adjacent entries. The time after a "wait" entry counts as
//             computation as well, because the time of waiting is not recorded
//   compute   entries with "compute" instead of "comms" have no times and are left out
//   rank      from the file's name: rank3.json
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
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
constexpr std::int64_t kMaxGap = 1'000'000'000'000'000;  // nanoseconds; eleven days

class ParamReader {
 public:
  explicit ParamReader(TraceInput& input)
      : builder_(kParam.name, input),
        elements_(input, ""),
        own_(rank_in_name(input.name())),
        order_(builder_, builder_.rank(own_)) {}

  PartialGraph read() {
    elements_.read([this](const rapidjson::Value& value) { add(value); });
    if (entries_ == 0) builder_.fail("it has no entries", kRecordAgain);
    builder_.warn(computations_, "computation", "without times: left out");
    if (untyped_ > 0)
      builder_.warn(fmt::format("{} of an unknown dtype: assuming four bytes per element",
                                untyped_ == 1 ? "1 size" : fmt::format("{} sizes", untyped_)));
    for (const auto& [what, count] : taken_as_)
      builder_.warn(fmt::format("{}: taken as {}", plural(count, what.first), what.second));
    for (const auto& [what, count] : unknown_)
      builder_.warn(fmt::format("{} is not a known collective: {} left out", in_quotes(what), count));
    builder_.warn(without_size_, "communication", "without a size or kind: left out");
    builder_.warn(empty_, "communication", "of 0 bytes: collectives are taken as barriers, messages are left out");
    if (timeless_ > 0)
      builder_.warn(fmt::format("{} a startTime_ns that is not a time since 1970: ignored",
                                timeless_ == 1 ? "1 entry has" : fmt::format("{} entries have", timeless_)));
    if (!timed_) builder_.warn("it has no times: computation is left out");
    if (behind_waits_.count > 0)
      builder_.warn(fmt::format("{} after waits are counted as computation: the waiting time is not recorded",
                                to_text(behind_waits_)));
    PartialGraph part = builder_.take();
    part.world = world_;
    return part;
  }

 private:
  [[noreturn]] void fail(std::string_view cause) const {
    builder_.fail(fmt::format("{}: {}", elements_.place(), cause), kRecordAgain);
  }
  /// Returns a number of an entry. Returns an empty value if it is missing, null or not whole. Throws InputError if it
  /// exceeds `max`.
  std::optional<std::int64_t> number(const rapidjson::Value& entry, const char* key, std::int64_t max) const {
    const rapidjson::Value* value = json::member(entry, key);
    if (value == nullptr || value->IsNull()) return std::nullopt;
    std::int64_t result = 0;
    if (!json::whole(value, result)) return std::nullopt;
    if (result > max) fail(fmt::format("{} {} is out of range", key, result));
    return result;
  }

  void add(const rapidjson::Value& entry) {
    if (!entry.IsObject()) fail("this is not an entry");
    ++entries_;
    markers(json::member(entry, "markers"));
    if (json::member(entry, "comms") == nullptr) {
      if (json::member(entry, "compute") == nullptr) fail("it has neither \"comms\" nor \"compute\"");
      ++computations_;
      return;
    }
    std::string name(json::text(json::member(entry, "comms")));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto request = number(entry, "req", std::numeric_limits<std::int64_t>::max());
    groups(entry);
    if (name == "init") return;
    time(entry);
    after_wait_ = name == "wait";
    if (after_wait_) {
      if (request) order_.wait(*request);
      return;
    }
    GraphNode node;
    node.name = builder_.name(name);
    node.lane = builder_.lane("communication");
    node.start = Nanos::never();  // the end of the operation is unknown, so its time is not used
    const bool send = name == "send" || name == "isend";
    if (send || name == "recv" || name == "irecv") {
      const auto peer = number(entry, send ? "dst_rank" : "src_rank", kMaxRank);
      node.bytes = bytes(entry, send ? "in_msg_size" : "out_msg_size");
      if (node.bytes == 0) node.bytes = bytes(entry, send ? "out_msg_size" : "in_msg_size");
      if (!peer || *peer < 0 || static_cast<std::uint32_t>(*peer) == own_)
        fail("the other rank of a message is missing");
      if (is_size_missing(entry, node.bytes) || node.bytes == 0) return;
      node.kind = send ? GraphNode::Kind::send : GraphNode::Kind::receive;
      node.peer = static_cast<std::uint32_t>(*peer);
      order_.post(node, request);
      return;
    }
    const auto what = collective_named(name);
    if (!what) {
      if (name != "batch_isend_irecv") ++unknown_[name];
      return;
    }
    const Bytes in = what->barrier ? 0 : bytes(entry, "in_msg_size");
    const Bytes out = what->barrier ? 0 : bytes(entry, "out_msg_size");
    node.bytes = what->collective == Collective::all_gather ? std::max(in, out) : in != 0 ? in : out;
    if (!what->barrier && is_size_missing(entry, node.bytes)) return;
    if (what->instead != nullptr) ++taken_as_[{name, what->instead}];
    node.kind = GraphNode::Kind::collective;
    node.collective = what->collective;
    node.group = group_;
    const auto root = number(entry, "root", kMaxRank);
    if (node.collective == Collective::broadcast && root && *root >= 0) node.peer = static_cast<std::uint32_t>(*root);
    order_.post(node, request);
  }

  bool is_size_missing(const rapidjson::Value& entry, Bytes bytes) {
    const auto states = [&](const char* key) { return number(entry, key, INT64_MAX).has_value(); };
    const bool is_size_missing = !states("in_msg_size") && !states("out_msg_size");
    if (bytes == 0) ++(is_size_missing ? without_size_ : empty_);
    return is_size_missing;
  }

  Bytes bytes(const rapidjson::Value& entry, const char* key) {
    const auto elements = number(entry, key, static_cast<std::int64_t>(kMaxMessageBytes));
    if (!elements) return 0;
    if (*elements < 0) fail(fmt::format("{} {} is negative", key, *elements));
    const auto size = element_bytes(json::text(json::member(entry, "dtype")));
    if (!size) ++untyped_;
    constexpr Bytes guessed = 4;
    return std::min(static_cast<Bytes>(*elements), kMaxMessageBytes / 16) * size.value_or(guessed);
  }

  void groups(const rapidjson::Value& entry) {
    const auto size = number(entry, "world_size", kMaxRank);
    const auto id = number(entry, "pg_id", std::numeric_limits<std::int64_t>::max());
    std::vector<std::uint32_t> ranks;
    if (const auto* list = json::member(entry, "global_ranks"); list != nullptr && list->IsArray())
      for (const auto& rank : list->GetArray()) {
        if (!rank.IsUint() || rank.GetUint() >= kMaxRank) fail("global_ranks has an element that is not a rank");
        ranks.push_back(rank.GetUint());
      }
    const std::string name = id ? std::to_string(*id) : "";
    // Process group 0 contains all ranks.
    if (id.value_or(0) == 0 && size && *size > 0) world_ = std::max(world_, static_cast<std::uint32_t>(*size));
    if (!ranks.empty()) {
      group_ = builder_.group(std::move(ranks));
      by_name_[name] = group_;
    } else if (const auto known = by_name_.find(name); known != by_name_.end()) {
      group_ = known->second;
    } else {
      const bool part = id.value_or(0) != 0 && size && *size > 0;
      group_ = builder_.group(
          {}, part ? PartialGraph::Group{static_cast<std::uint32_t>(*size), name} : PartialGraph::Group{});
    }
  }

  void time(const rapidjson::Value& entry) {
    const rapidjson::Value* value = json::member(entry, "startTime_ns");
    if (value == nullptr || value->IsNull()) return;
    std::int64_t stated = 0;
    if (!json::whole(value, stated) || stated <= 0 || stated > kLatestStart.count) {
      ++timeless_;
      return;
    }
    if (last_start_) {
      const std::int64_t gap = stated - *last_start_;
      if (gap < 0) fail(fmt::format("time runs backwards, from {} to {} ns", *last_start_, stated));
      if (gap > kMaxGap) fail(fmt::format("nothing happens for {} ns", gap));
      if (gap > 0) {
        if (after_wait_) behind_waits_ += Nanos(gap);
        GraphNode node;
        node.name = builder_.name("compute");
        node.lane = builder_.lane("computation");
        node.length = Nanos(gap);
        node.start = Nanos(*last_start_);
        order_.compute(node);
        timed_ = true;
      }
    }
    last_start_ = stated;
  }

  void markers(const rapidjson::Value* list) {
    if (list == nullptr || !list->IsArray()) return;
    for (const auto& one : list->GetArray()) {
      std::string plain(json::text(&one));
      for (char& c : plain) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (plain.find("step") == std::string::npos && plain.find("iteration") == std::string::npos) continue;
      if (plain == marker_) return;
      const std::uint32_t step = builder_.step(std::string(json::text(&one)));
      if (!marker_.empty()) order_.next_step(step);
      marker_ = plain;
      return;
    }
  }

  GraphBuilder builder_;
  JsonElements elements_;
  std::uint32_t own_;
  IssueOrder order_;
  std::map<std::string, std::uint32_t> by_name_;
  std::map<std::pair<std::string, std::string>, std::size_t> taken_as_;
  std::map<std::string, std::size_t> unknown_;
  std::string marker_;
  std::optional<std::int64_t> last_start_;
  std::uint32_t group_ = 0;
  std::uint32_t world_ = 0;
  std::size_t entries_ = 0;
  std::size_t computations_ = 0;
  std::size_t untyped_ = 0;
  std::size_t without_size_ = 0;  ///< communications without a size
  std::size_t empty_ = 0;         ///< communications of 0 bytes
  std::size_t timeless_ = 0;      ///< entries without a valid time
  Nanos behind_waits_;            ///< total time between the beginning of a wait and the next entry
  bool after_wait_ = false;
  bool timed_ = false;
};

bool recognise_param(const std::string&, std::string_view beginning) {
  const std::string_view text = trimmed(beginning);
  return text.starts_with('[') &&
         (text.find("\"comms\"") != std::string_view::npos ||
          (text.find("\"compute\"") != std::string_view::npos && text.find("\"ph\"") == std::string_view::npos));
}

PartialGraph read_param(TraceInput& input, const TraceOptions&) { return ParamReader(input).read(); }

}  // namespace

const TraceFormat kParam{"PARAM communication trace", "what a rank posted, with the time between", recognise_param,
                         read_param};

}  // namespace mltcp::workload
