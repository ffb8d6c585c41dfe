// Fuzzes the readers of recorded traces of every format, compressed or not. The target joins traces to a job's graph,
// and makes the programs of the job's ranks from it. Also fuzzes workload formats that describe a job without a trace.
//
// Input: a byte that chooses the reader, then the file.
#include "mltcp/lab/workload/arrivals.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/graph_program.h"
#include "mltcp/lab/workload/profile.h"
#include "mltcp/lab/workload/traces/job_table.h"
#include "mltcp/lab/workload/traces/libra.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/trace_summary.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using namespace workload;

constexpr std::uint32_t kMaxRanks = 64;  // low, because a few bytes may request a million ranks

void replay(const ExecutionGraph& graph, std::uint8_t choices) {
  GraphOptions options;
  options.whole = (choices & 0x20) != 0;
  options.islands = (choices & 0x40) != 0 ? 2 : 1;
  options.algorithm = (choices & 0x80) != 0 ? Algorithm::tree : Algorithm::ring;
  is_read([&] {
    const GraphPrograms programs = graph_programs(graph, options);
    require(programs.ranks.size() == programs.node_of.size(), "programs without nodes");
    const Job job = replayed_job("job", programs);
    require(job.programs != nullptr, "a job without programs");
  });
}

void fuzz_graph(const std::string& text, const std::string& name, std::uint8_t choices) {
  TraceOptions options;
  options.max_ranks = kMaxRanks;
  options.as_recorded = (choices & 0x08) != 0;
  options.alike = (choices & 0x10) == 0;
  options.ranks = (choices & 0x20) != 0 ? 4 : 0;
  is_read([&] {
    const ExecutionGraph graph = parse_trace_graph(text, name, options);
    require(graph.ranks.size() <= kMaxRanks && !graph.steps.empty(), "a graph of no steps, or of too many ranks");
    if (!options.as_recorded) check(graph);
    for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
      if (graph.ranks[rank].nodes.empty()) continue;
      const GraphSummary summary = summarise(graph, {.rank = rank});
      require(!summary.steps.empty() && summary.typical < summary.steps.size(), "a summary of no steps");
      static_cast<void>(describe(summary, Rate(10'000'000'000)));
      is_read([&] { static_cast<void>(to_job(summary, "job")); });
      break;
    }
    if (!options.as_recorded) replay(graph, choices);
  });
}

}  // namespace

void fuzz_traces(Input input) {
  Program program(input);
  const std::uint8_t choices = program.byte();
  const std::string text = program.text();
  switch (choices & 7) {
    case 0:
    case 1:
      return fuzz_graph(text, "trace.0.json", choices);
    case 2:
      return fuzz_graph(text, "trace.0.et", choices);
    case 3:
      return fuzz_graph(text, "trace.csv", choices);
    case 4:
    case 5:
      is_read([&] {
        TraceView view;
        view.one_worker = true;
        view.workers = (choices & 0x08) != 0 ? 1000 : 0;
        view.gather_size = (choices & 0x10) != 0 ? GatherSize::shard : GatherSize::total;
        view.compute_scale = view.bytes_scale = (choices & 0x20) != 0 ? 0.1 : 1;
        static_cast<void>(to_job(summarise_trace_text(text, "t.txt", view), "job"));
      });
      return;
    case 6:
      is_read([&] {
        const Profile profile = parse_profile(text, "p.csv");
        static_cast<void>(to_phases(profile));
        static_cast<void>(describe(profile, Rate(10'000'000'000)));
      });
      return;
    default:
      if ((choices & 8) != 0)
        is_read([&] { static_cast<void>(parse_libra(text, "l.yml")); });
      else if (is_job_table(text))
        is_read([&] {
          for (const JobTable::Row& job : parse_job_table(text, "t", {}).jobs)
            require(job.ran > Nanos() && job.gpus > 0, "a job of a table that did not run");
        });
      else
        is_read([&] { static_cast<void>(parse_arrivals(text, "a.csv")); });
      return;
  }
}

}  // namespace mltcp::fuzz
