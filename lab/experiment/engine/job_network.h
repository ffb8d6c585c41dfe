// The interface of the network that jobs are driven over: pairs of hosts around one bottleneck, in virtual or real
// time, or the hosts of a topology.
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
  /// One end of a worker's traffic: the sender or the receiver.
  struct End {
    Side side = Side::sender;
    std::uint32_t job = 0;     ///< number
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

  /// The datapath of an end, owned by the network.
  virtual PacketIo& host(const End& end) = 0;
  virtual const Address& address(const End& end) = 0;
  /// Drives `pollable` on an end; it must outlive the network's last run.
  virtual void attach(const End& end, Pollable& pollable) = 0;
  /// Polls an end soon, in addition to packets and deadlines.
  virtual void wake(const End& end) = 0;
  /// Runs until `until` or until `stop` returns true; returns whether it was stopped.
  virtual bool run(Nanos until, const std::function<bool()>& stop) = 0;
  [[nodiscard]] virtual Nanos now() const = 0;

  /// The links on which jobs may compete: the bottleneck of a dumbbell, all links of a topology. At least one; their
  /// meters have equal bin widths.
  [[nodiscard]] virtual std::vector<LinkView> links() const = 0;
  /// Bytes that wait for links()[link] or are being sent on it at now(); 0 if not known. Call between runs.
  [[nodiscard]] virtual Bytes queue_bytes(std::size_t /*link*/) const { return 0; }
  /// Delays of a real-time datapath's loop; empty in virtual time.
  [[nodiscard]] virtual std::optional<Stalls> stalls() const = 0;
};

}  // namespace mltcp::experiment
