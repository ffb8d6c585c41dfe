// The job driver: lives through the iterations of one training job, over any datapath. It computes (waits), sends each
// phase's bytes over the job's connections, and notes when each iteration began and ended.
//
// A job has one or more workers, each with connections from its own host to another one. Training is synchronous: all
// workers send the bytes of a phase at the same time, and the phase is over when everything that all of them sent has
// been delivered. The compute time of an iteration, with its jitter, is the same for all.
//
// A phase's bytes are shared evenly by the job's connections and cut into messages of at most `segment_bytes`. Where
// payloads are real, each message's bytes follow from the job and the message's number on its connection, and the
// receiver compares a CRC-32C of every message that arrives with that of what was sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/engine/running_job.h"
#include "mltcp/transport/shard.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

/// The bytes of a job's messages, the same on both sides without being sent along.
class Payload {
 public:
  /// Message `number` begins this many bytes further into the pattern than its predecessor, in turns.
  static constexpr std::size_t step = 64;
  static constexpr std::size_t turns = 61;

  /// For messages of up to `longest` bytes.
  Payload(std::uint64_t seed, Bytes longest);

  [[nodiscard]] std::span<const std::byte> message(std::uint64_t number, Bytes length) const {
    return std::span(pattern_).subspan((number % turns) * step, length);
  }
  /// CRC-32C of message(number, length); computed once for each that differs.
  std::uint32_t checksum(std::uint64_t number, Bytes length);

 private:
  std::vector<std::byte> pattern_;
  std::map<std::pair<std::uint64_t, Bytes>, std::uint32_t> known_;
};

/// Paced packets of real hosts, and of modelled ones, are gathered so long: no longer than a packet of 1500 bytes takes
/// at 1 Gbps. Hosts that sleep gather enough as it is, since each sleep ends late; to gather more would have flows
/// leave in bursts.
inline constexpr Nanos kRealPacingQuantum{10'000};

class JobDriver final : public DrivenJob {
 public:
  static constexpr Bytes segment_bytes = Bytes{256} * 1024;

  struct Settings {
    workload::Job job;          ///< its rate is set (not 0)
    std::uint32_t number = 0;   ///< in data packets, and of its ends on the network
    std::uint32_t workers = 1;  ///< that send
    std::uint32_t iterations = 1;
    std::uint64_t seed = 1;
    bool real_payload = false;
    ConnectionConfig connection;
    cc::Augmentation augmentation;
    Nanos pacing_quantum;  ///< of the job's rate, see JobConfig; like the next
    Nanos catch_up;
    bool learn_iterations = false;  ///< the transport isn't told where they begin: the job takes no plan
    /// Of connection ids: other than in earlier runs, where packets of those may still be on their way.
    std::uint64_t salt = 0;
    bool stop_when_done = false;  ///< sends nothing more then; otherwise it goes on, see done()

    /// The job as the transport knows it.
    [[nodiscard]] JobConfig job_config() const;
  };

  /// The shards of a job's worker, the sending and the receiving one.
  static ShardConfig shard_config(std::uint64_t seed, std::uint32_t number, std::uint32_t worker, std::uint32_t flows);

  /// Attaches itself to the ends of its workers and begins to connect. Lives as long as the network is run.
  JobDriver(JobNetwork& network, const Settings& settings);
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
  [[nodiscard]] const std::string& name() const { return settings_.job.name; }

 private:
  class Sender;
  class Receiver;
  class Iterations;
  const Settings settings_;
  std::unique_ptr<Payload> payload_;
  std::unique_ptr<Iterations> iterations_;
  std::vector<std::unique_ptr<Receiver>> receivers_;  ///< by worker whose bytes they get
  std::vector<std::unique_ptr<Sender>> senders_;      ///< by worker
};

}  // namespace mltcp::experiment
