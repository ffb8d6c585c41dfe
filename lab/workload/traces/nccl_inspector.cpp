// Reader of files of NCCL's Inspector, a profiler plug-in that comes with NCCL. A file is a sequence of JSON objects
// from one process. The reader uses "coll_perf" or "p2p_perf" (operation, size, sequence number and duration) and
// "header" (communicator, its size, and the rank in it). From format 4.3 on, the header is written once before many
// objects (in "dump_stats"). With NCCL_INSPECTOR_DUMP_VERBOSE=1 the file also states when operations start, and the
// time between operations becomes computation. Gaps in the sequence numbers show how many operations the Inspector left
// out or overwrote.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "mltcp/base/json.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/nccl_calls.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kMaxRanks = 10'000'000;
constexpr std::int64_t kLatestMicros = kLatestStart.count / 1000;
constexpr std::int64_t kMaxMicros = kLongestTrace.count / 1000;  // maximum duration of an operation
constexpr JsonLimits kLimits{16, 20'000};
constexpr std::size_t kMaxObject = std::size_t{1} << 20;
constexpr std::string_view kCure = "give a file that NCCL's Inspector wrote to its end";

/// Replaces "inf" and "nan", which are not JSON, by 0.0. C's printf writes them as the bandwidth of operations whose
/// duration is 0.
std::string without_infinities(std::string text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\') ++i;
    if (!quoted && (text.compare(i, 3, "inf") == 0 || text.compare(i, 3, "nan") == 0))
      std::copy_n("0.0", 3, text.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return text;
}

class NcclInspectorReader {
 public:
  explicit NcclInspectorReader(TraceInput& input)
      : builder_("NCCL Inspector", input), calls_(builder_), input_(input) {}

  PartialGraph read() {
    split();
    if (found_.empty())
      builder_.fail("there is no \"coll_perf\" and no \"p2p_perf\" in it",
                    "run the Inspector longer, or set "
                    "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES=0");
    const bool timed = find_times();
    if (timed)
      std::ranges::stable_sort(found_, {}, &Found::start);
    else
      sort_by_number();
    count_missing();
    for (const Found& one : found_) {
      NcclCall call;
      call.name = one.name;
      call.bytes = one.bytes;
      call.root = one.peer;
      call.order = one.number;
      // Communicators run in parallel, so each communicator of a process has its own stream.
      const std::string stream = std::to_string(one.communicator);
      call.stream = stream;
      call.start = timed ? one.start : Nanos::never();
      call.length = one.length;
      calls_.call(one.communicator, call);
    }
    calls_.number_collectives();
    calls_.finish(timed);
    if (!timed)
      builder_.warn("it has no starts (NCCL_INSPECTOR_DUMP_VERBOSE=1): nothing is computed between collectives");
    PartialGraph part = builder_.take();
    part.world = calls_.world();
    part.common_clock = timed;
    return part;
  }

 private:
  struct Found {
    std::string name;
    std::uint32_t communicator = 0;
    std::uint64_t number = 0;
    bool message = false;
    Bytes bytes = 0;
    std::uint32_t peer = 0;
    Nanos start = Nanos::never();
    Nanos length;
  };

  [[noreturn]] void fail(std::string_view cause) const {
    builder_.fail(fmt::format("object {} (byte {}): {}", objects_, begin_, cause), kCure);
  }

  /// Splits the input into objects and reads each object.
  void split() {
    std::array<char, std::size_t{1} << 16> buffer;
    std::string object;
    std::size_t depth = 0;
    bool text = false;
    bool escaped = false;
    std::uint64_t at = 0;
    while (const std::size_t read = input_.read(buffer.data(), buffer.size())) {
      for (std::size_t i = 0; i < read; ++i, ++at) {
        const char c = buffer[i];
        if (depth == 0) {
          if (c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == '[' || c == ']') continue;
          begin_ = at;
          ++objects_;
          if (c != '{') fail(fmt::format("{} is not the beginning of an object", in_quotes(std::string_view(&c, 1))));
          object.clear();
        }
        object += c;
        if (object.size() > kMaxObject) fail("it is longer than 1 MiB");
        if (text) {
          if (escaped)
            escaped = false;
          else if (c == '\\')
            escaped = true;
          else if (c == '"')
            text = false;
        } else if (c == '"') {
          text = true;
        } else if (c == '{') {
          ++depth;
        } else if (c == '}' && --depth == 0) {
          take(object);
        }
      }
    }
    if (depth == 0) return;
    builder_.warn(fmt::format("it ends in the middle of object {} (byte {}), as if cut off; the {} before are kept",
                              objects_, begin_, objects_ - 1));
  }

  void take(const std::string& text) {
    if (const std::string beyond = beyond_limits(text, kLimits); !beyond.empty()) fail(fmt::format("it {}", beyond));
    Json object = Json::parse(text, nullptr, false);
    if (object.is_discarded()) object = Json::parse(without_infinities(text), nullptr, false);
    if (object.is_discarded()) fail("it is not JSON");
    if (const auto header = object.find("header"); header != object.end()) take_header(*header, object);
    const auto collective = object.find("coll_perf");
    const auto message = object.find("p2p_perf");
    if (collective != object.end()) take_call(*collective, "coll", false);
    if (message != object.end()) take_call(*message, "p2p", true);
  }

  void take_header(const Json& header, const Json& object) {
    if (!header.is_object()) fail("its \"header\" is not an object");
    const auto ranks = whole<std::uint32_t>(header, "n_ranks", 1, kMaxRanks);
    const auto rank = whole<std::uint32_t>(header, "rank", 0, kMaxRanks);
    if (!ranks || !rank || *rank >= *ranks) fail("its \"header\" has no \"rank\" below \"n_ranks\"");
    std::string id;
    if (const auto stated = header.find("id"); stated != header.end())
      id = stated->is_string() ? stated->get<std::string>() : stated->dump();
    // A file is from one process, which usually has one GPU.
    std::string owner = "process";
    if (const auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object()) {
      if (const auto host = metadata->find("hostname"); host != metadata->end())
        owner += " " + host->dump(-1, ' ', true);
      if (const auto pid = metadata->find("pid"); pid != metadata->end()) owner += " " + pid->dump(-1, ' ', true);
    }
    const std::uint32_t who = owner_of(owner, id, *rank);
    communicator_ = calls_.communicator(who, id, *ranks);
    calls_.describe(*communicator_, id, *rank);
  }

  /// Returns the owner of a rank. A process with several ranks in one communicator has several GPUs, one per rank.
  std::uint32_t owner_of(const std::string& process, const std::string& id, std::uint32_t rank) {
    const auto [found, is_new] = rank_of_.try_emplace({process, id}, rank);
    if (is_new) builder_.hold(sizeof(*found) + kPlace + process.size() + id.size());
    const auto known = found->second;
    return calls_.owner(known == rank ? process : fmt::format("{} rank {} of {}", process, rank, id), rank);
  }

  void take_call(const Json& perf, const std::string& prefix, bool message) {
    if (!communicator_) fail("there is no \"header\" before it");
    if (!perf.is_object()) fail(fmt::format("its \"{}_perf\" is not an object", prefix));
    Found one;
    const auto name = perf.find(prefix);
    if (name == perf.end() || !name->is_string()) fail(fmt::format("\"{}_perf\" has no \"{}\"", prefix, prefix));
    one.name = name->get<std::string>();
    one.communicator = *communicator_;
    one.message = message;
    const auto bytes = whole<std::uint64_t>(perf, prefix + "_msg_size_bytes", 0, kMaxCallBytes);
    if (!bytes) fail(fmt::format("\"{}_msg_size_bytes\" is missing", prefix));
    one.bytes = *bytes;
    one.number = whole<std::uint64_t>(perf, prefix + "_sn", 0, UINT64_MAX).value_or(0);
    one.length = Nanos(whole<std::int64_t>(perf, prefix + "_exec_time_us", 0, kMaxMicros).value_or(0) * 1000);
    if (message) {
      const auto peer = whole<std::uint32_t>(perf, "p2p_peer", 0, kMaxRanks);
      if (!peer) fail("\"p2p_peer\" is missing");
      one.peer = *peer;
    }
    if (const auto times = perf.find("event_trace_ts"); times != perf.end() && times->is_object())
      take_times(*times, prefix, one);
    builder_.hold(sizeof(one) + one.name.size());
    found_.push_back(std::move(one));
  }

  /// Sets the start of the operation to that of its first kernel. Earlier work of the host does not use the network.
  void take_times(const Json& times, const std::string& prefix, Found& one) const {
    auto start = whole<std::int64_t>(times, prefix + "_start_ts", 0, kLatestMicros);
    std::optional<std::int64_t> kernel;
    if (const auto events = times.find("kernel_events"); events != times.end() && events->is_array())
      for (const Json& event : *events)
        if (event.is_object())
          if (const auto began = whole<std::int64_t>(event, "kernel_start_ts", 0, kLatestMicros); began.value_or(0) > 0)
            kernel = std::min(kernel.value_or(*began), *began);
    if (kernel) start = kernel;
    if (start && *start > 0) one.start = Nanos(*start * 1000);
  }

  template <typename T>
  std::optional<T> whole(const Json& object, const std::string& key, T min, T max) const {
    const auto value = object.find(key);
    if (value == object.end()) return std::nullopt;
    const auto number = whole_number<T>(*value, min, max);
    if (!number)
      fail(fmt::format("\"{}\" is {}, not a whole number from {} to {}", key, in_quotes(value->dump(-1, ' ', true)),
                       min, max));
    return number;
  }

  /// Returns whether most operations have a start. If so, gives a start to operations that have none, or whose start is
  /// far from all other starts. Such an operation begins when the previous operation on its communicator ends.
  bool find_times() {
    std::vector<Nanos> starts;
    for (const Found& one : found_)
      if (!one.start.is_never()) starts.push_back(one.start);
    if (starts.size() * 2 <= found_.size()) return false;
    const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
    std::nth_element(starts.begin(), middle, starts.end());
    const auto is_time = [&](const Found& one) {
      return !one.start.is_never() && one.start - *middle < kLongestTrace && *middle - one.start < kLongestTrace;
    };
    const auto without =
        static_cast<std::size_t>(std::ranges::count_if(found_, [&](const Found& one) { return !is_time(one); }));
    if (without == 0) return true;
    builder_.warn(fmt::format("{} no start, or one far from all others: placed by number",
                              without == 1 ? "1 operation has" : fmt::format("{} operations have", without)));
    sort_by_number();
    std::map<std::uint32_t, Nanos> ends;  // latest end, by communicator
    for (const Found& one : found_)
      if (is_time(one)) ends.try_emplace(one.communicator, one.start);
    for (Found& one : found_) {
      Nanos& end = ends.try_emplace(one.communicator, *middle).first->second;
      if (!is_time(one)) one.start = end;
      end = one.start + one.length;
    }
    return true;
  }

  /// Sorts the operations of each communicator by number. The order of communicators in the file does not change.
  void sort_by_number() {
    std::map<std::pair<std::uint32_t, bool>, std::vector<std::size_t>> places;
    for (std::size_t i = 0; i < found_.size(); ++i) places[{found_[i].communicator, found_[i].message}].push_back(i);
    for (const auto& [key, all] : places) {
      std::vector<Found> sorted;
      sorted.reserve(all.size());
      for (const std::size_t i : all) sorted.push_back(std::move(found_[i]));
      std::ranges::stable_sort(sorted, {}, &Found::number);
      for (std::size_t i = 0; i < all.size(); ++i) found_[all[i]] = std::move(sorted[i]);
    }
  }

  void count_missing() {
    struct Numbers {
      std::uint64_t least = UINT64_MAX;
      std::uint64_t most = 0;
      std::uint64_t count = 0;
    };
    std::map<std::pair<std::uint32_t, bool>, Numbers> all;
    for (const Found& one : found_) {
      Numbers& numbers = all[{one.communicator, one.message}];
      numbers.least = std::min(numbers.least, one.number);
      numbers.most = std::max(numbers.most, one.number);
      ++numbers.count;
    }
    std::uint64_t missing = 0;
    for (const auto& [key, numbers] : all) {
      const std::uint64_t span = numbers.most - numbers.least;
      if (span >= numbers.count) missing += span - numbers.count + 1;
    }
    if (missing > 0)
      builder_.warn(
          fmt::format("{} operations between those that are there are missing, by their numbers: too small to be "
                      "recorded, or overwritten; ranks are matched by the numbers, their messages by order",
                      missing));
  }

  GraphBuilder builder_;
  NcclCalls calls_;
  TraceInput& input_;
  std::uint64_t objects_ = 0;
  std::uint64_t begin_ = 0;
  std::optional<std::uint32_t> communicator_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> rank_of_;
  std::vector<Found> found_;
};

bool recognise_nccl_inspector(const std::string& /*name*/, std::string_view beginning) {
  const std::size_t at = beginning.find_first_not_of(" \t\r\n[");
  return at != std::string_view::npos && beginning[at] == '{' &&
         (beginning.find("\"coll_perf\"") != std::string_view::npos ||
          beginning.find("\"p2p_perf\"") != std::string_view::npos ||
          beginning.find("\"inspector_output_format_version\"") != std::string_view::npos);
}

PartialGraph read_nccl_inspector(TraceInput& input, const TraceOptions& /*options*/) {
  return NcclInspectorReader(input).read();
}

}  // namespace

constinit const TraceFormat kNcclInspectorFormat{"NCCL Inspector",
                                                 "operations that NCCL's Inspector recorded, one file a process",
                                                 recognise_nccl_inspector, read_nccl_inspector};

}  // namespace mltcp::workload
