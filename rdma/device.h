// A port of an RDMA device, opened through libibverbs: its properties, queue pairs, address handles and events.
// `Device` is an abstract class, so that tests can replace it. Set-up and the service thread use the device. The data
// path uses the created objects through the inline functions of verbs.h.
//
// References: for verbs, InfiniBand Architecture Specification, volume 1, chapter 11, and the manual pages of
// libibverbs, such as ibv_create_qp(3); for RoCEv2, annex A17 of that specification.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/rdma/ud_packet.h"
#include "mltcp/rdma/verbs_name.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/registered_memory.h"

namespace mltcp::rdma {

/// An entry of a port's GID table.
struct Gid {
  std::uint8_t index = 0;
  Address ip{};  ///< the GID as an IP address; the port is 0
  bool is_roce_v2 = false;
  std::uint32_t interface = 0;  ///< index of the kernel's interface that has the address; 0 if there is none
};

struct DeviceFacts {
  std::string name;  ///< e.g. "mlx5_0"
  std::uint8_t port = 1;
  bool is_infiniband = false;
  std::uint16_t lid = 0;
  std::uint32_t longest_message = 1024;  ///< in bytes; the active MTU of the port
  std::uint32_t max_requests = 0;        ///< maximum number of requests in a queue
  std::uint32_t max_completions = 0;
  std::uint32_t max_pieces = 1;  ///< maximum number of scatter-gather elements per request
  std::vector<Gid> gids;
  /// Indices of the kernel's interfaces on the port.
  std::vector<std::uint32_t> interfaces;
  /// Whether the device computes the IP and UDP checksums of IPv4 frames that it sends, and verifies the checksums of
  /// IPv4 frames that it receives.
  bool has_frame_checksums = false;
};

enum class PairKind : std::uint8_t {
  datagrams,  ///< unreliable datagrams (IBV_QPT_UD)
  frames,     ///< Ethernet frames (IBV_QPT_RAW_PACKET)
};

struct QueuePairConfig {
  PairKind kind = PairKind::datagrams;
  std::uint32_t send_depth = 512;
  std::uint32_t receive_depth = 1024;
  std::uint32_t key = 0;             ///< Q_Key; not used for frames
  std::uint32_t pieces = 1;          ///< number of scatter-gather elements per send request
  std::uint32_t receive_pieces = 1;  ///< number of scatter-gather elements per receive request
  std::uint32_t inline_bytes = 0;    ///< requested maximum of inline data; the device may support less
  /// Memory that the device reads and writes. It must consist of whole pages.
  std::span<std::byte> memory{};
};

/// Describes the frames that a device steers to a queue pair instead of to the kernel. The frames are UDP over IP,
/// without a VLAN tag.
struct FrameRule {
  encap::MacAddress destination_mac{};
  Address destination{};
};

/// A queue pair that is ready to send, with its completion queues.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  ibv_qp* queue = nullptr;
  ibv_cq* sent = nullptr;
  ibv_cq* received = nullptr;
  /// The channel of both completion queues. Its file descriptor is non-blocking.
  ibv_comp_channel* channel = nullptr;
  std::uint32_t number = 0;
  std::uint32_t memory_key = 0;
  std::uint32_t inline_bytes = 0;

  /// Device::take_events() sets this flag when the queue pair has failed, because completions may not report the
  /// failure.
  std::atomic<bool> has_failed{false};

  /// Takes the next event of the channel. Returns false if there is none. After an event, the completion queue must be
  /// armed again. The destructor acknowledges all events.
  virtual bool take_event() = 0;
  enum class Recovery : std::uint8_t {
    none_needed,
    resumed,  ///< sending had stopped (SQE) and works again; receive buffers are still posted
    reset,    ///< no request is posted any more; those posted before this will never be completed
    failed,
  };
  /// Steers the frames that match the rule to this queue pair until the queue pair is destroyed. Returns 0 or an errno.
  /// Only for queue pairs of PairKind::frames.
  virtual int steer(const FrameRule& /*rule*/) noexcept { return EOPNOTSUPP; }
  /// Makes the queue pair ready again after an error that has stopped it. If `must_reset` is true, resets the queue
  /// pair even if no error has stopped it.
  virtual Recovery recover(bool must_reset) = 0;
  /// Permanently ends all accesses of the device to memory.
  virtual void stop() = 0;
};

struct HandleConfig {
  std::uint8_t gid_index = 0;
  Address destination{};  ///< GID of the peer
  std::uint16_t lid = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint32_t flow_label = 0;  ///< at most 20 bits
};

/// Tells whether Ethernet frames can bypass the kernel. This needs raw-packet queue pairs (IBV_QPT_RAW_PACKET), and
/// rules that steer frames to them (ibv_create_flow(3)).
struct RawPackets {
  bool has_queue_pairs = false;
  bool has_steering = false;
  bool lacks_right = false;  ///< whether the process lacks the capability CAP_NET_RAW
  std::string why_not{};     ///< what is missing and why; empty if nothing is missing
};

class Device : public DmaDevice {
 public:
  [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
  /// Throws RunError, whose message says why and what to do, if the device refuses.
  virtual std::unique_ptr<QueuePair> make_queue_pair(const QueuePairConfig& config) = 0;
  /// Creates a raw-packet queue pair and a steering rule, and removes both again. The rule matches no frame.
  virtual RawPackets try_raw_packets() = 0;
  /// Returns null and sets errno on failure. May take seconds while the kernel looks for the neighbour's MAC address.
  virtual ibv_ah* make_handle(const HandleConfig& config) noexcept = 0;
  virtual void free_handle(ibv_ah* handle) noexcept = 0;

  /// Returns a file that is readable when there are events for take_events(); -1 if the device never has events.
  [[nodiscard]] virtual int event_file() const = 0;
  /// Takes the device's asynchronous events, and checks the state of the port. Returns true if shards must check their
  /// queue pairs, because one has failed or the device is gone.
  virtual bool take_events() = 0;
  /// Returns "cause; cure" while packets cannot get through, else empty. Causes are a port that is down, and the loss
  /// of the address, of a completion queue or of the device. May be called from any thread.
  [[nodiscard]] virtual std::string why_down() const = 0;
  /// Returns whether packets cannot get through until the program is restarted, because the device is gone or a
  /// completion queue is lost. May be called from any thread.
  [[nodiscard]] virtual bool is_gone() const = 0;
  /// Sets the GID whose loss why_down() reports.
  virtual void watch(const Gid& gid) = 0;
  /// Returns the index of the watched GID. The index changes if the address is removed and added again. Only for the
  /// thread that calls take_events().
  [[nodiscard]] virtual std::uint8_t gid_index() const = 0;
  /// Returns the number of packets with a wrong Q_Key since the device was opened. May be called from any thread.
  [[nodiscard]] virtual std::uint64_t wrong_keys() const = 0;
};

/// Opens a port. Throws InputError if there is no such device or port, RunError if it cannot be opened.
std::unique_ptr<Device> open_device(const VerbsName& name);

/// If `index` is given, returns the GID with this index. Otherwise returns the GID for a host at `address`. An
/// unspecified address selects a GID of its IP version. Throws InputError with the available GIDs if none is suitable.
Gid choose_gid(const DeviceFacts& facts, const Address& address, std::optional<std::uint8_t> index);

/// Returns the network that carries packets sent from `gid`.
Network network_of(const DeviceFacts& facts, const Gid& gid);

/// Returns the names of the machine's RDMA devices. Throws RunError if the kernel has no RDMA devices or cannot list
/// them. The message says what to do.
std::vector<std::string> device_names();

}  // namespace mltcp::rdma
