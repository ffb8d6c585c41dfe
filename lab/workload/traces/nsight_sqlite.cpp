// Reader of SQLite exports of Nsight Systems (nsys export --type sqlite): kernels of a GPU, the calls that launched
// them, and NVTX ranges of the program and of NCCL. The graph is made as for PyTorch's profiler (kineto_graph.h).
// Tables and columns are those of NVIDIA's "SQLite Schema Reference"; missing tables and columns are ignored.
//
//   steps           NVTX ranges named "iteration 12", "step 3" and so on. Among sets of names that differ only in
//                   digits, the set that covers most time is used
//   communication   kernels of NCCL. NVTX has ranges of the calls. The calls of a thread since the previous kernels
//                   belong to the kernels that the thread launches next. They are matched by kind and in order
//   sizes, groups   the payload of the call's range: "Message size [bytes]", "NCCL communicator ID", "Peer rank", as
//                   JSON (jsonText) or as bytes (binaryData) with their schema. The ranks of a communicator, and the
//                   rank of the process, are in the payload of ncclCommInitRank
//   one rank        if there are several processes or GPUs, those with most kernels of NCCL are used; the first, if
//                   several have equally many
//
// A file is untrusted. It is opened from memory and read-only. Everything but reading tables is refused, including
// views, triggers, virtual tables, computed columns and functions. The size of the file bounds the work.
#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/database.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/json_elements.h"
#include "mltcp/lab/workload/traces/kineto_events.h"
#include "mltcp/lab/workload/traces/kineto_graph.h"
#include "mltcp/lab/workload/traces/recorded.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload {
namespace {

using Kind = KinetoDetails::Kind;

constexpr std::int64_t kMaxTime = 100'000'000'000'000'000;  // nanoseconds; three years
constexpr std::int64_t kHighestRank = 10'000'000;
constexpr std::int64_t kProcessOf = ~std::int64_t{0xFFFFFF};  // bits of a thread's number that identify its process
constexpr std::size_t kMaxText = 4096;   // texts of NCCL are below 1 KiB; each text is read several times
constexpr std::size_t kMaxBeside = 256;  // maximum number of streams for the messages of one kernel

/// The payload of a range of NCCL. Each value may be missing.
struct Payload {
  std::optional<std::int64_t> communicator;
  std::optional<std::int64_t> bytes;
  std::optional<std::int64_t> peer;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> ranks;

  void set(std::string_view name, std::int64_t value) {
    if (name == "NCCL communicator ID") communicator = value;
    if (name == "Message size [bytes]") bytes = value;
    if (name == "Peer rank" || name == "Peer") peer = value;
    if (name == "Rank") rank = value;
    if (name == "No. of ranks") ranks = value;
  }
};

/// Kinds by which calls are matched with kernels. Kernels of sends and receives also run collectives made of messages.
enum class Sort : std::uint8_t { other, all_reduce, all_gather, reduce_scatter, broadcast, reduce, messages };

Sort sort_of(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("AllReduce")) return Sort::all_reduce;
  if (has("AllGather")) return Sort::all_gather;
  if (has("ReduceScatter")) return Sort::reduce_scatter;
  if (has("Broadcast") || has("Bcast")) return Sort::broadcast;
  if (has("Reduce_") || name == "Reduce") return Sort::reduce;
  for (const std::string_view part : {"Send", "Recv", "AlltoAll", "AllToAll", "Gather", "Scatter"})
    if (has(part)) return Sort::messages;
  return Sort::other;
}

struct Call {
  std::int64_t start = 0;
  std::int64_t thread = 0;
  Sort sort = Sort::other;
  std::uint32_t name = 0;  ///< index in KinetoEvents::names
  Payload payload;
};

struct Kernel {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t device = 0;
  std::int64_t stream = 0;
  std::int64_t correlation = 0;
  std::int64_t process = 0;
  std::int64_t name = 0;
  bool copies = false;
};

struct Range {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t thread = 0;
  std::string name;
};

/// Returns a name in lower case with its digits replaced: "iteration #" for "Iteration 12". Returns an empty text if it
/// is not the name of an iteration.
std::string stem_of(std::string_view name) {
  constexpr std::size_t max = 100;
  std::string stem;
  std::string word;
  bool found = false;
  if (name.size() > max) return stem;
  const auto end_word = [&] {
    for (const std::string_view known : {"iteration", "iter", "step", "profilerstep", "trainstep"})
      found = found || word == known;
    word.clear();
  };
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!digit || stem.empty() || stem.back() != '#') stem += digit ? '#' : lower;
    if (lower >= 'a' && lower <= 'z')
      word += lower;
    else
      end_word();
  }
  end_word();
  return found && stem.find("optim") == std::string::npos ? stem : std::string();
}

class NsightReader {
 public:
  explicit NsightReader(TraceInput& input)
      : builder_(kNsightSqlite.name, input),
        hold_([this](std::size_t bytes) { builder_.hold(bytes); }),
        database_(input, hold_) {
    events_.file = input.name();
  }

  PartialGraph read() {
    if (!database_.has("CUPTI_ACTIVITY_KIND_KERNEL"))
      builder_.fail("it is an SQLite database without a table CUPTI_ACTIVITY_KIND_KERNEL",
                    "record with nsys profile --trace=cuda,nvtx, and export with nsys export --type sqlite");
    read_texts();
    read_kernels();
    choose();
    read_calls_of_cuda();
    read_ranges();
    find_communicators();
    find_steps();
    match();
    finish();
    tell();
    return graph_of_events(builder_, events_);
  }

 private:
  // ---- Tables ----

  void read_texts() {
    database_.each("StringIds", {"id", "value"}, [&](const Database::Row& row) {
      const auto id = row.whole(0);
      const std::string_view text = row.text(1).size() <= kMaxText ? row.text(1) : std::string_view();
      const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
      const bool wanted = text.starts_with("nccl") || has("NCCL") || has("Synchronize") || has("StreamWaitEvent") ||
                          !stem_of(text).empty();
      if (!id || !wanted) return;
      builder_.hold(sizeof(std::string) + kPlace + text.size());
      texts_.emplace(*id, text);
    });
  }

  [[nodiscard]] std::string_view text_of(std::optional<std::int64_t> id) const {
    const auto found = id ? texts_.find(*id) : texts_.end();
    return found == texts_.end() ? std::string_view() : std::string_view(found->second);
  }

  bool plausible(std::optional<std::int64_t> start, std::optional<std::int64_t> end) {
    const bool good = start && end && *start >= 0 && *start <= *end && *end <= kMaxTime;
    if (!good && end) ++implausible_;
    return good;
  }

  void read_kernels() {
    const auto add = [&](const Database::Row& row, bool copies) {
      const auto start = row.whole(0);
      const auto end = row.whole(1);
      if (!plausible(start, end)) return;
      Kernel kernel;
      kernel.start = *start;
      kernel.end = *end;
      kernel.device = row.whole(2).value_or(0);
      kernel.stream = row.whole(3).value_or(0);
      kernel.correlation = row.whole(4).value_or(-1);
      kernel.process = row.whole(5).value_or(0) & kProcessOf;
      kernel.name = -1;
      for (const int column : {6, 7})
        if (kernel.name < 0 && is_communication(text_of(row.whole(column)))) kernel.name = *row.whole(column);
      kernel.copies = copies;
      builder_.hold(sizeof(kernel));
      kernels_.push_back(kernel);
    };
    database_.each("CUPTI_ACTIVITY_KIND_KERNEL",
                   {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "shortName"},
                   [&](const Database::Row& row) { add(row, false); });
    for (const std::string_view table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"})
      database_.each(table, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid"},
                     [&](const Database::Row& row) { add(row, true); });
  }

  static bool is_communication(std::string_view name) {
    return name.starts_with("nccl") && name.find("Kernel") != std::string_view::npos;
  }

  /// Chooses the process and GPU with most kernels that communicate. If several have equally many, chooses the first.
  void choose() {
    // Number of kernels that communicate, by GPU and process.
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> all;
    for (const Kernel& kernel : kernels_) {
      const auto [at, added] = all.try_emplace({kernel.device, kernel.process});
      if (added) builder_.hold(sizeof(*at) + kPlace);
      if (kernel.name >= 0) ++at->second;
    }
    if (all.empty()) builder_.fail("it has no kernels of a GPU", "record with nsys profile --trace=cuda,nvtx");
    const auto max = std::ranges::max_element(all, [](const auto& a, const auto& b) { return a.second < b.second; });
    device_ = max->first.first;
    process_ = max->first.second;
    std::erase_if(kernels_, [&](const Kernel& k) { return k.device != device_ || k.process != process_; });
    std::size_t others = 0;
    for (const auto& [key, communications] : all)
      if (key != max->first && communications > 0) ++others;
    if (others > 0)
      builder_.warn(
          fmt::format("it holds {} processes or GPUs that communicate: only GPU {} is read; record each rank "
                      "in a file of its own for the others",
                      others + 1, device_));
    events_.devices = 1;
    for (const Kernel& kernel : kernels_) launched_.push_back(kernel.correlation);
    builder_.hold(launched_.size() * sizeof(launched_.front()));
    std::ranges::sort(launched_);
  }

  [[nodiscard]] bool is_own(std::int64_t thread) const { return process_ == 0 || (thread & kProcessOf) == process_; }

  void read_calls_of_cuda() {
    database_.each("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId"},
                   [&](const Database::Row& row) {
                     const std::int64_t id = row.whole(2).value_or(0);
                     if (!is_own(id) || !plausible(row.whole(0), row.whole(1))) return;
                     const Nanos start(*row.whole(0));
                     const std::string_view name = text_of(row.whole(4));
                     const std::int64_t correlation = row.whole(3).value_or(-1);
                     if (std::ranges::binary_search(launched_, correlation)) {
                       builder_.hold(sizeof(KinetoEvents::Launch));
                       events_.launches.push_back({correlation, start, thread(id)});
                     }
                     if (name.find("Synchronize") != std::string_view::npos) {
                       builder_.hold(sizeof(KinetoSpan));
                       events_.synchronisations.push_back({start, Nanos(*row.whole(1)) - start});
                     } else if (name.find("StreamWaitEvent") != std::string_view::npos) {
                       builder_.hold(sizeof(KinetoEvents::WaitCall));
                       events_.wait_calls.push_back({start, thread(id)});
                     }
                   });
  }

  std::uint32_t thread(std::int64_t id) {
    const auto [at, added] = threads_.try_emplace(id, static_cast<std::uint32_t>(threads_.size()));
    if (added) builder_.hold(sizeof(*at) + kPlace);
    return at->second;
  }

  void read_ranges() {
    read_schemas();
    database_.each("NVTX_EVENTS",
                   {"start", "end", "globalTid", "text", "textId", "jsonText", "jsonTextId", "binaryData"},
                   [&](const Database::Row& row) {
                     std::string_view name = row.text(3);
                     if (name.empty()) name = text_of(row.whole(4));
                     if (name.empty() || !row.whole(1)) return;
                     const std::int64_t id = row.whole(2).value_or(0);
                     // NCCL's ranges have names like ncclAllReduce. PyTorch has ranges like nccl:all_reduce around
                     // calls.
                     const bool calls = name.starts_with("nccl") && name.size() > 4 && name[4] >= 'A' && name[4] <= 'Z';
                     if (!calls && stem_of(name).empty()) return;
                     if (!is_own(id) || !plausible(row.whole(0), row.whole(1))) return;
                     if (!calls) {
                       builder_.hold(sizeof(Range) + name.size());
                       ranges_.push_back({*row.whole(0), *row.whole(1), id, one_line(name)});
                       return;
                     }
                     name.remove_prefix(4);
                     Call call;
                     call.start = *row.whole(0);
                     call.thread = id;
                     call.payload = payload_of(row);
                     if (name.starts_with("CommInit") || name.starts_with("CommSplit")) {
                       learn(call.payload);
                       return;
                     }
                     const bool message = name == "Send" || name == "Recv";
                     if (!message && !collective_named(name)) return;
                     call.sort = sort_of(name);
                     call.name = this->name(name);
                     builder_.hold(sizeof(call));
                     calls_.push_back(call);
                   });
  }

  std::uint32_t name(std::string_view text) {
    const auto [at, added] = name_of_.try_emplace(std::string(text), static_cast<std::uint32_t>(events_.names.size()));
    if (added) {
      builder_.hold(sizeof(*at) + kPlace + 2 * text.size());
      events_.names.emplace_back(text);
    }
    return at->second;
  }

  // ---- Payloads ----

  struct Field {
    std::string name;
    std::size_t offset = 0;
    std::size_t size = 0;
  };

  void read_schemas() {
    struct Entry {
      std::int64_t index = 0;
      std::int64_t type = 0;
      std::optional<std::int64_t> offset;
      std::string name;
    };
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Entry>> all;
    database_.each("NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "idx", "type", "name", "offset"},
                   [&](const Database::Row& row) {
                     builder_.hold(sizeof(Entry) + kPlace + row.text(4).size());
                     all[{row.whole(0).value_or(0), row.whole(1).value_or(0)}].push_back(
                         {row.whole(2).value_or(0), row.whole(3).value_or(0), row.whole(5), std::string(row.text(4))});
                   });
    for (auto& [key, entries] : all) {
      std::ranges::stable_sort(entries, {}, &Entry::index);
      std::size_t end = 0;
      for (const Entry& entry : entries) {
        // In NVTX, the types 5, 6, 15 and 16 have four bytes. The types 7 to 10, 17, 18 and 22 have eight bytes.
        constexpr std::uint64_t four = 1U << 5U | 1U << 6U | 1U << 15U | 1U << 16U;
        constexpr std::uint64_t eight = 0xFU << 7U | 1U << 17U | 1U << 18U | 1U << 22U;
        const std::uint64_t bit = entry.type >= 0 && entry.type < 64 ? std::uint64_t{1} << entry.type : 0;
        const std::size_t size = (bit & four) != 0 ? 4 : (bit & eight) != 0 ? 8 : 0;
        constexpr std::int64_t max = 1 << 16;
        const bool placed = entry.offset && *entry.offset >= 0 && *entry.offset <= max;
        const std::size_t aligned = size == 0 ? end : (end + size - 1) / size * size;
        const std::size_t at = placed ? static_cast<std::size_t>(*entry.offset) : aligned;
        if (size > 0) schemas_[key].push_back({entry.name, at, size});
        end = at + size;
      }
    }
  }

  [[nodiscard]] Payload payload_of(const Database::Row& row) const {
    Payload payload;
    std::string_view text = row.text(5);
    if (text.empty()) text = text_of(row.whole(6));
    if (!text.empty()) {
      rapidjson::Document document;
      constexpr unsigned how = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;
      document.Parse<how>(text.data(), text.size());
      if (!document.HasParseError() && document.IsObject())
        for (const auto& [key, value] : document.GetObject()) {
          std::int64_t number = 0;
          // Identifiers of communicators use all 64 bits.
          if (value.IsUint64())
            payload.set(json::text(&key), static_cast<std::int64_t>(value.GetUint64()));
          else if (json::whole(&value, number))
            payload.set(json::text(&key), number);
        }
      return payload;
    }
    // A binary payload begins with a head of 32 bytes: domain, schema and lengths.
    const std::string_view bytes = row.text(7);
    constexpr std::size_t head = 32;
    const auto little = [&](std::size_t at, std::size_t size) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < size; ++i)
        value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
      return value;
    };
    if (bytes.size() < head) return payload;
    const auto schema =
        schemas_.find({static_cast<std::int64_t>(little(0, 4)), static_cast<std::int64_t>(little(8, 4))});
    if (schema == schemas_.end()) return payload;
    for (const Field& field : schema->second)
      if (head + field.offset + field.size <= bytes.size())
        payload.set(field.name, static_cast<std::int64_t>(little(head + field.offset, field.size)));
    return payload;
  }

  // ---- Communicators ----

  void learn(const Payload& payload) {
    if (!payload.ranks || *payload.ranks < 1 || *payload.ranks > kHighestRank) return;
    const auto ranks = static_cast<std::uint32_t>(*payload.ranks);
    const bool largest = ranks > events_.workers;
    if (largest) events_.workers = ranks;
    if (largest && payload.rank && *payload.rank >= 0 && *payload.rank < *payload.ranks)
      events_.rank = static_cast<std::uint32_t>(*payload.rank);
    if (!payload.communicator) return;
    const auto [at, added] = ranks_of_.insert_or_assign(*payload.communicator, ranks);
    if (added) builder_.hold(sizeof(*at) + kPlace);
  }

  void find_communicators() {
    for (const Call& call : calls_) {
      const auto id = call.payload.communicator;
      if (!id || group_of_.contains(*id)) continue;
      builder_.hold(sizeof(KinetoEvents::Group) + 2 * kPlace);
      group_of_.emplace(*id, static_cast<std::int32_t>(events_.groups.size()));
      events_.groups.push_back({fmt::format("{:#x}", static_cast<std::uint64_t>(*id)), {}});
    }
  }

  /// Returns the details of a call that NVTX recorded.
  KinetoDetails details_of(const Call& call) {
    KinetoDetails details;
    const std::string& name = events_.names[call.name];
    const Payload& payload = call.payload;
    // If the call names no communicator, or if the recording contains no creation of a communicator, assumes that all
    // ranks of the job take part.
    const auto known = payload.communicator ? ranks_of_.find(*payload.communicator) : ranks_of_.end();
    const std::uint32_t ranks = known != ranks_of_.end()                       ? known->second
                                : payload.communicator && ranks_of_.size() > 0 ? 0
                                                                               : events_.workers;
    if (payload.communicator) details.group = group_of_.at(*payload.communicator);
    details.workers = ranks;
    std::optional<Bytes> bytes;
    if (payload.bytes && *payload.bytes >= 0)
      bytes = std::min<Bytes>(static_cast<Bytes>(*payload.bytes), kMaxKinetoBytes);
    if (name == "Send" || name == "Recv") {
      details.kind = name == "Send" ? Kind::send : Kind::receive;
      (name == "Send" ? details.in : details.out) = bytes;
      // In a smaller group, the peer's number is not a rank of the job.
      if (payload.peer && *payload.peer >= 0 && *payload.peer < kHighestRank && ranks == events_.workers)
        details.peer = *payload.peer;
      return details;
    }
    const NamedCollective what = *collective_named(name);
    if (what.instead != nullptr) ++taken_as_[{name, what.instead}];
    details.kind = Kind::collective;
    details.collective = what.collective;
    // If each rank has a part of the data, the size passed to NCCL is that of one part.
    const bool of_all = what.collective == Collective::all_gather || what.collective == Collective::reduce_scatter ||
                        what.collective == Collective::all_to_all;
    if (ranks == 0) ++rankless_;
    if (of_all && ranks == 0) return details;
    if (of_all && bytes) bytes = static_cast<Bytes>(std::min<Uint128>(Uint128{*bytes} * ranks, kMaxKinetoBytes));
    details.in = details.out = bytes;
    return details;
  }

  // ---- Steps ----

  void find_steps() {
    std::map<std::pair<std::string, std::int64_t>, std::vector<const Range*>> by_stem;
    for (const Range& range : ranges_) by_stem[{stem_of(range.name), range.thread}].push_back(&range);
    const std::vector<const Range*>* best = nullptr;
    std::int64_t longest = 0;
    for (auto& [stem, all] : by_stem) {
      std::ranges::stable_sort(all, [](const Range* a, const Range* b) { return a->start < b->start; });
      std::int64_t covered = 0;
      bool apart = true;
      for (std::size_t i = 0; i < all.size(); ++i) {
        apart = i == 0 || all[i - 1]->end <= all[i]->start;
        if (!apart) break;
        covered += all[i]->end - all[i]->start;
      }
      if (!apart || covered <= longest) continue;
      longest = covered;
      best = &all;
    }
    if (best == nullptr) return;
    for (const Range* range : *best) {
      KinetoEvents::Step step;
      step.start = Nanos(range->start);
      step.length = Nanos(range->end - range->start);
      // Steps with equal names get a number, because join() would merge them into one step.
      step.name = best->size() > 1 && best->front()->name == best->back()->name
                      ? fmt::format("{} {}", range->name, events_.steps.size())
                      : range->name;
      builder_.hold(sizeof(step) + step.name.size());
      events_.steps.push_back(std::move(step));
    }
  }

  // ---- Calls and kernels ----

  struct Launched {
    std::int64_t at = 0;
    std::size_t kernel = 0;
    Sort sort = Sort::other;
  };

  void match() {
    std::ranges::sort(events_.launches, [](const auto& a, const auto& b) {
      return std::pair(a.correlation, a.start) < std::pair(b.correlation, b.start);
    });
    events_.launches.erase(std::unique(events_.launches.begin(), events_.launches.end(),
                                       [](const auto& a, const auto& b) { return a.correlation == b.correlation; }),
                           events_.launches.end());
    std::map<std::uint32_t, std::pair<std::vector<std::size_t>, std::vector<Launched>>> threads;
    for (std::size_t i = 0; i < calls_.size(); ++i) threads[thread(calls_[i].thread)].first.push_back(i);
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const Kernel& kernel = kernels_[i];
      if (kernel.name < 0) {
        builder_.hold(sizeof(KinetoEvents::Kernel));
        KinetoEvents::Kernel one;
        one.start = Nanos(kernel.start);
        one.length = Nanos(kernel.end - kernel.start);
        one.correlation = kernel.correlation;
        one.stream = stream(kernel.stream);
        one.copies = kernel.copies;
        set_launch(one);
        events_.kernels.push_back(one);
        continue;
      }
      const KinetoEvents::Launch* const launch = events_.launch(kernel.correlation);
      if (launch == nullptr)
        add(kernel, nullptr, 0);
      else
        threads[launch->thread].second.push_back({launch->start.count, i, sort_of(text_of(kernel.name))});
    }
    for (auto& [number, both] : threads) match_thread(both.first, both.second);
  }

  /// Matches a thread's calls with its kernels. The calls since the previous kernels belong to the kernels launched
  /// next.
  void match_thread(std::vector<std::size_t>& calls, std::vector<Launched>& launches) {
    std::ranges::stable_sort(calls, [&](std::size_t a, std::size_t b) { return calls_[a].start < calls_[b].start; });
    std::ranges::stable_sort(launches, [](const auto& a, const auto& b) { return a.at < b.at; });
    std::size_t call = 0;
    for (std::size_t i = 0; i < launches.size();) {
      const std::size_t first = call;
      while (call < calls.size() && calls_[calls[call]].start <= launches[i].at) ++call;
      const std::int64_t until =
          call < calls.size() ? calls_[calls[call]].start : std::numeric_limits<std::int64_t>::max();
      const std::size_t from = i;
      while (i < launches.size() && launches[i].at < until) ++i;
      if (i == from) ++i;
      match_batch(std::span(calls).subspan(first, call - first), std::span(launches).subspan(from, i - from));
    }
    callless_ += calls.size() - call;
  }

  void match_batch(std::span<const std::size_t> calls, std::span<const Launched> launches) {
    // Calls and kernels of each sort.
    std::map<Sort, std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> all;
    for (const Launched& launched : launches) all[launched.sort].second.push_back(launched.kernel);
    for (const std::size_t call : calls) {
      Sort sort = calls_[call].sort;
      // Kernels of sort `other` may run any operation.
      if (!all.contains(sort) && all.contains(Sort::other)) sort = Sort::other;
      const auto found = all.find(sort);
      if (found == all.end() || found->second.second.empty())
        ++callless_;
      else
        found->second.first.push_back(call);
    }
    for (const auto& [sort, both] : all) {
      const auto& [made, kernels] = both;
      for (std::size_t k = 0; k < kernels.size(); ++k) {
        const bool last = k + 1 == kernels.size();
        const std::size_t end = last ? made.size() : std::min(k + 1, made.size());
        if (k >= end) add(kernels_[kernels[k]], nullptr, 0);
        // The last kernel gets the remaining calls.
        for (std::size_t c = k; c < end; ++c) add(kernels_[kernels[k]], &calls_[made[c]], c - k);
      }
    }
  }

  /// Adds a communication. `place` is the index of the call among the calls of the kernel. Messages of one kernel run
  /// in parallel, so each has its own stream.
  void add(const Kernel& kernel, const Call* call, std::size_t place) {
    builder_.hold(sizeof(KinetoEvents::Communication));
    KinetoEvents::Communication one;
    one.start = Nanos(kernel.start);
    one.length = Nanos(kernel.end - kernel.start);
    one.correlation = kernel.correlation;
    const bool message = call != nullptr && call->sort == Sort::messages;
    one.stream = stream(kernel.stream, message ? place % kMaxBeside : 0);
    one.event = events_.communications.size() + 1;
    if (call != nullptr) {
      one.name = call->name;
      one.details = details_of(*call);
    } else {
      one.name = name(text_of(kernel.name).substr(0, text_of(kernel.name).find('(')));
    }
    set_launch(one);
    ++communications_;
    if (!one.details.in && !one.details.out) ++unsized_;
    events_.communications.push_back(one);
  }

  /// Sets when the kernel was launched. Calls before the recording have lower correlations than recorded calls.
  void set_launch(KinetoEvents::Kernel& one) const {
    using Known = KinetoEvents::Kernel::Call;
    if (const auto* const launch = events_.launch(one.correlation)) {
      one.call = launch->start;
      one.known = Known::own;
    } else if (!events_.launches.empty() && one.correlation < events_.launches.front().correlation) {
      one.known = Known::earlier;
    }
  }

  std::uint32_t stream(std::int64_t id, std::size_t place = 0) {
    const auto [at, added] = streams_.try_emplace({id, place}, static_cast<std::uint32_t>(streams_.size()));
    if (added) builder_.hold(sizeof(*at) + kPlace);
    return at->second;
  }

  void finish() {
    const auto by_start = [](const auto& a, const auto& b) { return a.start < b.start; };
    std::ranges::stable_sort(events_.kernels, by_start);
    std::ranges::stable_sort(events_.communications, by_start);
    std::ranges::stable_sort(events_.synchronisations, by_start);
    std::ranges::stable_sort(events_.wait_calls, by_start);
    database_.each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"},
                   [&](const Database::Row& row) { events_.clock = Nanos(row.whole(0).value_or(0)); });
  }

  void tell() {
    builder_.warn(implausible_, "event", "with times out of range: left out");
    if (unsized_ > 0)
      builder_.warn(
          fmt::format("{} of {} communications have no size: record NCCL's ranges (nsys profile --trace=cuda,nvtx, "
                      "without CUDA graphs) "
                      "and export their payloads (nsys export --type sqlite --include-blobs=true)",
                      unsized_, communications_));
    builder_.warn(rankless_, "collective",
                  "of communicators whose number of ranks is not in it: assuming the whole job, and leaving "
                  "out those of which each rank has a part; record from before ncclCommInitRank on");
    builder_.warn(callless_, "call", "of NCCL without a kernel: left out");
    for (const auto& [what, count] : taken_as_)
      builder_.warn(fmt::format("{}: taken as {}", plural(count, what.first), what.second));
  }

  GraphBuilder builder_;
  std::function<void(std::size_t)> hold_;
  Database database_;
  KinetoEvents events_;
  std::map<std::int64_t, std::string> texts_;  ///< only texts that are in use
  std::vector<Kernel> kernels_;
  std::vector<std::int64_t> launched_;  ///< correlations of kernels, ascending
  std::vector<Range> ranges_;           ///< ranges that may be iterations
  std::vector<Call> calls_;             ///< calls of NCCL
  std::int64_t device_ = 0;
  std::int64_t process_ = 0;
  /// Fields of a payload, by domain and schema.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Field>> schemas_;
  std::map<std::int64_t, std::uint32_t> ranks_of_;  ///< number of ranks, by communicator
  std::map<std::int64_t, std::int32_t> group_of_;
  std::map<std::int64_t, std::uint32_t> threads_;
  std::map<std::pair<std::int64_t, std::size_t>, std::uint32_t> streams_;
  std::map<std::string, std::uint32_t> name_of_;
  std::map<std::pair<std::string, std::string>, std::size_t> taken_as_;
  std::size_t communications_ = 0;
  std::size_t implausible_ = 0;
  std::size_t unsized_ = 0;
  std::size_t rankless_ = 0;
  std::size_t callless_ = 0;
};

bool recognise_nsight(const std::string&, std::string_view beginning) {
  using namespace std::literals;
  return beginning.starts_with("SQLite format 3\0"sv);
}

PartialGraph read_nsight(TraceInput& input, const TraceOptions&) { return NsightReader(input).read(); }

}  // namespace

const TraceFormat kNsightSqlite{"Nsight Systems (SQLite)", "kernels, launches and ranges of NVTX, one rank a file",
                                recognise_nsight, read_nsight};

}  // namespace mltcp::workload
