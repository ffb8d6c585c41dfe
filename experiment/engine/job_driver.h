// The job driver: lives through the iterations of one training job, over any datapath. It computes (waits), sends each
// phase's bytes over the job's connections, and notes when each iteration began and ended.
//
// A job has one or more workers, each with connections from its own host to another one. Training is synchronous: all
// workers send the bytes of a phase at the same time, and go on together when it is over (workload/phase_program.h).
// The compute time of an iteration, with its jitter, is the same for all.
//
// A phase's bytes are shared evenly by the job's connections and cut into messages of at most kSegmentBytes. Where
// payloads are real, each message's bytes follow from the job and the message's number on its connection, and the
// receiver compares a CRC-32C of every message that arrives with that of what was sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/engine/job_spec.h"
#include "mltcp/experiment/engine/payload.h"
#include "mltcp/experiment/engine/running_job.h"

namespace mltcp::experiment {

class JobDriver final : public DrivenJob {
 public:
  /// Attaches itself to the ends of its workers and begins to connect. Lives as long as the network is run.
  JobDriver(JobNetwork& network, const JobSpec& spec);
  ~JobDriver() override;
  JobDriver(const JobDriver&) = delete;
  JobDriver& operator=(const JobDriver&) = delete;

  [[nodiscard]] bool connected() const override;
  void start(Nanos epoch) override;
  /// In the network's time. Between runs of the network, like the next.
  PlanState set_plan(const PhasePlan& plan) override;
  void clear_plan() override;
  [[nodiscard]] PlanState plan_state() const override;
  [[nodiscard]] Nanos adrift_since() const override;
  [[nodiscard]] bool done() const override;
  [[nodiscard]] std::size_t recorded() const override;
  /// Data packets that arrived with a mark of congestion (ECN CE), as the receivers have told.
  [[nodiscard]] std::uint64_t marked_packets() const;

  /// Name, times relative to the epoch, bytes, retransmissions, verified messages; no statistics yet.
  [[nodiscard]] JobResult result() const override;
  [[nodiscard]] const std::string& name() const { return spec_.job.name; }

 private:
  class Sender;
  class Receiver;
  class Workers;
  const JobSpec spec_;
  std::unique_ptr<Payload> payload_;
  std::unique_ptr<Workers> workers_;
  std::vector<std::unique_ptr<Receiver>> receivers_;  ///< by worker whose bytes they get
  std::vector<std::unique_ptr<Sender>> senders_;      ///< by worker
};

}  // namespace mltcp::experiment
