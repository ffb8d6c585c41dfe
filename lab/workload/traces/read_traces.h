// Reads recorded traces of all known formats and joins them into the graph of one job. Formats are recognised by their
// contents.
//
// Each format has a reader: a TraceFormat, declared in a header and listed in the table of read_traces.cpp. The reader
// makes a PartialGraph of one input with a GraphBuilder (graph_builder.h). join() makes the graph of the job from these
// parts.
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
  std::uint32_t ranks = 0;  ///< number of ranks, if the trace does not state it; 0: the smallest possible number
  /// Whether ranks without a trace are copies of a rank with a trace, as in a job whose ranks do the same
  /// (data-parallel training). If not, only communication among ranks with traces is kept.
  bool alike = true;
  /// Number of ranks that share a layer, and number of ranks that reduce gradients together (libra.h). Used if the
  /// trace does not state these numbers. 0: unknown.
  std::uint32_t model_ranks = 0;
  std::uint32_t data_ranks = 0;
  /// Selects the collectives of a trace in 12 columns. If empty, only the collectives of the weight-gradient pass are
  /// kept. All collectives are kept if this pass has none, or if `model_ranks` is not 0.
  std::optional<Network> network = Network::all;
  /// Whether to keep ranks without a trace, as ranks without nodes, and all communication as recorded. Used to inspect
  /// a trace. check() rejects such a graph, and it cannot be replayed.
  bool as_recorded = false;
  /// The rank to inspect with as_recorded. Readers of formats in which all ranks do the same make only this rank.
  std::uint32_t rank = 0;
  /// With as_recorded, for a trace in 12 columns: whether groups have the size that group_size() returns for
  /// `data_ranks` workers, even if this size does not divide the number of ranks. Used for one worker on a link, as in
  /// a job with the key `trace`.
  bool one_worker = false;
  /// The meaning of an all-gather's size in a trace in 12 columns.
  GatherSize gather_size = GatherSize::total;
  /// Traces with more ranks are rejected.
  std::uint32_t max_ranks = 1'000'000;
  /// Names of formats that only the caller reads. Used in messages about files of unknown format.
  std::string_view also_known{};
};

/// Maximum length of an operation, of a gap, of the span of starts, and of all operations of a rank together: 115 days.
/// A trace that exceeds it is damaged.
inline constexpr Nanos kLongestTrace{10'000'000'000'000'000};
/// Latest valid start, as time since 1970: in the year 2096.
inline constexpr Nanos kLatestStart{4'000'000'000'000'000'000};
/// Maximum number of bytes that one rank sends at once: 1 PiB.
inline constexpr Bytes kMaxMessageBytes = Bytes{1} << 50;
/// Maximum number of bytes of a recorded call, which may include the bytes of all ranks: 1 EB.
inline constexpr Bytes kMaxCallBytes = 1'000'000'000'000'000'000;
/// The highest valid number of a rank.
inline constexpr std::uint32_t kMaxRank = 1'000'000;
/// Memory of a map entry in bytes, beyond its contents. Used for memory budgets.
inline constexpr std::size_t kPlace = 64;

/// Stands for a rank whose number is not in the input. join() gives it the lowest free number.
inline constexpr std::uint32_t kUnknownRank = std::numeric_limits<std::uint32_t>::max();

/// The nodes of one or several ranks, as a reader returns them for one input.
struct PartialGraph {
  /// Details of a group whose ranks are not all listed in graph.groups.
  struct Group {
    /// Number of ranks if not all are listed; 0 if all are listed, or if the group is the whole job.
    std::uint32_t size = 0;
    std::string id;  ///< name of the group in the inputs of all ranks; empty if unknown
  };
  /// The graph as recorded. `ranks` are in the order of `rank_of`. Peers are recorded ranks, and groups are lists of
  /// recorded ranks in any order. Steps may be left out if there is only one. The tag of a collective is its number if
  /// number and kind are the same on all ranks of the group, and 0 if not. join() pairs collectives by tag, and then
  /// clears the tags.
  ExecutionGraph graph;
  std::vector<std::uint32_t> rank_of;  ///< recorded rank of each element of graph.ranks, or kUnknownRank
  std::vector<Group> groups;  ///< details of graph.groups; may be shorter if the remaining groups list all ranks
  std::uint32_t world = 0;    ///< number of ranks of the job as recorded; 0 if unknown
  /// Whether starts are on a clock that inputs of other ranks share. If not, starts count from the first node of the
  /// input.
  bool common_clock = false;
  /// Whether the bytes of an all-gather are those that each rank contributes. join() converts them to totals.
  bool gather_shards = false;
};

/// A trace format. Each format is an entry of the table in read_traces.cpp.
struct TraceFormat {
  std::string_view name;  ///< name for people, e.g. "Chakra execution trace"
  std::string_view help;  ///< one line about what is read from such a trace
  /// Returns whether an input has this format. `beginning` is its first 64 KiB, or all of it if it is shorter. `name`
  /// is the name of the input.
  bool (*recognise)(const std::string& name, std::string_view beginning);
  PartialGraph (*read)(TraceInput& input, const TraceOptions& options);
};

std::span<const TraceFormat> trace_formats();

/// Joins the parts of a job, of which there must be at least one. If ranks disagree on the bytes of a communication,
/// uses the largest number. Leaves out collectives and messages that other ranks lack. Warns in both cases. Throws
/// InputError for a duplicate rank, for ranks that run different collectives, and for a graph that check() rejects.
ExecutionGraph join(std::vector<PartialGraph> parts, const TraceOptions& options = {});

/// Reads the traces of one job: files, archives or folders, with one file per rank or one file for all ranks. In a
/// folder or an archive, files of unknown format are left out with a warning if there are more files. Throws InputError
/// "FILE: cause; cure", with the line, byte or node if known. Errors include an unknown format, different formats, a
/// duplicate rank, and a graph that check() rejects.
ExecutionGraph read_traces(std::span<const std::filesystem::path> paths, const TraceOptions& options = {});

/// Returns the format of a file, of the first member of an archive, or of the first file of a folder. Returns nullptr
/// if the format is unknown. Throws InputError if the file cannot be read.
const TraceFormat* format_of(const std::filesystem::path& path);

/// Returns the format of an input with this name and beginning. Returns nullptr if the format is unknown.
const TraceFormat* format_of(const std::string& name, std::string_view beginning);

/// Reads one file of a job from memory. The file may be packed.
ExecutionGraph parse_trace_graph(std::string_view text, const std::string& name, const TraceOptions& options = {});

}  // namespace mltcp::workload
