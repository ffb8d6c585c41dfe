// The job driver: executes the iterations of one training job over any datapath. It waits for the compute time, sends
// each phase's bytes over the job's connections, and records when each iteration began and ended.
//
// A job has one or more workers, each with connections from its host to another. Training is synchronous: all workers
// send a phase's bytes at the same time, and continue together when the phase is over (lab/workload/phase_program.h).
// The compute time, with its jitter, is the same for all.
//
// A phase's bytes are divided evenly among the job's connections and cut into messages of at most kSegmentBytes. Real
// payloads are generated from the job and the message's number on its connection; the receiver compares the CRC-32C of
// every message with the expected one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/engine/payload.h"
#include "mltcp/lab/experiment/engine/running_job.h"

namespace mltcp::experiment {

class JobDriver final : public DrivenJob {
 public:
  /// Attaches itself to the ends of its workers and starts to connect. Must live as long as the network is run.
  JobDriver(JobNetwork& network, const JobSpec& spec);
  ~JobDriver() override;
  JobDriver(const JobDriver&) = delete;
  JobDriver& operator=(const JobDriver&) = delete;

  [[nodiscard]] bool connected() const override;
  void start(Nanos epoch) override;
  /// Times are the network's. Like clear_plan(), only between runs of the network.
  PlanState set_plan(const PhasePlan& plan) override;
  void clear_plan() override;
  [[nodiscard]] PlanState plan_state() const override;
  [[nodiscard]] Nanos adrift_since() const override;
  [[nodiscard]] bool done() const override;
  [[nodiscard]] std::size_t recorded() const override;
  [[nodiscard]] std::vector<SeriesConnection> connections() const override;
  void read_states(std::span<ConnectionState> states) const override;
  /// Data packets that arrived with a CE mark, as reported by the receivers.
  [[nodiscard]] std::uint64_t marked_packets() const;

  /// Name, times relative to the epoch, bytes, retransmissions, verified messages; without statistics.
  [[nodiscard]] JobResult result() const override;
  [[nodiscard]] const std::string& name() const { return spec_.job.name; }

 private:
  class Sender;
  class Receiver;
  class Workers;
  const JobSpec spec_;
  std::unique_ptr<Payload> payload_;
  std::unique_ptr<Workers> workers_;
  std::vector<std::unique_ptr<Receiver>> receivers_;  ///< by the worker that sends to them
  std::vector<std::unique_ptr<Sender>> senders_;      ///< by worker
};

}  // namespace mltcp::experiment
