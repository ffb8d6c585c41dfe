// Interface of the networks on which jobs run. The hosts are pairs around one bottleneck, in virtual or real time, or
// those of a topology.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/fabric/link.h"
#include "mltcp/lab/fabric/usage_meter.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::experiment {

class JobNetwork {
 public:
  enum class Side { sender, receiver };
  /// The sender or the receiver of a worker's traffic.
  struct End {
    Side side = Side::sender;
    std::uint32_t job = 0;     ///< number of the job
    std::uint32_t worker = 0;  ///< always 0 on a dumbbell
  };
  /// State of a link after a run.
  struct LinkView {
    std::string_view name;
    const fabric::LinkConfig* config = nullptr;
    const fabric::LinkCounters* counters = nullptr;
    const fabric::UsageMeter* usage = nullptr;
  };

  virtual ~JobNetwork() = default;

  /// Returns the packet interface of a sender or receiver; owned by the network.
  virtual PacketIo& host(const End& end) = 0;
  virtual const Address& address(const End& end) = 0;
  /// Polls `pollable` on a sender or receiver whenever necessary. `pollable` must outlive the network's last run.
  virtual void attach(const End& end, Pollable& pollable) = 0;
  /// Polls the object attached to a sender or receiver soon, without waiting for a packet or deadline.
  virtual void wake(const End& end) = 0;
  /// Runs until `until`, or until `stop` returns true. Returns whether `stop` returned true.
  virtual bool run(Nanos until, const std::function<bool()>& stop) = 0;
  [[nodiscard]] virtual Nanos now() const = 0;

  /// Returns the links on which jobs may compete, at least one: the bottleneck of a dumbbell, or all links of a
  /// topology. The usage meters of all links have the same bin width.
  [[nodiscard]] virtual std::vector<LinkView> links() const = 0;
  /// Returns the bytes queued for links()[link] or being sent on it at now(); 0 if unknown. Call between runs.
  [[nodiscard]] virtual Bytes queue_bytes(std::size_t /*link*/) const { return 0; }
  /// Returns the delays of a real-time datapath's loop; empty in virtual time.
  [[nodiscard]] virtual std::optional<Stalls> stalls() const = 0;
};

}  // namespace mltcp::experiment
