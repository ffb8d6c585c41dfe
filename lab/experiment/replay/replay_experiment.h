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
  std::vector<std::filesystem::path> files;  ///< of its ranks
  Nanos start;
};

/// "a=x.json,y.json@100 ms": a job of two files that starts at 100 ms. Throws InputError that quotes the word.
ReplayJob parse_replay_job(const std::string& word);
/// Either every word describes a job as above, or all words are files of one job, which is named after the first file.
/// Throws InputError.
std::vector<ReplayJob> parse_replay_jobs(const std::vector<std::string>& words);

/// Each rank has a host of its own. With one job, all hosts are on one switch. With several, rank r of every job is on
/// leaf switch r, and one spine switch connects the leaves, so that jobs share links; all links are equal. On a
/// dumbbell a job has two ranks, one at each side.
struct ReplayNetwork {
  Rate rate{100'000'000'000};
  Nanos delay{1'000};        ///< of each link, one way
  Bytes buffer = 1'000'000;  ///< of each switch port
  fabric::EcnConfig ecn;     ///< at each switch port
  std::uint32_t mtu = 1500;
  bool dumbbell = false;
};

struct ReplayRequest {
  std::vector<ReplayJob> jobs;
  workload::GraphOptions graph;  ///< its `steps` is ignored
  workload::StepChoice steps;
  std::uint32_t trace_ranks = 0;  ///< see workload::TraceOptions::ranks
  std::uint32_t flows = 1;        ///< connections between two ranks
  ReplayNetwork network;          ///< used unless the experiment has one
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

/// `settings`: the experiment without the traces; its jobs are replaced. If `own_network`, its network is replaced by
/// the request's. On a topology of n jobs, rank r of job j is on host r * n + j. Throws InputError.
Replay make_replay(const ReplayRequest& request, Experiment settings, bool own_network);

/// A line for each set of identical jobs that start together: nothing may ever separate them.
std::vector<std::string> warnings_of_ties(const Experiment& experiment);

}  // namespace mltcp::experiment
