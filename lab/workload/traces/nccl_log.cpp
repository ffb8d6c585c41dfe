// Reader of NCCL's logs with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL (better INIT,COLL). They list calls of
// collectives with their sizes, in order. One file has several ranks, or each rank has its own file
// (NCCL_DEBUG_FILE=nccl.%h.%p).
//
//   host:PID:TID [GPU] NCCL INFO ncclCommInitRank comm 0x55d0 rank 3 nranks 8 cudaDev 3 ... commId 0x7a41
//                                - Init COMPLETE                                      (one line)
//   host:PID:TID [GPU] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f00 recvbuff 0x7f00 count 7382228 datatype 7 op 0
//                                root 0 comm 0x55d0 [nranks=8] stream 0x55e0          (one line)
//
// The reader skips text of a launcher or a clock before the host. Newer versions add "task N globalrank N"; older
// versions have no commId. The logs have no times, so nodes have no length, and there is no computation between them.
// Adjacent sends and receives with the same opCount form a group and run at once.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/nccl_calls.h"
#include "mltcp/lab/workload/traces/trace_formats.h"
#include "mltcp/lab/workload/traces/trace_lines.h"

namespace mltcp::workload {
namespace {

constexpr std::string_view kMark = " NCCL INFO ";
constexpr std::uint32_t kMaxRanks = 10'000'000;

/// Bytes per element, by the value of ncclDataType_t.
constexpr std::array<Bytes, 12> kElementTypes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

std::optional<std::uint64_t> number(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the word after the word `key`. Returns an empty text if there is none.
std::string_view after(std::string_view line, std::string_view key) {
  for (std::size_t at = 0; (at = line.find(key, at)) != std::string_view::npos; at += key.size()) {
    if (at > 0 && line[at - 1] != ' ') continue;
    std::string_view rest = line.substr(at + key.size());
    if (!rest.starts_with(' ')) continue;
    rest.remove_prefix(1);
    return rest.substr(0, std::min(rest.find(' '), rest.size()));
  }
  return {};
}
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view key) {
  return number(after(line, key));
}

/// Returns `text` without a colon and digits at its end. Returns an empty value if `text` does not end like this.
std::optional<std::string_view> without_number(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !number(text.substr(colon + 1))) return std::nullopt;
  return text.substr(0, colon);
}

class NcclLogReader {
 public:
  explicit NcclLogReader(TraceInput& input) : builder_("NCCL log", input), calls_(builder_), lines_(input) {}

  PartialGraph read() {
    std::string_view line;
    while (lines_.next(line)) {
      const std::size_t mark = line.find(kMark);
      if (mark == std::string_view::npos) continue;
      const std::string_view said = line.substr(mark + kMark.size());
      const bool is_call = said.find(": opCount ") != std::string_view::npos;
      const bool is_init =
          !is_call && said.find("comm 0x") != std::string_view::npos && said.find(" rank ") != std::string_view::npos;
      if (!is_call && !is_init) continue;
      // A torn line has parts of two lines, whose owners are unknown.
      const bool is_torn = said.find(kMark) != std::string_view::npos;
      const auto owner = is_torn ? std::nullopt : owner_of(line.substr(0, mark));
      if (owner && (is_call ? take_call(*owner, said) : take_communicator(*owner, said))) continue;
      if (is_call) (is_torn ? torn_ : cut_).note(lines_.number());
    }
    if (torn_.count > 0)
      builder_.warn(fmt::format("{} mixed with another line, both left out ({})",
                                torn_.count == 1 ? "1 line is" : fmt::format("{} lines are", torn_.count),
                                torn_.shown()));
    if (cut_.count > 0)
      builder_.warn(fmt::format("{} cut off, or another program's text is in it: left out ({})",
                                cut_.count == 1 ? "1 line is" : fmt::format("{} lines are", cut_.count), cut_.shown()));
    if (calls_.calls() == 0)
      builder_.fail("there is no call of a collective in it",
                    "run with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL");
    calls_.number_collectives();
    calls_.finish(false);
    PartialGraph part = builder_.take();
    part.world = calls_.world();
    builder_warning(part);
    return part;
  }

 private:
  /// Counts lines that are left out.
  struct Lines {
    std::size_t count = 0;
    std::uint64_t first = 0;

    void note(std::uint64_t line) {
      if (count++ == 0) first = line;
    }
    [[nodiscard]] std::string shown() const { return fmt::format("{}line {}", count == 1 ? "" : "first ", first); }
  };

  static void builder_warning(PartialGraph& part) {
    part.graph.warnings.push_back(
        fmt::format("{}: it has no times: nothing is computed between collectives", part.graph.sources.front()));
  }

  /// Returns the owner in a prefix such as "host:PID:TID [GPU]". Returns an empty value if there is none.
  std::optional<std::uint32_t> owner_of(std::string_view prefix) {
    if (!prefix.ends_with(']')) return std::nullopt;
    const std::size_t bracket = prefix.rfind('[');
    if (bracket == std::string_view::npos || bracket < 2) return std::nullopt;
    const std::string_view gpu_text = prefix.substr(bracket + 1, prefix.size() - bracket - 2);
    const auto gpu = gpu_text == "-1" ? 0 : number(gpu_text);  // -1: the process has not chosen a GPU yet
    std::string_view who = trimmed(prefix.substr(0, bracket));
    who = who.substr(who.rfind(' ') + 1);  // removes a prefix, as in "12: host:1:2"
    const auto process = without_number(who);
    auto host = process ? without_number(*process) : std::nullopt;
    if (!gpu || *gpu > 0xFFFF || !host) return std::nullopt;
    host = host->substr(host->rfind(':') + 1);  // removes a prefix, as in "[1,0]<stdout>:host"
    key_.assign(*host).append(process->substr(process->rfind(':'))).append(" ").append(gpu_text);
    if (const auto found = owners_.find(key_); found != owners_.end()) return found->second;
    const std::string name(*host);
    const auto place = hosts_.try_emplace(name, hosts_.size()).first->second;
    const std::uint32_t owner = calls_.owner(key_, (std::uint64_t{place} << 16) + *gpu);
    builder_.hold(2 * (kPlace + sizeof(std::string)) + key_.size() + name.size());
    owners_.emplace(key_, owner);
    return owner;
  }

  /// Reads a line about a communicator: "ncclCommInitRank comm 0x1 rank 0 nranks 2 ... commId 0x7 - Init COMPLETE", or
  /// "... - Destroy COMPLETE". A line of ncclCommSplit also names a parent, a color and, from NCCL 2.25 on, how often
  /// the parent was split. Returns false if the line is damaged.
  bool take_communicator(std::uint32_t owner, std::string_view said) {
    const std::string_view comm = after(said, "comm");
    const auto rank = number_after(said, "rank");
    const auto ranks = number_after(said, "nranks");
    if (comm.empty() || !rank || !ranks || *ranks == 0 || *ranks > kMaxRanks || *rank >= *ranks) return false;
    if (said.ends_with(" Destroy COMPLETE") || said.ends_with(" Abort COMPLETE")) {
      calls_.forget(owner, comm);
      return true;
    }
    const std::uint32_t communicator = calls_.communicator(owner, comm, static_cast<std::uint32_t>(*ranks));
    calls_.describe(communicator, after(said, "commId"), static_cast<std::uint32_t>(*rank));
    const std::string_view parent = after(said, "parent");
    if (!parent.empty() && parent != "(nil)") {
      auto split = number_after(said, "splitCount");
      if (!split) split = number_after(said, "childCount");
      calls_.describe_child(communicator, calls_.communicator(owner, parent, 0), split, after(said, "color"));
    }
    return true;
  }

  bool take_call(std::uint32_t owner, std::string_view said) {
    NcclCall call;
    call.name = said.substr(0, said.find(": opCount "));
    call.name = call.name.substr(call.name.rfind(' ') + 1);  // removes a prefix, as in "[2] AllReduce"
    const auto order = number(after(said, "opCount"), 16);
    const auto count = number_after(said, "count");
    const auto type = number_after(said, "datatype");
    const auto root = number_after(said, "root");
    const std::string_view comm = after(said, "comm");
    const std::size_t at = said.find("[nranks=");
    call.stream = after(said, "stream");
    if (!order || !count || !type || !root || comm.empty() || at == std::string_view::npos || call.stream.empty() ||
        *root >= kMaxRanks)
      return false;
    const std::string_view rest = said.substr(at + 8);
    const auto ranks = number(rest.substr(0, std::min(rest.find_first_of("],"), rest.size())));
    if (!ranks || *ranks == 0 || *ranks > kMaxRanks) return false;
    if (*type >= kElementTypes.size())
      lines_.fail(fmt::format("the data type {} is not known", *type),
                  fmt::format("those of ncclDataType_t are 0 to {}", kElementTypes.size() - 1));
    if (*count > kMaxCallBytes / kElementTypes[*type]) lines_.fail("a call has more than 1 EB", "record it again");
    call.bytes = *count * kElementTypes[*type];
    call.root = static_cast<std::uint32_t>(*root);
    call.order = *order;
    if (const auto global = number_after(said, "globalrank"); global && *global < kMaxRanks)
      calls_.set_rank(owner, static_cast<std::uint32_t>(*global));
    calls_.call(calls_.communicator(owner, comm, static_cast<std::uint32_t>(*ranks)), call);
    return true;
  }

  GraphBuilder builder_;
  NcclCalls calls_;
  TraceLines lines_;
  std::string key_;
  std::unordered_map<std::string, std::uint32_t> owners_;
  std::unordered_map<std::string, std::size_t> hosts_;
  Lines torn_;
  Lines cut_;
};

bool recognise_nccl_log(const std::string& /*name*/, std::string_view beginning) {
  return beginning.find(kMark) != std::string_view::npos && !beginning.starts_with('{');
}

PartialGraph read_nccl_log(TraceInput& input, const TraceOptions& /*options*/) { return NcclLogReader(input).read(); }

}  // namespace

constinit const TraceFormat kNcclLogFormat{"NCCL log",
                                           "calls of collectives with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL",
                                           recognise_nccl_log, read_nccl_log};

}  // namespace mltcp::workload
