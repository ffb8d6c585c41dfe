// Packet pools, rings and ring ports; see ring_port.h.
#include "mltcp/dpdk/ring_port.h"

#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_ring.h>

#include <algorithm>
#include <array>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/service.h"

namespace mltcp::dpdk {
namespace {

constexpr std::uint32_t kCache = 256;  ///< size of the per-core buffer caches

constexpr std::size_t kPage = 4096;

/// Returns the NUMA node of the calling thread, or of DPDK's main core if the thread is not bound to one node.
int socket_id() {
  auto socket = static_cast<int>(rte_socket_id());
  if (socket < 0) socket = static_cast<int>(rte_lcore_to_socket_id(rte_get_main_lcore()));
  return socket < 0 ? 0 : socket;
}

std::uint16_t data_bytes(std::uint32_t frame_bytes) {
  return static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + (frame_bytes + 63) / 64 * 64);
}

}  // namespace

std::uint32_t max_ports() { return RTE_MAX_ETHPORTS; }

std::uint32_t free_ports() { return RTE_MAX_ETHPORTS - rte_eth_dev_count_total(); }

PacketPool::PacketPool(const std::string& name, std::uint32_t count, std::uint32_t frame_bytes, int socket)
    : count_(count) {
  const std::uint32_t cache = std::min({kCache, count / 4, std::uint32_t{RTE_MEMPOOL_CACHE_MAX_SIZE}});
  const int where = socket < 0 ? socket_id() : socket;
  int error = 0;
  run_on_service([&] {
    pool_ = rte_pktmbuf_pool_create(name.c_str(), count, cache, 0, data_bytes(frame_bytes), where);
    error = rte_errno;
  });
  if (pool_ == nullptr) {
    const auto missing = static_cast<std::uint32_t>((memory_bytes(count, frame_bytes) >> 20) + 8);
    throw MemoryError(fmt::format("DPDK has no memory for {} packet buffers of {} bytes ({}); start it with {} MB more",
                                  count, frame_bytes, rte_strerror(error), missing),
                      missing);
  }
}

PacketPool::PacketPool(const std::string& name, std::uint32_t count, Pages pages, int socket) : count_(count) {
  const int where = socket < 0 ? socket_id() : socket;
  if (on_service([&] { return make_pages(name, where); })) return;
  const auto missing = static_cast<std::uint32_t>((memory_bytes(count, pages) >> 20) + 8);
  throw MemoryError(
      fmt::format("DPDK has no memory for {} packet buffers of a page each; start it with {} MB more", count, missing),
      missing);
}

bool PacketPool::make_pages(const std::string& name, int where) {
  const std::uint32_t cache = std::min({kCache, count_ / 4, std::uint32_t{RTE_MEMPOOL_CACHE_MAX_SIZE}});
  constexpr unsigned kFlags = RTE_MEMPOOL_F_NO_SPREAD;
  rte_mempool_objsz overhead{};
  rte_mempool_calc_obj_size(0, kFlags, &overhead);
  const auto element = static_cast<unsigned>(kPage - overhead.header_size - overhead.trailer_size);
  pool_ =
      rte_mempool_create_empty(name.c_str(), count_, element, cache, sizeof(rte_pktmbuf_pool_private), where, kFlags);
  const rte_memzone* const memory =
      pool_ == nullptr ? nullptr : rte_memzone_reserve_aligned((name + "m").c_str(), count_ * kPage, where, 0, kPage);
  rte_pktmbuf_pool_private layout{};
  layout.mbuf_data_room_size = static_cast<std::uint16_t>(element - sizeof(rte_mbuf));
  int error = -ENOMEM;
  if (memory != nullptr) {
    rte_pktmbuf_pool_init(pool_, &layout);
    const auto free = [](rte_mempool_memhdr* /*chunk*/, void* zone) {
      rte_memzone_free(static_cast<const rte_memzone*>(zone));
    };
    // DPDK passes `memory`, the last argument, back to `free`.
    error = rte_mempool_populate_iova(pool_, static_cast<char*>(memory->addr), memory->iova, memory->len, free,
                                      const_cast<rte_memzone*>(memory));
    if (error < 0) rte_memzone_free(memory);
  }
  if (error != static_cast<int>(count_)) {
    rte_mempool_free(pool_);
    return false;
  }
  rte_mempool_obj_iter(pool_, rte_pktmbuf_init, nullptr);
  return true;
}

PacketPool::~PacketPool() {
  end_on_service([this] { rte_mempool_free(pool_); });
}

std::uint32_t PacketPool::in_use() const { return rte_mempool_in_use_count(pool_); }

std::uint64_t PacketPool::memory_bytes(std::uint32_t count, std::uint32_t frame_bytes) {
  // The 192 bytes cover an element's header, trailer, slot in the pool's ring, and padding that spreads elements over
  // memory channels.
  return std::uint64_t{count} * (sizeof(rte_mbuf) + data_bytes(frame_bytes) + 192) + (std::uint64_t{1} << 20);
}

std::uint64_t PacketPool::memory_bytes(std::uint32_t count, Pages /*pages*/) {
  return std::uint64_t{count} * (kPage + sizeof(void*)) + (std::uint64_t{1} << 20);
}

PacketRing::PacketRing(const std::string& name, std::uint32_t slots, Consumers consumers) {
  const int socket = socket_id();
  int error = 0;
  run_on_service([&] {
    ring_ = rte_ring_create(name.c_str(), slots, socket,
                            RING_F_SP_ENQ | (consumers == Consumers::one ? unsigned{RING_F_SC_DEQ} : 0U));
    error = rte_errno;
  });
  if (ring_ == nullptr) {
    throw RunError(
        fmt::format("DPDK can't make a ring of {} slots ({}); give it more memory", slots, rte_strerror(error)));
  }
}

PacketRing::~PacketRing() {
  drain();
  end_on_service([this] { rte_ring_free(ring_); });
}

bool PacketRing::is_empty() const { return rte_ring_empty(ring_) != 0; }

void PacketRing::drain() {
  void* packet = nullptr;
  while (rte_ring_dequeue(ring_, &packet) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
}

RingPort::RingPort(const std::string& name, const PacketRing& receive, const PacketRing& transmit,
                   const PacketPool& pool)
    : device_("net_ring_" + name) {
  const auto socket = static_cast<unsigned>(socket_id());
  run_on_service([&] { open(name, receive, transmit, pool, socket); });
}

void RingPort::open(const std::string& name, const PacketRing& receive, const PacketRing& transmit,
                    const PacketPool& pool, unsigned socket) {
  const std::array<rte_ring*, 1> rx{receive.get()};
  const std::array<rte_ring*, 1> tx{transmit.get()};
  const int port = rte_eth_from_rings(name.c_str(), rx.data(), 1, tx.data(), 1, socket);
  if (port < 0) {
    throw RunError(fmt::format("DPDK can't make ring port {} ({}); it allows {} ports in all, of which {} are free",
                               name, rte_strerror(rte_errno), max_ports(), free_ports()));
  }
  id_ = static_cast<std::uint16_t>(port);
  const rte_eth_conf config{};
  int error = rte_eth_dev_configure(id_, 1, 1, &config);
  if (error == 0) error = rte_eth_rx_queue_setup(id_, 0, 512, socket, nullptr, pool.get());
  if (error == 0) error = rte_eth_tx_queue_setup(id_, 0, 512, socket, nullptr);
  if (error == 0) error = rte_eth_dev_start(id_);
  if (error != 0) {
    rte_eth_dev_close(id_);
    rte_vdev_uninit(device_.c_str());
    throw RunError(fmt::format("DPDK can't start ring port {} ({}); `mltcp doctor` shows whether ring ports work here",
                               name, rte_strerror(-error)));
  }
}

RingPort::~RingPort() {
  end_on_service([this] {
    rte_eth_dev_stop(id_);
    rte_eth_dev_close(id_);
    rte_vdev_uninit(device_.c_str());
  });
}

}  // namespace mltcp::dpdk
