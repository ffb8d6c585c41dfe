// A port of an RDMA device, opened through libibverbs: what it is, its queue pairs, address handles and events. An
// interface, so that tests have a device of their own. Set-up and the service thread use it; the data path uses what
// it has made, by the inline functions of verbs.h.
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
  std::uint32_t interface = 0;  ///< index of the kernel's interface that has it; 0: none
};

struct DeviceFacts {
  std::string name;  ///< "mlx5_0"
  std::uint8_t port = 1;
  bool is_infiniband = false;
  std::uint16_t lid = 0;
  std::uint32_t longest_message = 1024;  ///< active MTU of the port
  std::uint32_t max_requests = 0;        ///< of a queue, each way
  std::uint32_t max_completions = 0;
  std::uint32_t max_pieces = 1;  ///< of a request
  std::vector<Gid> gids;
  /// The kernel's interfaces that are on the port, by their indices.
  std::vector<std::uint32_t> interfaces;
  /// Checksums of IP and UDP in frames by IPv4: computed when they are sent, and verified when they arrive.
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
  std::uint32_t pieces = 1;          ///< of a request to send
  std::uint32_t receive_pieces = 1;  ///< of one to receive
  std::uint32_t inline_bytes = 0;    ///< wanted; fewer where the device has fewer
  /// That the device shall read and write: whole pages.
  std::span<std::byte> memory{};
};

/// Frames that a device puts into a queue pair, and keeps from the kernel: those of UDP over IP, without a VLAN tag.
struct FrameRule {
  encap::MacAddress destination_mac{};
  Address destination{};
};

/// A queue pair that is ready to send, with what belongs to it.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  ibv_qp* queue = nullptr;
  ibv_cq* sent = nullptr;
  ibv_cq* received = nullptr;
  /// Of both completion queues; its file does not block.
  ibv_comp_channel* channel = nullptr;
  std::uint32_t number = 0;
  std::uint32_t memory_key = 0;
  std::uint32_t inline_bytes = 0;

  /// Set by the device's events (Device::take_events()): it has failed, and completions need not tell.
  std::atomic<bool> has_failed{false};

  /// Next event of the channel, whose completion queue is to be armed anew; false if there is none. Acknowledged when
  /// the queue pair ends.
  virtual bool take_event() = 0;
  enum class Recovery : std::uint8_t {
    none_needed,
    resumed,  ///< sending had stopped (SQE); receive buffers are still there
    reset,    ///< both had: nothing is posted any more, nor will what was be completed
    failed,
  };
  /// Has such frames put into this queue pair, as long as it lives. An errno, or 0. Of frames only.
  virtual int steer(const FrameRule& /*rule*/) noexcept { return EOPNOTSUPP; }
  /// After an error by which the device has stopped. `must_reset`: whether it has stopped or not.
  virtual Recovery recover(bool must_reset) = 0;
  /// It reads and writes no memory any more. For good.
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

/// Whether Ethernet frames could pass by the kernel: raw-packet queue pairs (IBV_QPT_RAW_PACKET), and rules by which
/// the device steers frames to them (ibv_create_flow(3)).
struct RawPackets {
  bool has_queue_pairs = false;
  bool has_steering = false;
  bool lacks_right = false;  ///< the process has not got CAP_NET_RAW
  std::string why_not{};     ///< what is missing, and why; empty where both are there
};

class Device : public DmaDevice {
 public:
  [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
  /// Throws RunError with cause and cure.
  virtual std::unique_ptr<QueuePair> make_queue_pair(const QueuePairConfig& config) = 0;
  /// Tries both out, for a moment, with a rule that no frame fits.
  virtual RawPackets try_raw_packets() = 0;
  /// Null with errno if it can't be had, such as for want of the neighbour's MAC address, which the kernel asks for;
  /// takes up to seconds then.
  virtual ibv_ah* make_handle(const HandleConfig& config) noexcept = 0;
  virtual void free_handle(ibv_ah* handle) noexcept = 0;

  /// Readable when there are events for take_events(); -1: never.
  [[nodiscard]] virtual int event_file() const = 0;
  /// Takes the device's asynchronous events, and looks how its port is. Whether shards have to look at their queue
  /// pairs, since one has failed or the device is gone.
  virtual bool take_events() = 0;
  /// "cause; cure" while nothing gets through: port down, address gone, device gone, completions lost. By any thread.
  [[nodiscard]] virtual std::string why_down() const = 0;
  /// Nothing will get through until the program is started again: the device is gone, or a completion queue is lost. By
  /// any thread.
  [[nodiscard]] virtual bool is_gone() const = 0;
  /// The GID that why_down() tells of when it goes.
  virtual void watch(const Gid& gid) = 0;
  /// Of that GID, which may come back at another place of the port's table. By the thread that takes events.
  [[nodiscard]] virtual std::uint8_t gid_index() const = 0;
  /// Packets with a wrong Q_Key, as counted since it was opened. By any thread.
  [[nodiscard]] virtual std::uint64_t wrong_keys() const = 0;
};

/// Opens a port. Throws InputError if there is no such device or port, RunError if it can't be opened.
std::unique_ptr<Device> open_device(const VerbsName& name);

/// The GID for a host at `address`, or by its index. Throws InputError with those that there are.
Gid choose_gid(const DeviceFacts& facts, const Address& address, std::optional<std::uint8_t> index);

/// What carries packets from that GID.
Network network_of(const DeviceFacts& facts, const Gid& gid);

/// Names of the machine's RDMA devices. Throws RunError with the cure if the kernel knows of none by this name or can't
/// tell.
std::vector<std::string> device_names();

}  // namespace mltcp::rdma
