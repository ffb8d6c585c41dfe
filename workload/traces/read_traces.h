// Recorded traces of any format that is known, recognised by what they hold, joined into the graph of one job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/workload/execution_graph.h"
#include "mltcp/workload/traces/trace_input.h"

namespace mltcp::workload {

struct TraceOptions {
  std::uint32_t ranks = 0;  ///< number of ranks of a trace that does not tell; 0: as small as it can be
  /// Whether the trace of one rank stands for all of them, as in a job whose ranks do the same (data-parallel
  /// training), where traces of others are missing. Without it only communication among ranks that are there is kept,
  /// if any.
  bool alike = true;
};

/// What one input holds: the nodes of one rank or of several. How readers hand over what they have read.
struct PartialGraph {
  ExecutionGraph graph;  ///< `ranks`, by position, belong to `rank_of`; peers and groups are recorded ranks
  std::vector<std::uint32_t> rank_of;  ///< recorded rank of each of graph.ranks
  std::uint32_t world = 0;             ///< number of ranks of the job as recorded; 0 if the input does not tell
  /// Whether starts are on a clock that inputs of other ranks share. Else they count from the input's first node.
  bool common_clock = false;
};

/// A format: one entry in the table of read_traces.cpp.
struct TraceFormat {
  std::string_view name;  ///< for people: "Chakra execution trace"
  std::string_view help;  ///< what is read of it, in a line
  bool (*recognise)(const std::string& name, std::string_view beginning);
  PartialGraph (*read)(TraceInput& input, const TraceOptions& options);
};

std::span<const TraceFormat> trace_formats();

/// Reads the traces of one job: files, archives or folders with a file for each rank, or one for all. Throws InputError
/// "FILE: cause; cure", with the place (line, byte, node) where there is one: also for a file of no known format,
/// formats that differ, a rank that is there twice, and what check() refuses.
ExecutionGraph read_traces(std::span<const std::filesystem::path> paths, const TraceOptions& options = {});

/// From memory: one input of a job.
ExecutionGraph parse_trace_graph(std::string_view text, const std::string& name, const TraceOptions& options = {});

}  // namespace mltcp::workload
