// One of the two ends of a measurement: an endpoint driven by the calling thread, its connections, and the batches of
// messages sent and received on these connections.
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
  std::vector<Nanos> rounds;  ///< round-trip times; only at the client of a latency test
  std::vector<PerfInterval> intervals;
};

class End {
 public:
  /// Uses `fallback_ip` if `place` names no address. Throws InputError or RunError if the endpoint cannot be opened.
  End(const PerfPlace& place, const std::string& fallback_ip, const std::string& congestion_control);

  /// Closes the endpoint, which ends all operations while their buffers and queue still exist.
  ~End() { endpoint_.close(); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  [[nodiscard]] const endpoint::EndpointAddress& address() const { return endpoint_.address(); }
  [[nodiscard]] const std::string& description() const { return endpoint_.description(); }

  /// connect() opens a connection to the endpoint with address `blob`. accept() waits up to `limit` for a connection
  /// from the other end, and calls `look` about every 0.1 s. Both throw RunError if there is no connection.
  void connect(std::span<const std::byte> blob);
  void accept(Nanos limit, const std::function<void()>& look);
  [[nodiscard]] std::size_t connections() const { return flows_.size(); }

  /// Enlarges the buffers if they are too small for messages of `bytes`.
  void reserve(Bytes bytes);
  /// Begins a batch: posts the first receive operations of this end. Must be called before the other end sends.
  void prepare(const Batch& batch, bool is_client);
  /// Runs the batch until all messages are sent and received. Records intervals of length `every` unless it is 0. Calls
  /// `look` about every 0.1 s; an exception of `look` ends the batch. Throws RunError if an operation fails or the
  /// batch takes longer than `limit`.
  Outcome run(Nanos limit, Nanos every, const std::function<void()>& look);
  /// Drives the endpoint between batches, since the other end may still need acknowledgements from this end.
  void drive() { endpoint_.progress(); }
  /// Adds the packet counters and packet lengths of all connections to `results`.
  void add_counters(PerfResults& results);

 private:
  struct Flow {
    End* end = nullptr;
    endpoint::ConnectionHandle connection = 0;
    std::uint64_t to_send = 0;  ///< number of messages whose send is not yet posted
    std::uint64_t to_receive = 0;
  };
  void post_send(Flow& flow);
  void post_receive(Flow& flow);
  /// Returns the options of the operation that `flow` posts next. `left` is the number of operations of the same kind
  /// that `flow` has to post afterwards.
  endpoint::PostOptions post_options(Flow& flow, std::uint64_t left);
  static void on_answer(void* flow, const endpoint::Completion& end) noexcept;
  void on_end(const endpoint::Completion& end);
  /// Returns a text for people that explains why an operation failed.
  [[nodiscard]] std::string why(const endpoint::Completion& end) const;
  /// Returns the message `what`, followed by the endpoint's explanation why nothing arrives, or by `cure` if the
  /// endpoint has none.
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

  // State of the current batch.
  Batch batch_;
  bool is_client_ = false;
  std::uint64_t sending_ = 0;    ///< number of sends that are not completed, including those not yet posted
  std::uint64_t receiving_ = 0;  ///< number of receives that are not completed, including those not yet posted
  Nanos begun_;
  Nanos every_;
  Nanos round_begun_;
  PerfInterval interval_;
  Outcome outcome_;
  std::exception_ptr failure_;  ///< exception thrown by a callback; null if there is none
};

}  // namespace mltcp::experiment::perf
