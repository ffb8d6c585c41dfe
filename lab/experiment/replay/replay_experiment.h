// An experiment whose jobs replay recorded traces: reads the traces, turns them into rank programs, and places the
// ranks on a network.
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
  std::vector<std::filesystem::path> files;  ///< trace files of the job's ranks
  Nanos start;
};

/// Parses a job, such as "a=x.json,y.json@100 ms": job a with two files, which starts at 100 ms. Throws InputError that
/// quotes `word` if it is invalid.
ReplayJob parse_replay_job(const std::string& word);
/// Parses all words. Either every word describes a job, as for parse_replay_job(), or all words are files of a single
/// job, which is named after the first file. Throws InputError if words are invalid.
std::vector<ReplayJob> parse_replay_jobs(const std::vector<std::string>& words);

/// The network of a replay. Each rank has its own host. With one job, all hosts are on one switch. With several jobs,
/// rank r of every job is on leaf switch r, and one spine switch connects the leaf switches, so that jobs share links.
/// All links are equal. On a dumbbell, a job has two ranks, one at each side.
struct ReplayNetwork {
  Rate rate{100'000'000'000};
  Nanos delay{1'000};        ///< one-way delay of each link
  Bytes buffer = 1'000'000;  ///< buffer of each switch port, in bytes
  fabric::EcnConfig ecn;     ///< congestion marking at each switch port
  std::uint32_t mtu = 1500;
  bool dumbbell = false;
};

struct ReplayRequest {
  std::vector<ReplayJob> jobs;
  workload::GraphOptions graph;  ///< options of the programs; `graph.steps` is ignored
  workload::StepChoice steps;
  std::uint32_t trace_ranks = 0;  ///< see workload::TraceOptions::ranks
  std::uint32_t flows = 1;        ///< number of connections between two ranks
  ReplayNetwork network;          ///< network to build if the experiment has none
};

/// The trace of one job, and the programs made from it.
struct ReplayedTrace {
  std::shared_ptr<const workload::ExecutionGraph> graph;
  workload::GraphPrograms programs;
};

struct Replay {
  Experiment experiment;
  std::vector<ReplayedTrace> traces;
};

/// Returns the experiment `settings`, with the jobs of `request` in place of the experiment's jobs. If `own_network`,
/// also replaces the experiment's network by the network of `request`. On a topology with n jobs, rank r of job j is on
/// host r * n + j. Throws InputError if a trace is invalid, or if the network has too few hosts.
Replay make_replay(const ReplayRequest& request, Experiment settings, bool own_network);

/// Returns a warning for each set of identical jobs that start at the same time. The bursts of such jobs may never
/// separate.
std::vector<std::string> warnings_of_ties(const Experiment& experiment);

}  // namespace mltcp::experiment
