// Gloo over MLTCP: a gloo::transport::Device on an endpoint, for Gloo's own collectives and for what is built on them.
//
//   gloo::transport::mltcp::attr attr;
//   attr.iface = "eth0";
//   auto device = gloo::transport::mltcp::CreateDevice(attr);
//   context->connectFullMesh(store, device);               // as with Gloo's own devices
//   device->beginIteration(bytes);                         // if the program knows where its iterations begin
//
// A device may serve several contexts, several devices may be in a process, and several processes on a host. All of a
// device's connections belong to one job of the transport, whose increase step follows the job's iterations.
//
// Errors are exceptions of Gloo's own types, with one line "cause; cure": gloo::InvalidOperationException and
// gloo::EnforceNotMet for what the caller has wrong, gloo::IoException for what has failed, peers that have died, and
// times that are over.
//
// The header needs those of Gloo alone.
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

/// What is empty (or 0) is taken from the environment, and else chosen.
struct attr {
  /// The port as docs/how-to/ports.md writes it: "udp:", "udp:eth0", "af_packet:eth0". MLTCP_DEVICE; else "udp:".
  std::string device;
  /// The interface, for ports on the kernel's sockets: the same as device = "udp:" + iface.
  std::string iface;
  /// Name or IP address of this host on the training network. MLTCP_ADDRESS; else the interface's, and without one what
  /// the host's name stands for.
  std::string hostname;
  /// Congestion control: a name, or FILE.so:NAME (docs/reference/algorithms.md). MLTCP_CC; else "reno".
  std::string cc;
  /// The number of the job, carried in packets. MLTCP_JOB; else 0.
  std::uint32_t job = 0;
  /// What scales the increase step: "F1" to "F6", "polynomial A B C", "fair", or a constant above 0 such as "0.5".
  /// MLTCP_JOB_FUNCTION; else "F1".
  std::string job_function;
  /// A peer that was not heard for so long is gone, 10 ms to 1 h. MLTCP_PEER_TIMEOUT_MS; else 10 s.
  std::chrono::milliseconds peer_timeout{0};
  /// For so long waits, and the device's thread after a packet, look again and again before they sleep: less delay for
  /// processor time. For hosts with processors to spare, up to 1 s. MLTCP_SPIN_US; else 0.
  std::chrono::microseconds spin{0};
};

/// Who says where the iterations of a device's job begin. Who stands further below goes before those above.
enum class IterationsBy : std::uint8_t {
  none = 0,     ///< nobody: the job's function has no iterations
  traffic,      ///< found in the bytes and silences of the traffic
  collectives,  ///< found in the order and sizes of the collectives, and exact while these repeat
  hook,         ///< beginIterationByHook()
  program,      ///< beginIteration()
};

/// What the congestion control sees of the device's job.
struct JobState {
  std::uint64_t iteration = 0;            ///< begun, or found in the traffic
  std::uint64_t bytes_sent = 0;           ///< delivered in it
  std::uint64_t bytes_per_iteration = 0;  ///< 0: not known
  double bytes_ratio = 0;                 ///< 0 to 1
  double gain = 1;                        ///< of the increase step
  std::uint32_t connections = 0;          ///< of the transport: two a pair
  IterationsBy iterations_by = IterationsBy::none;
  std::uint64_t bytes_posted = 0;  ///< by unbound buffers, since the device was made: payload of collectives
  std::uint64_t packets_sent = 0;  ///< of the job's connections that are there, like the next
  std::uint64_t lost_packets = 0;
  std::uint64_t retransmitted_packets = 0;
  std::int64_t smoothed_rtt_ns = 0;  ///< the highest
};

class MLTCP_GLOO_API Device : public ::gloo::transport::Device {
 public:
  ~Device() override;

  /// The next iteration begins, and will send `bytes` to all peers together; 0: not known. From the first call with a
  /// size on, iterations are no longer looked for in the traffic. Any thread; does not wait. Throws IoException.
  virtual void beginIteration(std::uint64_t bytes) = 0;
  /// All has been sent, and the job computes. Throws IoException.
  virtual void endIteration() = 0;
  /// The same for a framework's hook, which leaves precedence to the program. `expected` bytes, until an iteration has
  /// been sent from begin to end; from then on what the one before has sent. Throws IoException.
  virtual void beginIterationByHook(std::uint64_t expected) = 0;
  virtual void endIterationByHook() = 0;
  /// Any thread but those of Gloo's callbacks. Throws IoException.
  [[nodiscard]] virtual JobState jobState() const = 0;
};

/// Layout of Gloo's types, as the headers that a file is compiled with have it.
struct GlooLayout {
  std::uint32_t version = GLOO_VERSION;
  std::uint32_t device = sizeof(::gloo::transport::Device);
  std::uint32_t context = sizeof(::gloo::transport::Context);
  std::uint32_t pair = sizeof(::gloo::transport::Pair);
  std::uint32_t buffer = sizeof(::gloo::transport::Buffer);
  std::uint32_t unbound_buffer = sizeof(::gloo::transport::UnboundBuffer);
  std::uint32_t address_bytes = ::gloo::transport::Address::kMaxByteSize;
};

/// CreateDevice() for a caller whose headers of Gloo are `caller`: throws InvalidOperationException where these are not
/// those that this library was built with, or the Gloo that is loaded lays its types out in another way.
MLTCP_GLOO_API std::shared_ptr<Device> CreateDeviceFor(const GlooLayout& caller, const attr& attributes);

/// Opens a device. Throws InvalidOperationException for what is wrong with the attributes or the environment,
/// IoException for what is wrong with the machine.
inline std::shared_ptr<Device> CreateDevice(const attr& attributes = {}) {
  return CreateDeviceFor(GlooLayout{}, attributes);
}

}  // namespace gloo::transport::mltcp
