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

/// How a batch went, as seen from here.
struct Outcome {
  Nanos time;
  std::vector<Nanos> rounds;  ///< latency, at the client: round trips
  std::vector<PerfInterval> intervals;
};

class End {
 public:
  /// `fallback_ip`: where the place names none. Throws InputError, RunError.
  End(const PerfPlace& place, const std::string& fallback_ip, const std::string& congestion_control);

  /// Whatever is under way ends here, while its memory and its queue are there.
  ~End() { endpoint_.close(); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  [[nodiscard]] const endpoint::EndpointAddress& address() const { return endpoint_.address(); }
  [[nodiscard]] const std::string& description() const { return endpoint_.description(); }

  /// One connection more, by this end, or by the other. Throws RunError.
  void connect(std::span<const std::byte> blob);
  void accept(Nanos limit, const std::function<void()>& look);
  [[nodiscard]] std::size_t connections() const { return flows_.size(); }

  /// Room for messages of `bytes`.
  void make_room(Bytes bytes);
  /// What this end receives first, so that it is there when the other sends.
  void prepare(const Batch& batch, bool is_client);
  /// Sends and receives what is left. `look` is called every tenth of a second: what it throws ends the batch. Throws
  /// RunError for what fails.
  Outcome run(Nanos limit, Nanos every, const std::function<void()>& look);
  /// Between batches, while something else is waited for: the other end may not have heard yet that all has come.
  void drive() { endpoint_.progress(); }
  /// Packets sent, and sent again.
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
  /// How the flow's operation that is just posted tells of its end; `left`: those like it that are still to be posted.
  endpoint::PostOptions telling(Flow& flow, std::uint64_t left);
  static void on_answer(void* flow, const endpoint::Completion& end) noexcept;
  void on_end(const endpoint::Completion& end);
  /// A connection that ended otherwise than it should, for people.
  [[nodiscard]] std::string why(const endpoint::Completion& end) const;
  /// `what` with cause and cure if the own port carries nothing, or else with `cure`.
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
