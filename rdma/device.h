// A port of an RDMA device, opened through libibverbs: its properties, queue pairs, address handles and events. It is
// an interface, so that tests can use their own device. Set-up and the service thread use it; the data path uses the
// created objects by the inline functions of verbs.h.
//
// Verbs: InfiniBand Architecture Specification, volume 1, chapter 11; the manual pages of libibverbs, such as
// ibv_create_qp(3). RoCEv2: the same, annex A17.
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

/// An entry of a port's table of GIDs.
struct Gid {
  std::uint8_t index = 0;
  Address ip{};  ///< as an IP address; port 0
  bool is_roce_v2 = false;
  std::uint32_t interface = 0;  ///< index of the kernel's interface that has the address; 0: none
};

struct DeviceFacts {
  std::string name;  ///< "mlx5_0"
  std::uint8_t port = 1;
  bool is_infiniband = false;
  std::uint16_t lid = 0;
  std::uint32_t longest_message = 1024;  ///< active MTU of the port
  std::uint32_t max_requests = 0;        ///< of a queue, in each direction
  std::uint32_t max_completions = 0;
  std::uint32_t max_pieces = 1;  ///< per request
  std::vector<Gid> gids;
  /// Indices of the kernel's interfaces on the port.
  std::vector<std::uint32_t> interfaces;
  /// The device computes the IP and UDP checksums of IPv4 frames on sending, and verifies them on arrival.
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
  std::uint32_t key = 0;             ///< Q_Key; frames have none
  std::uint32_t pieces = 1;          ///< per send request
  std::uint32_t receive_pieces = 1;  ///< per receive request
  std::uint32_t inline_bytes = 0;    ///< wanted; the device may support fewer
  /// Memory that the device reads and writes: whole pages.
  std::span<std::byte> memory{};
};

/// Frames that a device steers to a queue pair instead of the kernel: UDP over IP, without a VLAN tag.
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
  /// For both completion queues; its file does not block.
  ibv_comp_channel* channel = nullptr;
  std::uint32_t number = 0;
  std::uint32_t memory_key = 0;
  std::uint32_t inline_bytes = 0;

  /// Set by Device::take_events() when the queue pair has failed, which completions may not report.
  std::atomic<bool> has_failed{false};

  /// Takes the next event of the channel, after which the completion queue must be armed again; false if there is none.
  /// Events are acknowledged when the queue pair ends.
  virtual bool take_event() = 0;
  enum class Recovery : std::uint8_t {
    none_needed,
    resumed,  ///< sending had stopped (SQE); receive buffers are still posted
    reset,    ///< both had stopped: nothing is posted, and earlier requests will not be completed
    failed,
  };
  /// Steers such frames to this queue pair until it ends. Returns 0 or an errno. Only for QueuePairs of frames.
  virtual int steer(const FrameRule& /*rule*/) noexcept { return EOPNOTSUPP; }
  /// Makes the queue pair ready after an error that has stopped it. `must_reset`: resets it even if it has not stopped.
  virtual Recovery recover(bool must_reset) = 0;
  /// Ends all access to memory, for good.
  virtual void stop() = 0;
};

struct HandleConfig {
  std::uint8_t gid_index = 0;
  Address destination{};  ///< GID
  std::uint16_t lid = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint32_t flow_label = 0;  ///< 20 bits
};

/// Whether Ethernet frames can bypass the kernel: raw-packet queue pairs (IBV_QPT_RAW_PACKET), and rules that steer
/// frames to them (ibv_create_flow(3)).
struct RawPackets {
  bool has_queue_pairs = false;
  bool has_steering = false;
  bool lacks_right = false;  ///< the process does not have CAP_NET_RAW
  std::string why_not{};     ///< what is missing, and why; empty if both are available
};

class Device : public DmaDevice {
 public:
  [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
  /// Throws RunError with cause and cure.
  virtual std::unique_ptr<QueuePair> make_queue_pair(const QueuePairConfig& config) = 0;
  /// Tries both for a moment, with a rule that matches no frame.
  virtual RawPackets try_raw_packets() = 0;
  /// Null with errno on failure. Takes up to seconds while the kernel looks for the neighbour's MAC address.
  virtual ibv_ah* make_handle(const HandleConfig& config) noexcept = 0;
  virtual void free_handle(ibv_ah* handle) noexcept = 0;

  /// Readable when there are events for take_events(); -1: never.
  [[nodiscard]] virtual int event_file() const = 0;
  /// Takes the device's asynchronous events, and checks the state of the port. True if shards must check their queue
  /// pairs, since one has failed or the device is gone.
  virtual bool take_events() = 0;
  /// "cause; cure" while nothing gets through: port down, address gone, device gone, completions lost. Any thread.
  [[nodiscard]] virtual std::string why_down() const = 0;
  /// Nothing will get through until the program is restarted: the device is gone, or a completion queue is lost. Any
  /// thread.
  [[nodiscard]] virtual bool is_gone() const = 0;
  /// Sets the GID whose loss why_down() reports.
  virtual void watch(const Gid& gid) = 0;
  /// Index of that GID, which changes if the address is removed and added again. Only for the thread that takes events.
  [[nodiscard]] virtual std::uint8_t gid_index() const = 0;
  /// Packets with a wrong Q_Key since the device was opened. Any thread.
  [[nodiscard]] virtual std::uint64_t wrong_keys() const = 0;
};

/// Opens a port. Throws InputError if there is no such device or port, RunError if it cannot be opened.
std::unique_ptr<Device> open_device(const VerbsName& name);

/// The GID of a host at `address`, or the one at `index`. Throws InputError that lists the available ones.
Gid choose_gid(const DeviceFacts& facts, const Address& address, std::optional<std::uint8_t> index);

/// The network that carries packets from that GID.
Network network_of(const DeviceFacts& facts, const Gid& gid);

/// Names of the machine's RDMA devices. Throws RunError with the cure if the kernel has none or cannot list them.
std::vector<std::string> device_names();

}  // namespace mltcp::rdma
