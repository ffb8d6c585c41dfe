// Gloo over MLTCP: a gloo::transport::Device that uses an endpoint, for Gloo's collectives and programs built on them.
//
//   gloo::transport::mltcp::attr attr;
//   attr.iface = "eth0";
//   auto device = gloo::transport::mltcp::CreateDevice(attr);
//   context->connectFullMesh(store, device);               // as with Gloo's own devices
//   device->beginIteration(bytes);                         // if the program knows where its iterations begin
//
// A device may serve several contexts, a process may have several devices, and a host several processes. All
// connections of a device belong to one job of the transport. The job's iterations control the increase step of these
// connections.
//
// Functions report errors by Gloo's exceptions, whose text is one line "cause; cure". gloo::InvalidOperationException
// and gloo::EnforceNotMet report errors of the caller; gloo::IoException reports failures, dead peers and timeouts.
//
// This header includes only headers of Gloo and of the standard library.
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

/// Settings of a device. If a member is empty or 0, the environment variable in its description applies. If that is not
/// set either, the default applies.
struct attr {
  /// The port, in the form of docs/how-to/ports.md: "udp:", "udp:eth0", "af_packet:eth0". Variable MLTCP_DEVICE;
  /// default "udp:".
  std::string device;
  /// The interface, for ports that use kernel sockets. Means the same as device = "udp:" + iface.
  std::string iface;
  /// Name or IP address of this host on the training network. Variable MLTCP_ADDRESS. The default is the interface's
  /// address or, without an interface, the address that the host's name resolves to.
  std::string hostname;
  /// Congestion control: a name, or FILE.so:NAME (docs/reference/algorithms.md). Variable MLTCP_CC; default "reno".
  std::string cc;
  /// Number of the job, which packets carry. Variable MLTCP_JOB; default 0.
  std::uint32_t job = 0;
  /// Function that scales the increase step: "F1" to "F6", "polynomial A B C", "fair", or a constant above 0 such as
  /// "0.5". Variable MLTCP_JOB_FUNCTION; default "F1".
  std::string job_function;
  /// Idle timeout: a peer counts as dead after this time without a packet, 10 ms to 1 h. Variable
  /// MLTCP_PEER_TIMEOUT_MS; default 10 s.
  std::chrono::milliseconds peer_timeout{0};
  /// Time for which waiting threads, and the device's thread after a packet, poll before they sleep; up to 1 s. Polling
  /// lowers latency but uses processor time, so set this only on hosts with idle processors. Variable MLTCP_SPIN_US;
  /// default 0.
  std::chrono::microseconds spin{0};
};

/// Source from which a device learns when its job's iterations begin. A higher value has priority over a lower one.
enum class IterationsBy : std::uint8_t {
  none = 0,     ///< no source: the job's function has no iterations
  traffic,      ///< learned from the bytes and pauses of the traffic
  collectives,  ///< learned from the order and sizes of the collectives; exact while these repeat
  hook,         ///< calls of beginIterationByHook()
  program,      ///< calls of beginIteration()
};

/// State of the device's job as congestion control sees it.
struct JobState {
  std::uint64_t iteration = 0;            ///< number of the latest iteration, begun or learned
  std::uint64_t bytes_sent = 0;           ///< bytes delivered in this iteration
  std::uint64_t bytes_per_iteration = 0;  ///< 0 if not known
  double bytes_ratio = 0;                 ///< delivered share of the bytes of this iteration, 0 to 1
  double gain = 1;                        ///< gain of the increase step
  std::uint32_t connections = 0;          ///< transport connections; each pair has two
  IterationsBy iterations_by = IterationsBy::none;
  /// payload of collectives: bytes posted by unbound buffers since the device was created
  std::uint64_t bytes_posted = 0;
  /// packets sent on the open connections of the job, which all members below cover
  std::uint64_t packets_sent = 0;
  std::uint64_t lost_packets = 0;
  std::uint64_t retransmitted_packets = 0;
  std::int64_t smoothed_rtt_ns = 0;  ///< maximum over the open connections of the job
};

class MLTCP_GLOO_API Device : public ::gloo::transport::Device {
 public:
  ~Device() override;

  /// Begins the next iteration, in which the job sends `bytes` in total to all peers; 0 if not known. After the first
  /// call with a size, iterations are no longer learned from the traffic. May be called from any thread; does not wait.
  /// Throws IoException.
  virtual void beginIteration(std::uint64_t bytes) = 0;
  /// Ends the iteration: the job has sent the iteration's data, and computes now. Throws IoException.
  virtual void endIteration() = 0;
  /// Begins an iteration for a framework's hook. Calls of beginIteration() have priority. `expected` is the size in
  /// bytes that applies until one whole iteration has been sent. Afterwards the size of the previous iteration applies.
  /// Throws IoException.
  virtual void beginIterationByHook(std::uint64_t expected) = 0;
  virtual void endIterationByHook() = 0;
  /// Returns the state of the job. May be called from any thread except those of Gloo's callbacks. Throws IoException.
  [[nodiscard]] virtual JobState jobState() const = 0;
};

/// Sizes of Gloo's types according to the headers with which a file is compiled.
struct GlooLayout {
  std::uint32_t version = GLOO_VERSION;
  std::uint32_t device = sizeof(::gloo::transport::Device);
  std::uint32_t context = sizeof(::gloo::transport::Context);
  std::uint32_t pair = sizeof(::gloo::transport::Pair);
  std::uint32_t buffer = sizeof(::gloo::transport::Buffer);
  std::uint32_t unbound_buffer = sizeof(::gloo::transport::UnboundBuffer);
  std::uint32_t address_bytes = ::gloo::transport::Address::kMaxByteSize;
};

/// Opens a device for a caller that was compiled with the Gloo headers that `caller` describes. Throws
/// InvalidOperationException if this library was built with headers that differ from the caller's, or if the loaded
/// Gloo does not match this library's headers.
MLTCP_GLOO_API std::shared_ptr<Device> CreateDeviceFor(const GlooLayout& caller, const attr& attributes);

/// Opens a device. Throws InvalidOperationException if the attributes or the environment are wrong, and IoException if
/// the machine is not ready.
inline std::shared_ptr<Device> CreateDevice(const attr& attributes = {}) {
  return CreateDeviceFor(GlooLayout{}, attributes);
}

}  // namespace gloo::transport::mltcp
