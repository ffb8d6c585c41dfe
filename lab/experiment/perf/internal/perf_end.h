// One of the two ends of a measurement: an endpoint that this thread drives, its connections, and the batches that it
// sends and receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/endpoint.h"
#include "mltcp/lab/experiment/perf/internal/perf_protocol.h"
#include "mltcp/lab/experiment/perf/perf.h"

namespace mltcp::experiment::perf {

/// Result of a batch at this end.
struct Outcome {
  Nanos time;
  std::vector<Nanos> rounds;  ///< round-trip times; latency test, client only
  std::vector<PerfInterval> intervals;
};

class End {
 public:
  /// `fallback_ip` is used if the place names no address. Throws InputError, RunError.
  End(const PerfPlace& place, const std::string& fallback_ip, const std::string& congestion_control);

  /// Ends all operations while their memory and queue still exist.
  ~End() { endpoint_.close(); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  [[nodiscard]] const endpoint::EndpointAddress& address() const { return endpoint_.address(); }
  [[nodiscard]] const std::string& description() const { return endpoint_.description(); }

  /// Adds a connection, opened by this end or by the other. `look` is called every 0.1 s. Throws RunError.
  void connect(std::span<const std::byte> blob);
  void accept(Nanos limit, const std::function<void()>& look);
  [[nodiscard]] std::size_t connections() const { return flows_.size(); }

  /// Enlarges the buffers for messages of `bytes`.
  void make_room(Bytes bytes);
  /// Begins a batch: posts this end's first receives, before the other end sends.
  void prepare(const Batch& batch, bool is_client);
  /// Runs the batch to its end. `look` is called every 0.1 s; its exceptions end the batch. Throws RunError.
  Outcome run(Nanos limit, Nanos every, const std::function<void()>& look);
  /// Called while waiting between batches: the other end may still lack acknowledgements of this one.
  void drive() { endpoint_.progress(); }
  /// Adds the counters of packets, and the packet lengths.
  void add_counters(PerfResults& results);

 private:
  struct Flow {
    End* end = nullptr;
    endpoint::ConnectionHandle connection = 0;
    std::uint64_t to_send = 0;  ///< not posted
    std::uint64_t to_receive = 0;
  };
  void post_send(Flow& flow);
  void post_receive(Flow& flow);
  /// Options for the operation that `flow` posts now; `left`: number of such operations still to be posted.
  endpoint::PostOptions telling(Flow& flow, std::uint64_t left);
  static void on_answer(void* flow, const endpoint::Completion& end) noexcept;
  void on_end(const endpoint::Completion& end);
  /// For people: why an operation failed.
  [[nodiscard]] std::string why(const endpoint::Completion& end) const;
  /// `what`, with the port's own cause and cure if it carries nothing, otherwise with `cure`.
  [[nodiscard]] std::string silent(const std::string& what, const std::string& cure,
                                   const Address* peer = nullptr) const;
  void on_interval(Nanos now, bool is_last);
  [[nodiscard]] bool is_over() const { return sending_ + receiving_ == 0; }

  std::string congestion_control_;
  endpoint::Endpoint endpoint_;
  std::unique_ptr<endpoint::CompletionQueue> queue_;
  std::vector<Flow> flows_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;

  // The batch that is under way.
  Batch batch_;
  bool is_client_ = false;
  std::uint64_t sending_ = 0;    ///< sends that have not ended, posted or not
  std::uint64_t receiving_ = 0;  ///< likewise
  Nanos begun_;
  Nanos every_;
  Nanos round_begun_;
  PerfInterval interval_;
  Outcome outcome_;
  std::exception_ptr failure_;  ///< of a callback
};

}  // namespace mltcp::experiment::perf
