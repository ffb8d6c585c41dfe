// Recorded traces of any format that is known, recognised by what they hold, joined into the graph of one job.
//
// A format is a reader: a TraceFormat in a header of its own, and a line in the table of read_traces.cpp. It yields
// what one input holds (PartialGraph), by GraphBuilder (graph_builder.h); join() makes the graph of the job from the
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
  std::uint32_t ranks = 0;  ///< number of ranks of a trace that does not tell; 0: as small as it can be
  /// Whether the trace of one rank stands for all of them, as in a job whose ranks do the same (data-parallel
  /// training), where traces of others are missing. Without it only communication among ranks that are there is kept,
  /// if any.
  bool alike = true;
  /// Ranks that share a layer, and that reduce gradients together, of a trace that does not tell (libra.h); 0: not
  /// known.
  std::uint32_t model_ranks = 0;
  std::uint32_t data_ranks = 0;
  /// Which collectives are kept of a trace in 12 columns. Empty: those that reduce weight gradients, unless there are
  /// none or a file of LIBRA tells the other groups, too: then all.
  std::optional<Network> network = Network::all;
  /// Whether ranks without a trace stay in the graph, without nodes, and communication with them as it was recorded:
  /// what there is to see in a trace. check() refuses such a graph, and it can't be replayed.
  bool as_recorded = false;
  /// As recorded, the rank that is looked at. Formats in which all ranks do the same make no other.
  std::uint32_t rank = 0;
  /// As recorded, whether groups of a trace in 12 columns have the sizes of group_size() for `data_ranks` workers,
  /// whether or not ranks can be divided so: those of a worker on a link, as of a job with the key `trace`.
  bool one_worker = false;
  /// What the size of an all-gather is in a trace in 12 columns.
  GatherSize gather_size = GatherSize::total;
  /// A trace of more is refused.
  std::uint32_t max_ranks = 1'000'000;
  /// What else the caller reads, for messages about files of no known format.
  std::string_view also_known{};
};

/// No operation, gap or span of starts of a trace is longer, nor are the operations of a rank in all (115 days): what
/// tells more is damaged.
inline constexpr Nanos kLongestTrace{10'000'000'000'000'000};
/// The latest start that is one, since 1970: the year 2096.
inline constexpr Nanos kLatestStart{4'000'000'000'000'000'000};
/// What one rank sends at once, or is told to: 1 PiB; and what a recorded call may, as some count for all ranks: 1 EB.
inline constexpr Bytes kMaxMessageBytes = Bytes{1} << 50;
inline constexpr Bytes kMaxCallBytes = 1'000'000'000'000'000'000;
/// The highest number of a rank that is believed.
inline constexpr std::uint32_t kMaxRank = 1'000'000;
/// Bytes of an entry of a map, beside what it holds: for budgets of memory.
inline constexpr std::size_t kPlace = 64;

/// A rank whose number the input does not tell: it gets the lowest one that is free.
inline constexpr std::uint32_t kUnknownRank = std::numeric_limits<std::uint32_t>::max();

/// What one input holds: the nodes of one rank or of several. How readers hand over what they have read.
struct PartialGraph {
  /// What is known of a group whose ranks are not all listed in graph.groups.
  struct Group {
    std::uint32_t size =
        0;           ///< number of ranks, if not all are listed; 0: all are, or, with none listed, the whole job
    std::string id;  ///< what inputs of other ranks call the same group; empty if that is not known
  };
  /// `ranks`, by position, belong to `rank_of`; peers are recorded ranks, and groups lists of those, in any order.
  /// Steps may be left out if there is one only. The tag of a collective is its number, if that and its kind are the
  /// same on all ranks of the group: join() pairs by it, and takes it away. 0: not known.
  ExecutionGraph graph;
  std::vector<std::uint32_t> rank_of;  ///< recorded rank of each of graph.ranks, or kUnknownRank
  std::vector<Group> groups;           ///< of graph.groups; may be shorter: the others are listed
  std::uint32_t world = 0;             ///< number of ranks of the job as recorded; 0 if the input does not tell
  /// Whether starts are on a clock that inputs of other ranks share. Else they count from the input's first node.
  bool common_clock = false;
  /// Whether bytes of all-gathers are what each rank contributes: join() makes them those of all.
  bool gather_shards = false;
};

/// A format: one entry in the table of read_traces.cpp.
struct TraceFormat {
  std::string_view name;  ///< for people: "Chakra execution trace"
  std::string_view help;  ///< what is read of it, in a line
  /// By the first bytes of an input, 64 KiB or all of it; `name` is the input's.
  bool (*recognise)(const std::string& name, std::string_view beginning);
  PartialGraph (*read)(TraceInput& input, const TraceOptions& options);
};

std::span<const TraceFormat> trace_formats();

/// Joins what the inputs of a job hold, at least one. Ranks that do not agree on a collective's bytes get the most of
/// them; collectives and messages that others lack are left out; both with a warning. Throws InputError for a rank that
/// is there twice, ranks that do not run the same collectives, and what check() refuses.
ExecutionGraph join(std::vector<PartialGraph> parts, const TraceOptions& options = {});

/// Reads the traces of one job: files, archives or folders with a file for each rank, or one for all. Throws InputError
/// "FILE: cause; cure", with the place (line, byte, node) where there is one: also for a file of no known format,
/// formats that differ, a rank that is there twice, and what check() refuses. Files of no known format in a folder or
/// an archive with others are left out, with a warning.
ExecutionGraph read_traces(std::span<const std::filesystem::path> paths, const TraceOptions& options = {});

/// The format of a file, of the first member of an archive or of the first file of a folder; null if it is none that is
/// known. Throws InputError if it can't be read.
const TraceFormat* format_of(const std::filesystem::path& path);

/// The format of what begins so; null if it is none that is known.
const TraceFormat* format_of(const std::string& name, std::string_view beginning);

/// From memory: one file of a job, packed or not.
ExecutionGraph parse_trace_graph(std::string_view text, const std::string& name, const TraceOptions& options = {});

}  // namespace mltcp::workload
