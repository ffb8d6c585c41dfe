// The network that jobs are driven over: pairs of hosts around one bottleneck, in virtual time or in real time, or the
// hosts of a topology, behind one interface, so that those who drive jobs know nothing of the difference.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/fabric/link.h"
#include "mltcp/fabric/usage_meter.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::experiment {

class JobNetwork {
 public:
  enum class Side { sender, receiver };
  /// One end of the traffic of a job's worker: it sends, or its bytes are received.
  struct End {
    Side side = Side::sender;
    std::uint32_t job = 0;     ///< number
    std::uint32_t worker = 0;  ///< always 0 on a dumbbell
  };
  /// A link, as a run has left it.
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
  /// Drives `pollable`, which outlives the network's last run, on an end.
  virtual void attach(const End& end, Pollable& pollable) = 0;
  /// Polls an end soon, although no packet and no deadline asks for it.
  virtual void wake(const End& end) = 0;
  /// Runs until the time is `until` or `stop` is true; returns whether it was stopped.
  virtual bool run(Nanos until, const std::function<bool()>& stop) = 0;
  [[nodiscard]] virtual Nanos now() const = 0;

  /// The links on which jobs may meet: of a dumbbell the bottleneck, of a topology all. At least one; their meters have
  /// bins of one width.
  [[nodiscard]] virtual std::vector<LinkView> links() const = 0;
  /// How late a real-time datapath was; nothing in virtual time.
  [[nodiscard]] virtual std::optional<Stalls> stalls() const = 0;
};

}  // namespace mltcp::experiment
