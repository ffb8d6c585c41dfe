// Gloo over MLTCP: a gloo::transport::Device on an endpoint, for Gloo's collectives and for programs built on them.
//
//   gloo::transport::mltcp::attr attr;
//   attr.iface = "eth0";
//   auto device = gloo::transport::mltcp::CreateDevice(attr);
//   context->connectFullMesh(store, device);               // as with Gloo's own devices
//   device->beginIteration(bytes);                         // if the program knows where its iterations begin
//
// A device may serve several contexts, a process may have several devices, and a host several processes. All
// connections of a device belong to one job of the transport; the job's iterations control its increase step.
//
// Errors are exceptions of Gloo's types, with one line "cause; cure": gloo::InvalidOperationException and
// gloo::EnforceNotMet for errors of the caller, gloo::IoException for failures, dead peers and timeouts.
//
// This header needs only those of Gloo.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/transport/address.h"
#include "gloo/transport/buffer.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/unbound_buffer.h"

#define MLTCP_GLOO_API __attribute__((visibility("default")))

namespace gloo::transport::mltcp {

/// An empty member (or 0) is taken from the environment; if that is not set, the default applies.
struct attr {
  /// The port as docs/how-to/ports.md writes it: "udp:", "udp:eth0", "af_packet:eth0". MLTCP_DEVICE; else "udp:".
  std::string device;
  /// The interface, for ports on the kernel's sockets: the same as device = "udp:" + iface.
  std::string iface;
  /// Name or IP address of this host on the training network. MLTCP_ADDRESS; else the interface's address; without an
  /// interface, the address of the host's name.
  std::string hostname;
  /// Congestion control: a name, or FILE.so:NAME (docs/reference/algorithms.md). MLTCP_CC; else "reno".
  std::string cc;
  /// The number of the job, carried in packets. MLTCP_JOB; else 0.
  std::uint32_t job = 0;
  /// Scales the increase step: "F1" to "F6", "polynomial A B C", "fair", or a constant above 0 such as "0.5".
  /// MLTCP_JOB_FUNCTION; else "F1".
  std::string job_function;
  /// A peer is considered dead after this time without a packet, 10 ms to 1 h. MLTCP_PEER_TIMEOUT_MS; else 10 s.
  std::chrono::milliseconds peer_timeout{0};
  /// How long waits, and the device's thread after a packet, poll before they sleep, up to 1 s. This lowers latency and
  /// uses processor time, so set it only on hosts with idle processors. MLTCP_SPIN_US; else 0.
  std::chrono::microseconds spin{0};
};

/// What determines the beginnings of iterations of a device's job. A later value has priority over an earlier one.
enum class IterationsBy : std::uint8_t {
  none = 0,     ///< nothing: the job's function has no iterations
  traffic,      ///< learned from the bytes and pauses of the traffic
  collectives,  ///< learned from the order and sizes of the collectives; exact while these repeat
  hook,         ///< beginIterationByHook()
  program,      ///< beginIteration()
};

/// The state of the device's job as congestion control sees it.
struct JobState {
  std::uint64_t iteration = 0;            ///< begun, or learned from the traffic
  std::uint64_t bytes_sent = 0;           ///< delivered in this iteration
  std::uint64_t bytes_per_iteration = 0;  ///< 0: not known
  double bytes_ratio = 0;                 ///< 0 to 1
  double gain = 1;                        ///< of the increase step
  std::uint32_t connections = 0;          ///< of the transport: two per pair
  IterationsBy iterations_by = IterationsBy::none;
  std::uint64_t bytes_posted = 0;  ///< by unbound buffers, since the device was created: payload of collectives
  std::uint64_t packets_sent = 0;  ///< by the job's open connections, like the next members
  std::uint64_t lost_packets = 0;
  std::uint64_t retransmitted_packets = 0;
  std::int64_t smoothed_rtt_ns = 0;  ///< maximum over connections
};

class MLTCP_GLOO_API Device : public ::gloo::transport::Device {
 public:
  ~Device() override;

  /// The next iteration begins and will send `bytes` in total, to all peers; 0: not known. After the first call with a
  /// size, iterations are no longer learned from the traffic. Any thread; does not wait. Throws IoException.
  virtual void beginIteration(std::uint64_t bytes) = 0;
  /// The iteration's data is sent, and the job computes. Throws IoException.
  virtual void endIteration() = 0;
  /// Likewise for a framework's hook; calls of the program have priority. `expected` is the number of bytes until one
  /// iteration has been sent from begin to end; afterwards the bytes of the previous iteration are used. Throws
  /// IoException.
  virtual void beginIterationByHook(std::uint64_t expected) = 0;
  virtual void endIterationByHook() = 0;
  /// Any thread except those of Gloo's callbacks. Throws IoException.
  [[nodiscard]] virtual JobState jobState() const = 0;
};

/// Layout of Gloo's types in the headers with which a file is compiled.
struct GlooLayout {
  std::uint32_t version = GLOO_VERSION;
  std::uint32_t device = sizeof(::gloo::transport::Device);
  std::uint32_t context = sizeof(::gloo::transport::Context);
  std::uint32_t pair = sizeof(::gloo::transport::Pair);
  std::uint32_t buffer = sizeof(::gloo::transport::Buffer);
  std::uint32_t unbound_buffer = sizeof(::gloo::transport::UnboundBuffer);
  std::uint32_t address_bytes = ::gloo::transport::Address::kMaxByteSize;
};

/// CreateDevice() for a caller with the headers of Gloo that `caller` describes. Throws InvalidOperationException if
/// this library was built with other headers, or if the loaded Gloo has another layout.
MLTCP_GLOO_API std::shared_ptr<Device> CreateDeviceFor(const GlooLayout& caller, const attr& attributes);

/// Opens a device. Throws InvalidOperationException if the attributes or the environment are wrong, IoException if the
/// machine is not ready.
inline std::shared_ptr<Device> CreateDevice(const attr& attributes = {}) {
  return CreateDeviceFor(GlooLayout{}, attributes);
}

}  // namespace gloo::transport::mltcp
