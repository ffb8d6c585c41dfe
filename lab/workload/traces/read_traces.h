// Reads recorded traces of all known formats, recognised by their contents, and joins them into the graph of one job.
//
// A format is a reader: a TraceFormat in a header of its own, and a line in the table of read_traces.cpp. It makes a
// PartialGraph of one input by a GraphBuilder (graph_builder.h); join() makes the graph of the job from the parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/traces/trace_input.h"
#include "mltcp/lab/workload/traces/training_loop.h"

namespace mltcp::workload {

struct TraceOptions {
  std::uint32_t ranks = 0;  ///< number of ranks if the trace does not say it; 0: the smallest possible
  /// Whether ranks without a trace are copies of a rank with one, as in a job whose ranks do the same (data-parallel
  /// training). Otherwise only communication among ranks with traces is kept, if any.
  bool alike = true;
  /// Numbers of ranks that share a layer, and that reduce gradients together, if the trace does not say it (libra.h);
  /// 0: unknown.
  std::uint32_t model_ranks = 0;
  std::uint32_t data_ranks = 0;
  /// Which collectives of a trace in 12 columns are kept. Empty: those that reduce weight gradients; or all, if there
  /// are none, or if a file of LIBRA describes the other groups, too.
  std::optional<Network> network = Network::all;
  /// Whether ranks without a trace stay in the graph, without nodes, with all communication as recorded: to inspect a
  /// trace. check() refuses such a graph, and it cannot be replayed.
  bool as_recorded = false;
  /// With as_recorded: the rank to inspect. Formats in which all ranks do the same make only this one.
  std::uint32_t rank = 0;
  /// With as_recorded: whether groups of a trace in 12 columns have the sizes of group_size() for `data_ranks` workers,
  /// even if ranks cannot be divided so; for one worker on a link, as in a job with the key `trace`.
  bool one_worker = false;
  /// The meaning of an all-gather's size in a trace in 12 columns.
  GatherSize gather_size = GatherSize::total;
  /// A trace with more ranks is refused.
  std::uint32_t max_ranks = 1'000'000;
  /// Other formats that the caller reads, for messages about files of no known format.
  std::string_view also_known{};
};

/// Maximum length of an operation, a gap, the span of starts, or all operations of a rank together (115 days). A trace
/// with longer ones is damaged.
inline constexpr Nanos kLongestTrace{10'000'000'000'000'000};
/// The latest valid start, since 1970: the year 2096.
inline constexpr Nanos kLatestStart{4'000'000'000'000'000'000};
/// Maximum bytes that one rank sends at once: 1 PiB. Maximum bytes of a recorded call, which may count for all ranks: 1
/// EB.
inline constexpr Bytes kMaxMessageBytes = Bytes{1} << 50;
inline constexpr Bytes kMaxCallBytes = 1'000'000'000'000'000'000;
/// The highest valid number of a rank.
inline constexpr std::uint32_t kMaxRank = 1'000'000;
/// Bytes of a map's entry in addition to its contents, for memory budgets.
inline constexpr std::size_t kPlace = 64;

/// A rank whose number is not in the input: it gets the lowest free number.
inline constexpr std::uint32_t kUnknownRank = std::numeric_limits<std::uint32_t>::max();

/// The contents of one input, as returned by its reader: the nodes of one or several ranks.
struct PartialGraph {
  /// Details of a group whose ranks are not all listed in graph.groups.
  struct Group {
    std::uint32_t size = 0;  ///< number of ranks, if not all are listed. 0: all are listed, or none is: the whole job
    std::string id;          ///< the group's name in the inputs of all ranks; empty if unknown
  };
  /// `ranks` are in the order of `rank_of`. Peers are recorded ranks, and groups are lists of those, in any order.
  /// Steps may be left out if there is only one. The tag of a collective is its number, if number and kind are the same
  /// on all ranks of the group, or 0: join() pairs collectives by it, and then clears it.
  ExecutionGraph graph;
  std::vector<std::uint32_t> rank_of;  ///< recorded rank of each of graph.ranks, or kUnknownRank
  std::vector<Group> groups;           ///< for graph.groups; may be shorter if the rest are listed
  std::uint32_t world = 0;             ///< number of ranks of the job as recorded; 0 if unknown
  /// Whether starts are on a clock shared with inputs of other ranks. Otherwise they count from the input's first node.
  bool common_clock = false;
  /// Whether bytes of all-gathers are each rank's contribution; join() converts them to totals.
  bool gather_shards = false;
};

/// A format: one entry in the table of read_traces.cpp.
struct TraceFormat {
  std::string_view name;  ///< for people: "Chakra execution trace"
  std::string_view help;  ///< what is read from it, in one line
  /// Recognises an input by its first bytes: 64 KiB, or all if it is shorter. `name` is the input's.
  bool (*recognise)(const std::string& name, std::string_view beginning);
  PartialGraph (*read)(TraceInput& input, const TraceOptions& options);
};

std::span<const TraceFormat> trace_formats();

/// Joins the parts of a job, at least one. If ranks disagree on a collective's bytes, the largest number is used;
/// collectives and messages that other ranks lack are left out; both with a warning. Throws InputError for a duplicate
/// rank, for ranks that do not run the same collectives, and as check() does.
ExecutionGraph join(std::vector<PartialGraph> parts, const TraceOptions& options = {});

/// Reads the traces of one job: files, archives or folders with a file for each rank, or one for all. Throws InputError
/// "FILE: cause; cure", with the place (line, byte, node) if there is one: also for a file of no known format, formats
/// that differ, a duplicate rank, and as check() does. Files of no known format in a folder or an archive with others
/// are left out, with a warning.
ExecutionGraph read_traces(std::span<const std::filesystem::path> paths, const TraceOptions& options = {});

/// The format of a file, of the first member of an archive or of the first file of a folder; null if unknown. Throws
/// InputError if it cannot be read.
const TraceFormat* format_of(const std::filesystem::path& path);

/// The format of an input with this beginning; null if unknown.
const TraceFormat* format_of(const std::string& name, std::string_view beginning);

/// Reads one file of a job from memory, packed or not.
ExecutionGraph parse_trace_graph(std::string_view text, const std::string& name, const TraceOptions& options = {});

}  // namespace mltcp::workload
