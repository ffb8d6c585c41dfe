// Hosts on real ports for tests. Each host runs in a separate process.
#pragma once

#include "mltcp/dpdk/port.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>

#include "../random_bytes.h"
#include "mltcp/base/error.h"
#include "mltcp/dpdk/launched_loop.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/shard.h"
#include "net_fixture.h"

namespace mltcp::dpdk::port_stations {

using namespace mltcp::literals;
using testing::HasSubstr;

inline constexpr Nanos kPatience = 12_s;

inline std::vector<std::byte> message(std::size_t number, std::size_t size) { return random_bytes(size, number + 1); }

inline Address host(std::uint8_t number, bool v6 = false) {
  Address address = Address::v4(0x0A090000U + number, 62400);
  if (!v6) return address;
  address.ip = {0xFD, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
  return address;
}

/// Sends `count` messages to a host and records how the connection ended.
class Client final : public Pollable {
 public:
  Client(PortIo& io, const Address& to, std::size_t count, std::size_t size, ConnectionConfig config = {})
      : shard_(io, {.seed = 7}), to_(to), config_(std::move(config)), count_(count), size_(size) {}

  Nanos poll(Nanos now) override {
    if (each_poll) each_poll();
    if (connection_ == 0) {
      connection_ = shard_.connect(to_, config_, now);
      for (std::size_t i = 0; i < count_; ++i) messages_.push_back(message(i, size_));
      for (std::size_t i = 0; i < count_; ++i) {
        if (shard_.send(connection_, messages_[i], i) != PostResult::ok) failed = true;
      }
    }
    const Nanos due = shard_.poll(now);
    std::array<Completion, 64> completions;
    for (std::size_t i = 0, n = shard_.take_completions(completions); i < n; ++i) {
      if (completions[i].kind == Completion::Kind::sent) {
        ++(completions[i].status == Status::ok ? sent : unsent);
        last_status = completions[i].status;
      }
      if (completions[i].kind == Completion::Kind::closed) closed = true;
    }
    return due;
  }
  [[nodiscard]] bool is_done() const { return sent + unsent == count_; }

  std::function<void()> each_poll;
  std::size_t sent = 0;
  std::size_t unsent = 0;
  Status last_status = Status::ok;
  bool closed = false;
  bool failed = false;

 private:
  Shard shard_;
  Address to_;
  ConnectionConfig config_;
  std::size_t count_;
  std::size_t size_;
  std::vector<std::vector<std::byte>> messages_;
  ConnectionId connection_ = 0;
};

/// Receives `count` messages and compares each with the message that was sent.
class Server final : public Pollable {
 public:
  Server(PortIo& io, std::size_t count, std::size_t size) : shard_(io, {.seed = 8}), count_(count), size_(size) {
    shard_.listen({});
  }

  Nanos poll(Nanos now) override {
    const Nanos due = shard_.poll(now);
    std::array<Completion, 64> completions;
    for (std::size_t i = 0, n = shard_.take_completions(completions); i < n; ++i) {
      const Completion& done = completions[i];
      if (done.kind == Completion::Kind::accepted) {
        began = now;
        buffers_.assign(count_, std::vector<std::byte>(size_));
        for (std::size_t k = 0; k < count_; ++k) shard_.receive(done.connection, buffers_[k], k);
        return now;
      }
      if (done.kind != Completion::Kind::received || done.status != Status::ok) continue;
      if (buffers_[done.tag] != message(done.tag, size_)) ++wrong;
      ++received;
      ended = now;
    }
    return due;
  }
  [[nodiscard]] bool is_done() const { return received == count_; }
  [[nodiscard]] const ShardStats& stats() const { return shard_.stats(); }
  [[nodiscard]] double gbps() const {
    return static_cast<double>(received * size_) * 8 / static_cast<double>((ended - began).count);
  }

  std::size_t received = 0;
  std::size_t wrong = 0;
  Nanos began;
  Nanos ended;

 private:
  Shard shard_;
  std::size_t count_;
  std::size_t size_;
  std::vector<std::vector<std::byte>> buffers_;
};

struct Setting {
  std::string kind = "af_packet";
  bool v6 = false;
  std::uint16_t vlan = 0;
  std::uint16_t queues = 1;
  std::uint32_t mtu = 0;
  Idle idle = Idle::sleep;
  bool interrupts = false;
  std::string cores{};
};

/// An Eal, a port, and a host on the port, at one end of the veth pair.
struct Station {
  Station(const Setting& setting, const std::string& device, std::uint8_t number)
      : eal(small_eal(96, setting.cores)),
        port(eal, {.device = setting.kind + ":" + device,
                   .mtu = setting.mtu,
                   .queues = setting.queues,
                   .interrupts = setting.interrupts,
                   .vlan = setting.vlan}),
        place(eal, port, {.address = host(number, setting.v6)}),
        loop(eal.time(), setting.idle) {}

  void attach(Pollable& pollable, std::uint16_t queue = 0) { loop.attach(place.io(queue), pollable); }
  /// Runs the loop until `done()` returns true, and then until the other process has finished as well. Returns whether
  /// `done()` returned true in time.
  bool run(const Channel& other, const std::function<bool()>& done) {
    const bool ended = loop.run(loop.now() + kPatience, done);
    other.tell('d');
    loop.run(loop.now() + kPatience, [&] { return other.is_called(); });
    return ended;
  }

  Eal eal;
  Port port;
  PortHost place;
  PollLoop loop;
};

/// Returns "skip: ..." if the kind of port needs AF_XDP and AF_XDP is not available, or an empty text.
inline std::string skip_without(const std::string& kind) {
  if (kind != "af_xdp") return "";
  const int file = socket(AF_XDP, SOCK_RAW, 0);
  if (file < 0) return "skip: this kernel or user has no AF_XDP";
  close(file);
  return "";
}

#define EXPECT_PLAYED(pair)                                                     \
  do {                                                                          \
    const Pair played = (pair);                                                 \
    if (played.skipped()) GTEST_SKIP() << played.left << " / " << played.right; \
    EXPECT_EQ(played.left, "") << "left";                                       \
    EXPECT_EQ(played.right, "") << "right";                                     \
  } while (false)

/// Keeps this end of the veth pair until the other end has finished.
inline std::string idle_part(const Channel& other) {
  [[maybe_unused]] const bool heard = other.receives('e');
  return "";
}

}  // namespace mltcp::dpdk::port_stations
