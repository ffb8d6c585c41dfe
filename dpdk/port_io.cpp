// Hosts on Ethernet ports; see port_io.h.
#include "mltcp/dpdk/port_io.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/handoff.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/burst.h"
#include "mltcp/dpdk/frame_io.h"
#include "mltcp/dpdk/queue_interrupt.h"
#include "mltcp/dpdk/service.h"
#include "mltcp/transport/ethernet/resolver.h"

namespace mltcp::dpdk {
namespace {

constexpr std::uint16_t kMaxShards = 1024;
/// Maximum number of bursts without packets for the transport that one call of receive() skips.
constexpr int kMaxIdleBursts = 8;

/// Returns whether an ARP or Neighbour Discovery frame announces its sender's address, unsolicited or as a reply. Such
/// a frame is handed to all shards.
bool is_news(std::span<const std::byte> frame, std::uint16_t vlan) {
  const std::size_t network = encap::kEthernetBytes + (vlan != 0 ? encap::kVlanBytes : 0);
  const auto byte = [&](std::size_t at) {
    return at < frame.size() ? std::to_integer<std::uint8_t>(frame[at]) : std::uint8_t{0};
  };
  if (byte(network - 2) == 0x86) return byte(network + encap::kIpv6Bytes) == 136;  // a neighbour advertisement
  if (frame.size() < network + 28) return false;
  const bool answer = byte(network + 7) == 2;
  // An announcement has the same address as sender and as target.
  const bool announcement = std::memcmp(&frame[network + 14], &frame[network + 24], 4) == 0;
  return answer || announcement;
}

Address own_address(const PortHostConfig& config, std::uint16_t shard) {
  Address address = config.address;
  address.port = static_cast<std::uint16_t>(address.port + shard);
  return address;
}

bool refers(const Port& port, const PortHostConfig& config) {
  return config.zero_copy_from != 0 && port.sends_by_reference();
}

bool same_ip(const Address& a, const Address& b) { return a.ip == b.ip; }

/// During the object's lifetime, the calling thread uses no caches of pools. It takes buffers directly from the pool,
/// and returns them directly to the pool.
class Uncached {
 public:
  explicit Uncached(bool is_wanted) : thread_(rte_lcore_id()) {
    if (is_wanted) RTE_PER_LCORE(_lcore_id) = LCORE_ID_ANY;
  }
  ~Uncached() { RTE_PER_LCORE(_lcore_id) = thread_; }
  Uncached(const Uncached&) = delete;
  Uncached& operator=(const Uncached&) = delete;

 private:
  unsigned thread_;
};

/// The thread that has a cache in a queue's pool: the first thread that uses the queue. Any other thread works without
/// a cache, because buffers in many caches would be missing from the pool. A queue has several threads if any thread of
/// the program may drive an endpoint.
class CacheOwner {
 public:
  /// Returns whether another thread is the owner. If there is no owner, the calling thread becomes the owner.
  [[nodiscard]] bool is_other() {
    return rte_lcore_id() != thread_.load(std::memory_order_relaxed) && !becomes_owner();
  }

 private:
  [[nodiscard]] bool becomes_owner() {
    if (thread_.load(std::memory_order_relaxed) != kNobody) return false;
    join_dpdk();
    thread_.store(rte_lcore_id(), std::memory_order_relaxed);
    return true;
  }

  static constexpr unsigned kNobody = LCORE_ID_ANY - 1;
  std::atomic<unsigned> thread_{kNobody};  ///< DPDK's number of the thread; LCORE_ID_ANY for a thread without a cache
};

class QueueIo;
using Queues = std::vector<std::unique_ptr<QueueIo>>;

class QueueIo final : public PortIo {
 public:
  QueueIo(const Eal& eal, const Port& port, const PortHostConfig& config, std::uint16_t shard, std::uint16_t shards,
          const Queues& all, const std::string& name)
      : clock_(eal.clock()),
        port_(port.id()),
        queue_(shard % port.queues()),
        shard_(shard),
        vlan_(port.vlan()),
        base_port_(config.address.port),
        mtu_(port.mtu()),
        frame_limit_(port.mtu() + static_cast<std::uint32_t>(encap::kEthernetBytes + encap::kVlanBytes)),
        offloads_(port.offloads()),
        dscp_(config.dscp),
        mac_(port.mac()),
        all_(all),
        pool_(port.pool(queue_)),
        cache_owner_(shard < port.queues() ? own_cache_owner_ : all[queue_]->own_cache_owner_),
        address_(own_address(config, shard)),
        registered_(port.dma()),
        writer_({.pool = port.pool(queue_),
                 .frame = {.mac = port.mac(),
                           .source = own_address(config, shard),
                           .vlan = port.vlan(),
                           .mtu = port.mtu(),
                           .checksums = port.offloads().send_ip_checksum && port.offloads().send_udp_checksum
                                            ? Checksums::port
                                            : Checksums::software,
                           .dscp = config.dscp},
                 .by_reference = refers(port, config),
                 .registered = port.reads_by_dma() ? &registered_ : nullptr}),
        resolver_({.mac = port.mac(),
                   .own = config.address,
                   .prefix_bits = config.prefix_bits,
                   .gateway = config.gateway,
                   .vlan = port.vlan()},
                  config.waiting_packets) {
    limits_.max_packet_bytes = writer_.max_packet_bytes();
    limits_.overhead_bytes = writer_.overhead_bytes();
    limits_.burst = kBurst;
    limits_.virtual_payload = false;
    limits_.paths = kMaxPaths;
    limits_.keeps_payload_from = refers(port, config) ? config.zero_copy_from : 0;
    cleans_ = limits_.keeps_payload_from != 0 && port.reads_by_dma();
    if (shard == 0) resolver_.announce();
    waits_ = port.has_interrupts();
    interrupt_ = {port.id(), queue_, port.receive_file(queue_)};
    owns_queue_ = shard < port.queues();
    // Frames of several segments come from ports with the offload `scatter`, and from memif, where the other end
    // chooses the buffers.
    if (port.receives_segments()) linear_.resize(std::size_t{kBurst} * frame_limit_);
    if (shards == 1) return;
    int error = 0;
    run_on_service([&] {
      handover_ = rte_ring_create(name.c_str(), config.handover_packets, port.socket(), RING_F_SC_DEQ);
      error = rte_errno;
    });
    if (handover_ == nullptr) {
      throw RunError(fmt::format("DPDK has no memory for a ring of {} packets ({}); give it more",
                                 config.handover_packets, rte_strerror(error)));
    }
  }
  ~QueueIo() override {
    release();
    if (handover_ != nullptr) end_on_service([this] { rte_ring_free(handover_); });
  }
  QueueIo(const QueueIo&) = delete;
  QueueIo& operator=(const QueueIo&) = delete;

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  [[nodiscard]] const Address& address() const override { return address_; }
  [[nodiscard]] std::uint16_t queue() const override { return queue_; }
  [[nodiscard]] const PortIoCounters& counters() const override { return counters_; }
  [[nodiscard]] const NeighbourCounters& neighbours() const override { return resolver_.counters(); }
  [[nodiscard]] Nanos deadline() const override { return resolver_.deadline(); }
  [[nodiscard]] bool is_blocked() const override { return blocked_ || backlog_count_ != 0; }
  [[nodiscard]] std::uint64_t activity() const override {
    const PortIoCounters& c = counters_;
    return c.received_packets + c.sent_packets + c.taken_over + c.handed_over + c.neighbour_frames + c.waited;
  }

  std::optional<Wakeup> begin_waiting() override {
    if (!waits_) return std::nullopt;
    if (!owns_queue_) return Wakeup{};
    if (!interrupt_.begin()) return std::nullopt;
    return Wakeup{interrupt_.file(), interrupt_.needs_arming()};
  }
  void end_waiting() override {
    if (owns_queue_) interrupt_.end();
  }
  void arm() override { interrupt_.arm(); }
  void disarm() override { interrupt_.disarm(); }
  [[nodiscard]] std::span<PacketIo* const> feeders() const override { return feeders_; }
  /// Sets the PortIos that may receive packets for this shard: all PortIos of the host, or none if the port puts each
  /// packet into its shard's queue.
  void set_feeders(std::span<PacketIo* const> feeders) { feeders_ = feeders; }

  std::size_t receive(std::span<RxPacket> out) override {
    const Uncached uncached(cache_owner_.is_other());
    const Nanos now = clock_.now();
    blocked_ = false;
    if (backlog_count_ != 0) [[unlikely]]
      flush_backlog();
    const auto max = static_cast<std::uint16_t>(std::min<std::size_t>(out.size(), kBurst));
    std::size_t count = 0;
    // Bursts without packets for this shard are skipped, because returning 0 means that nothing more is pending.
    int bursts = 0;
    do {
      give_back();
      held_count_ = take_handed_over(max);
      const std::size_t handed = held_count_;
      held_count_ += receive_burst(port_, queue_, held_.data() + handed, static_cast<std::uint16_t>(max - handed));
      for (std::size_t i = 0; i < held_count_; ++i) count += accept(i, i < handed, out[count], now) ? 1U : 0U;
    } while (count == 0 && held_count_ != 0 && ++bursts < kMaxIdleBursts);
    counters_.received_packets += count;
    // Drivers free sent buffers only when they send more packets. Buffers that refer to the user's memory must not wait
    // for more packets, so the port is made to free these buffers from time to time.
    if (cleans_ && count == 0 && (++empty_ & 15) == 0) [[unlikely]]
      rte_eth_tx_done_cleanup(port_, queue_, 0);
    if (resolver_.is_due(now)) [[unlikely]]
      serve_neighbours(now);
    return count;
  }

  std::size_t send(std::span<const TxPacket> packets) override {
    const Uncached uncached(cache_owner_.is_other());
    if (backlog_count_ != 0 && !flush_backlog()) return 0;
    const std::size_t wanted = std::min<std::size_t>(packets.size(), kBurst);
    std::array<rte_mbuf*, kBurst> mbufs;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
    const std::size_t count = allocate_packets(pool_, mbufs.data(), wanted);
    if (count < wanted) [[unlikely]] {
      ++counters_.no_buffer;
      blocked_ = true;
    }
    const Nanos now = clock_.now();
    std::size_t ready = 0;
    for (std::size_t i = 0; i < count; ++i) {
      rte_mbuf* mbuf = mbufs[i];
      const TxPacket& packet = packets[i];
      if (!writer_.is_sendable(packet)) [[unlikely]] {
        ++counters_.unsendable;
        free_packets(&mbufs[i], 1);
        continue;
      }
      const auto& route = resolver_.route_to(*packet.destination, now);
      if (writer_.write(packet, route.mac, mbuf)) ++counters_.by_reference;
      if (route.state == Neighbours::State::known) [[likely]] {
        mbufs[ready++] = mbuf;
      } else if (route.state == Neighbours::State::asked && resolver_.wait(*packet.destination, mbuf)) {
        ++counters_.waited;
      } else {
        ++(route.state == Neighbours::State::asked ? counters_.waiting_full : counters_.unreachable);
        free_packets(&mbuf, 1);
      }
    }
    transmit(mbufs.data(), ready);
    if (resolver_.is_due()) [[unlikely]]
      serve_neighbours(now);
    return count;
  }

  bool resolve(const Address& destination) override {
    const Uncached uncached(cache_owner_.is_other());
    const Nanos now = clock_.now();
    const bool known = resolver_.route_to(destination, now).state == Neighbours::State::known;
    serve_neighbours(now);
    return known;
  }

  void release() override {
    give_back();
    free_packets(backlog_.data(), backlog_count_);
    backlog_count_ = 0;
    resolver_.clear([](rte_mbuf* mbuf) { free_packets(&mbuf, 1); });
    void* packet = nullptr;
    while (handover_ != nullptr && rte_ring_dequeue(handover_, &packet) == 0) {
      rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    }
  }

 private:
  // Receiving.

  void give_back() {
    if (held_count_ == 0) return;
    for (std::size_t i = 0; i < held_count_; ++i)
      if (held_[i] != nullptr) hand_over(held_[i]->pool);
    if (held_from_others_ != 0 && feeders_.empty()) [[unlikely]]
      give_back_to_others();
    held_from_others_ = 0;
    // This call skips null entries, whose packets were handed to other shards.
    rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(held_count_));
    held_count_ = 0;
  }

  /// Frees packets that other shards have handed over. The packets come from the pools of other queues. Another thread
  /// may own the cache of such a pool, so the packets must not go into this thread's cache.
  void give_back_to_others() {
    const Uncached uncached(true);
    for (std::size_t i = 0; i < held_from_others_; ++i) rte_pktmbuf_free(std::exchange(held_[i], nullptr));
  }

  std::size_t take_handed_over(std::uint16_t max) {
    if (handover_ == nullptr) return 0;
    std::array<void*, kBurst> packets;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
    unsigned count = 0;
    {
      const Unwatched ring;
      if (rte_ring_empty(handover_) == 0) count = rte_ring_sc_dequeue_burst(handover_, packets.data(), max, nullptr);
    }
    if (count == 0) return 0;
    take_over(handover_);
    for (unsigned i = 0; i < count; ++i) held_[i] = static_cast<rte_mbuf*>(packets[i]);
    held_from_others_ = count;
    counters_.taken_over += count;
    return count;
  }

  /// Processes the packet in held_[i]. Returns whether it is for the transport. A packet that is not for the transport
  /// has then been handed over, handled by address resolution, or counted as rejected.
  bool accept(std::size_t i, bool handed_over, RxPacket& out, Nanos now) {
    ReadFrame frame;
    const encap::Reject reject = check(i, frame);
    if (reject == encap::Reject::none) [[likely]] {
      const unsigned shard = unsigned{frame.headers.destination.port} - base_port_;
      if (shard == shard_) [[likely]] {
        out = packet_of(frame);
        return true;
      }
      if (shard < all_.size()) {
        hand_to(shard, held_[i]);
        held_[i] = nullptr;
        return false;
      }
    } else if (reject == encap::Reject::not_ip || reject == encap::Reject::not_udp) {
      if (resolver_.receive(frame_of(held_[i]), now)) {
        ++counters_.neighbour_frames;
        if (!handed_over && handover_ != nullptr && is_news(frame_of(held_[i]), vlan_)) hand_to_all(held_[i]);
        return false;
      }
    }
    ++counters_.rejected[static_cast<std::size_t>(reject == encap::Reject::none ? encap::Reject::not_for_us : reject)];
    return false;
  }

  encap::Reject check(std::size_t i, ReadFrame& frame) {
    rte_mbuf* const mbuf = held_[i];
    if (is_oversized(mbuf, mtu_)) return encap::Reject::oversized;
    std::span<const std::byte> bytes = frame_of(mbuf);
    std::span<const std::byte> tail;
    if (has_tail(mbuf)) {
      tail = frame_of(mbuf->next);
    } else if (mbuf->nb_segs != 1) [[unlikely]] {
      if (linear_.empty()) return encap::Reject::oversized;
      std::byte* to = linear_.data() + i * frame_limit_;
      bytes = {to, mbuf->pkt_len};
      for (rte_mbuf* segment = mbuf; segment != nullptr; segment = segment->next) {
        std::memcpy(to, rte_pktmbuf_mtod(segment, const std::byte*), segment->data_len);
        to += segment->data_len;
      }
      ++counters_.linearised;
    }
    // Software verifies a checksum unless the port reports success. If the port reports "bad", software finds the
    // reason. If the port reports "unknown", software decides. For UDP, the port's result "none" also counts as
    // success. It means that the data are intact but the checksum was never completed, for example from another virtual
    // machine of the same host (virtio).
    const std::uint64_t flags = mbuf->ol_flags;
    const std::uint64_t udp = flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
    const bool ip_good =
        offloads_.receive_ip_checksum && (flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD;
    const bool udp_good =
        offloads_.receive_udp_checksum && (udp == RTE_MBUF_F_RX_L4_CKSUM_GOOD || udp == RTE_MBUF_F_RX_L4_CKSUM_NONE);
    const encap::Reject reject = read_frame(bytes, tail, udp_good ? encap::VerifyUdp::no : encap::VerifyUdp::yes,
                                            ip_good ? encap::VerifyIp::no : encap::VerifyIp::yes, dscp_, frame);
    if (reject != encap::Reject::none) return reject;
    const encap::Headers& headers = frame.headers;
    return same_ip(headers.destination, address_) && headers.destination_mac == mac_ && headers.vlan == vlan_
               ? encap::Reject::none
               : encap::Reject::not_for_us;
  }

  void hand_to(std::size_t shard, rte_mbuf* packet);
  void hand_to_all(rte_mbuf* news);

  // Sending.

  /// Sends `count` packets, at most a burst. Packets that the port does not accept are stored for later.
  void transmit(rte_mbuf** mbufs, std::size_t count) {
    if (count == 0) return;
    std::size_t sent = 0;
    if (backlog_count_ == 0) sent = send_burst(port_, queue_, mbufs, static_cast<std::uint16_t>(count));
    counters_.sent_packets += sent;
    if (sent == count) [[likely]]
      return;
    ++counters_.port_full;
    const std::size_t kept = std::min(count - sent, backlog_.size() - backlog_count_);
    std::copy_n(mbufs + sent, kept, backlog_.data() + backlog_count_);
    backlog_count_ += kept;
    free_packets(mbufs + sent + kept, count - sent - kept);
  }

  bool flush_backlog() {
    const std::size_t sent = send_burst(port_, queue_, backlog_.data(), static_cast<std::uint16_t>(backlog_count_));
    counters_.sent_packets += sent;
    std::copy(backlog_.begin() + static_cast<std::ptrdiff_t>(sent),
              backlog_.begin() + static_cast<std::ptrdiff_t>(backlog_count_), backlog_.begin());
    backlog_count_ -= sent;
    return backlog_count_ == 0;
  }

  // Neighbours.

  /// Sends the ARP and Neighbour Discovery frames that are due, and the packets whose neighbour has been resolved.
  void serve_neighbours(Nanos now) {
    for (;;) {
      rte_mbuf* mbuf = nullptr;
      if (allocate_packets(pool_, &mbuf, 1) != 1) {
        resolver_.postpone();
        return;
      }
      const std::size_t size = resolver_.frame({rte_pktmbuf_mtod(mbuf, std::byte*), Neighbours::kLongestFrame}, now);
      if (size == 0) {
        free_packets(&mbuf, 1);
        break;
      }
      mbuf->data_len = static_cast<std::uint16_t>(size);
      mbuf->pkt_len = mbuf->data_len;
      // A dropped frame has the same effect as a loss on the way.
      if (send_burst(port_, queue_, &mbuf, 1) != 1) free_packets(&mbuf, 1);
    }
    resolver_.flush(
        now,
        [&](rte_mbuf* mbuf, const encap::MacAddress& mac) {
          std::memcpy(rte_pktmbuf_mtod(mbuf, std::byte*), mac.data(), mac.size());
          transmit(&mbuf, 1);
        },
        [&](rte_mbuf* mbuf) {
          ++counters_.unreachable;
          free_packets(&mbuf, 1);
        });
  }

  const Clock& clock_;
  const std::uint16_t port_;
  const std::uint16_t queue_;
  const std::uint16_t shard_;
  const std::uint16_t vlan_;
  const std::uint16_t base_port_;
  const std::uint32_t mtu_;
  const std::uint32_t frame_limit_;  ///< maximum frame, with a VLAN tag
  const Port::OffloadsInUse offloads_;
  const encap::DscpMap dscp_;
  const encap::MacAddress mac_;
  const Queues& all_;
  rte_mempool* const pool_;
  CacheOwner own_cache_owner_;
  CacheOwner& cache_owner_;  ///< the owner of the cache in the queue's pool
  rte_ring* handover_ = nullptr;
  Address address_;
  Limits limits_;
  RegisteredRanges registered_;
  FrameWriter writer_;
  PortIoCounters counters_;
  Resolver<rte_mbuf*> resolver_;
  std::array<rte_mbuf*, kBurst> held_{};
  std::size_t held_count_ = 0;
  std::size_t held_from_others_ = 0;  ///< number of entries at the beginning of held_ that other shards handed over
  QueueInterrupt interrupt_;
  std::span<PacketIo* const> feeders_;
  std::array<rte_mbuf*, kBurst> backlog_{};
  std::size_t backlog_count_ = 0;
  /// Space for one frame for each entry of held_; empty if no frame has several segments.
  std::vector<std::byte> linear_;
  unsigned empty_ = 0;       ///< number of empty receive bursts
  bool cleans_ = false;      ///< whether to make the port free sent buffers that refer to payloads
  bool waits_ = false;       ///< whether the port can signal packets
  bool owns_queue_ = false;  ///< whether this is the first shard on its queue
  bool blocked_ = false;
};

void QueueIo::hand_to(std::size_t shard, rte_mbuf* packet) {
  rte_ring* const ring = all_[shard]->handover_;
  hand_over(ring);
  const auto enqueue = [&] {
    const Unwatched unwatched;
    return rte_ring_mp_enqueue(ring, packet) == 0;
  };
  if (enqueue()) {
    ++counters_.handed_over;
  } else {
    ++counters_.handover_full;
    free_packets(&packet, 1);
  }
}

void QueueIo::hand_to_all(rte_mbuf* news) {
  // All shards share one buffer. A copy for each shard could exhaust the pool, because other hosts control the rate of
  // announcements.
  for (std::size_t shard = 0; shard < all_.size(); ++shard) {
    if (shard == shard_) continue;
    rte_pktmbuf_refcnt_update(news, 1);
    hand_to(shard, news);
  }
}

/// Adds a rule that puts packets for the UDP port of shard `queue` into queue `queue`. Returns null if the port does
/// not support the rule.
rte_flow* steer(const Port& port, const Address& address, std::uint16_t queue) {
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rte_flow_item_udp udp{};
  rte_flow_item_udp mask{};
  udp.hdr.dst_port = rte_cpu_to_be_16(static_cast<std::uint16_t>(address.port + queue));
  mask.hdr.dst_port = 0xFFFF;
  std::array<rte_flow_item, 4> pattern{};
  pattern[0].type = RTE_FLOW_ITEM_TYPE_ETH;
  pattern[1].type = address.is_v4() ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6;
  pattern[2].type = RTE_FLOW_ITEM_TYPE_UDP;
  pattern[2].spec = &udp;
  pattern[2].mask = &mask;
  pattern[3].type = RTE_FLOW_ITEM_TYPE_END;
  const rte_flow_action_queue target{queue};
  std::array<rte_flow_action, 2> actions{};
  actions[0].type = RTE_FLOW_ACTION_TYPE_QUEUE;
  actions[0].conf = &target;
  actions[1].type = RTE_FLOW_ACTION_TYPE_END;
  rte_flow_error error{};
  return rte_flow_create(port.id(), &attributes, pattern.data(), actions.data(), &error);
}

}  // namespace

struct PortHost::Impl {
  Impl(const Eal& eal, const Port& port_, const PortHostConfig& config) : port(port_) {
    const std::uint16_t shards = config.shards == 0 ? port.queues() : config.shards;
    if (shards < port.queues() || shards > kMaxShards) {
      throw InputError(
          fmt::format("{} shards on {} queues; give {} to {}", shards, port.queues(), port.queues(), kMaxShards));
    }
    // A host sends each frame from one buffer, except for payloads by reference.
    const std::uint32_t data_bytes = rte_pktmbuf_data_room_size(port.pool(0)) - RTE_PKTMBUF_HEADROOM;
    if (data_bytes < port.frame_bytes()) {
      throw InputError(
          fmt::format("port {}: buffers of {} bytes can't hold a host's frames of {}; leave their length out",
                      in_quotes(port.name()), data_bytes, port.frame_bytes()));
    }
    if (config.address.port == 0 || config.address.port + shards - 1 > 65535) {
      throw InputError(fmt::format("UDP port {} for the first of {} shards; give 1 to {}", config.address.port, shards,
                                   65536 - shards));
    }
    if (config.waiting_packets < 1 || config.waiting_packets > 65536) {
      throw InputError(fmt::format("{} packets waiting for neighbours; give 1 to 65536", config.waiting_packets));
    }
    if (config.handover_packets < 64 || config.handover_packets > 65536 ||
        !std::has_single_bit(config.handover_packets)) {
      throw InputError(fmt::format("rings of {} packets between shards; give a power of two from 64 to 65536",
                                   config.handover_packets));
    }
    static std::atomic<unsigned> instances{0};
    const unsigned instance = instances++;
    queues.reserve(shards);
    for (std::uint16_t shard = 0; shard < shards; ++shard) {
      queues.push_back(std::make_unique<QueueIo>(eal, port, config, shard, shards, queues,
                                                 fmt::format("hand{}q{}", instance, shard)));
    }
    run_on_service([&] {
      for (std::uint16_t queue = 0; queue < port.queues() && port.queues() > 1 && shards == port.queues(); ++queue) {
        rte_flow* const rule = steer(port, config.address, queue);
        if (rule == nullptr) break;
        rules.push_back(rule);
      }
    });
    if (is_steered()) return;
    for (const auto& queue : queues) all.push_back(queue.get());
    for (const auto& queue : queues) queue->set_feeders(all);
  }
  ~Impl() {
    end_on_service([this] {
      rte_flow_error error{};
      for (rte_flow* const rule : rules) rte_flow_destroy(port.id(), rule, &error);
    });
    // Handed-over packets must be freed before any of the pools is destroyed.
    for (const auto& queue : queues) queue->release();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] bool is_steered() const { return queues.size() == 1 || rules.size() == queues.size(); }

  const Port& port;
  Queues queues;
  std::vector<PacketIo*> all;
  std::vector<rte_flow*> rules;
};

PortHost::PortHost(const Eal& eal, const Port& port, const PortHostConfig& config)
    : impl_(std::make_unique<Impl>(eal, port, config)) {}
PortHost::~PortHost() = default;

const Port& PortHost::port() const { return impl_->port; }
std::uint16_t PortHost::shards() const { return static_cast<std::uint16_t>(impl_->queues.size()); }
PortIo& PortHost::io(std::uint16_t shard) const { return *impl_->queues.at(shard); }
bool PortHost::is_steered() const { return impl_->is_steered(); }

}  // namespace mltcp::dpdk
