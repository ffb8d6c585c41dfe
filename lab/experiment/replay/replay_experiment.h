// An experiment whose jobs replay recorded traces: traces read, made into programs of ranks, and placed on a network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/workload/execution_graph.h"
#include "mltcp/lab/workload/graph_program.h"
#include "mltcp/lab/workload/replay_choice.h"

namespace mltcp::experiment {

/// A job to replay.
struct ReplayJob {
  std::string name;
  std::vector<std::filesystem::path> files;  ///< of its ranks
  Nanos start;
};

/// "a=x.json,y.json@100 ms": a job of two files that starts at 100 ms. Throws InputError that quotes the word.
ReplayJob parse_replay_job(const std::string& word);
/// The jobs that words name: all of them as above, or all of them files of one job, which is called as the first one.
/// Throws InputError.
std::vector<ReplayJob> parse_replay_jobs(const std::vector<std::string>& words);

/// Each rank has a host of its own. One job: all on one switch. Several: rank r of each job on a switch of its own, and
/// these on one more, all links alike, so that jobs meet in the network. On a dumbbell a job has two ranks, one at each
/// side.
struct ReplayNetwork {
  Rate rate{100'000'000'000};
  Nanos delay{1'000};        ///< of each link, one way
  Bytes buffer = 1'000'000;  ///< of each of the switch's ports
  fabric::EcnConfig ecn;     ///< at each of them
  std::uint32_t mtu = 1500;
  bool dumbbell = false;
};

struct ReplayRequest {
  std::vector<ReplayJob> jobs;
  workload::GraphOptions graph;  ///< `steps` is set by `steps`
  workload::StepChoice steps;
  std::uint32_t trace_ranks = 0;  ///< see workload::TraceOptions::ranks
  std::uint32_t flows = 1;        ///< connections between two ranks
  ReplayNetwork network;          ///< unless the experiment has one
};

/// What is replayed, by job.
struct ReplayedTrace {
  std::shared_ptr<const workload::ExecutionGraph> graph;
  workload::GraphPrograms programs;
};

struct Replay {
  Experiment experiment;
  std::vector<ReplayedTrace> traces;
};

/// `settings`: what is not of the traces; its jobs are replaced. `own_network`: its network, too, by the request's.
/// Rank r of each job is on host r. Throws InputError.
Replay make_replay(const ReplayRequest& request, Experiment settings, bool own_network);

/// A line for each set of jobs that do the same and start together, which nothing may ever part.
std::vector<std::string> warnings_of_ties(const Experiment& experiment);

}  // namespace mltcp::experiment
