// Tests a live port against hostile hosts, which forge the UDP datagrams that ask for queue pairs. The datagrams pass
// over the loopback, with source addresses in 127.0.0.0/8. During the attack, an honest host exchanges packets and the
// port finds new hosts.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../attack/attacker.h"
#include "fake_device.h"
#include "mltcp/base/clock.h"
#include "mltcp/base/random.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/rdma/verbs_io.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma::attack_test {
namespace {

using namespace mltcp::literals;
using attack::Attacker;
using attack::ByteVector;

constexpr std::uint16_t kPort = 27650;
constexpr Nanos kPatience = 20_s;

struct Host {
  Host(FakeFabric& fabric, std::uint32_t ip) : address(Address::v4(ip, kPort)) {
    Address plain = address;
    plain.port = 0;
    std::string text = to_text(plain);
    text.resize(text.find(':'));
    auto made = std::make_unique<FakeDevice>(fabric, text);
    device = made.get();
    datapath = make_datapath({.device = "verbs:fake0"}, std::move(made));
    HostPlace place;
    place.address = address;
    datapath->take_place(place);
  }
  VerbsIo& io() { return dynamic_cast<VerbsIo&>(datapath->io(0)); }

  Address address;
  FakeDevice* device = nullptr;
  std::unique_ptr<HostDatapath> datapath;
};

ByteVector question(std::uint64_t nonce) {
  ByteVector bytes(Resolution::kDatagramBytes);
  const char start[] = {'M', 'L', 'V', 'B', 1, 1};
  std::memcpy(bytes.data(), start, sizeof start);
  std::memcpy(bytes.data() + 8, &nonce, sizeof nonce);
  return bytes;
}

ByteVector answer(std::uint64_t nonce, std::uint8_t queue) {
  ByteVector bytes = question(nonce);
  bytes[5] = std::byte{2};
  bytes[6] = std::byte{4};  // 1024
  bytes[19] = std::byte{queue};
  bytes[23] = std::byte{1};
  return bytes;
}

/// Sends datagrams with forged source addresses. works() returns whether this process may forge addresses.
class Forger {
 public:
  Forger() : file_(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)) {}
  ~Forger() {
    if (file_ >= 0) close(file_);
  }
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;
  [[nodiscard]] bool works() const { return file_ >= 0; }

  void send(const Address& from, const Address& to, const ByteVector& bytes) const {
    struct {
      iphdr ip{};
      udphdr udp{};
      std::array<std::byte, 64> payload{};
    } packet;
    packet.ip.version = 4;
    packet.ip.ihl = 5;
    packet.ip.ttl = 64;
    packet.ip.protocol = IPPROTO_UDP;
    packet.ip.saddr = htonl(from.v4_ip());
    packet.ip.daddr = htonl(to.v4_ip());
    packet.udp.source = htons(from.port);
    packet.udp.dest = htons(to.port);
    packet.udp.len = htons(static_cast<std::uint16_t>(sizeof packet.udp + bytes.size()));
    std::memcpy(packet.payload.data(), bytes.data(), bytes.size());
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = packet.ip.daddr;
    sendto(file_, &packet, sizeof packet.ip + sizeof packet.udp + bytes.size(), 0,
           reinterpret_cast<const sockaddr*>(&name), sizeof name);
  }

 private:
  int file_;
};

/// Calls `attack` repeatedly on its own thread.
class Flood {
 public:
  explicit Flood(std::function<void()> attack)
      : thread_([this, attack = std::move(attack)] {
          while (!stops_) attack(), ++rounds_;
        }) {}
  ~Flood() {
    stops_ = true;
    thread_.join();
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

 private:
  std::atomic<bool> stops_{false};
  std::atomic<std::uint64_t> rounds_{0};
  std::thread thread_;
};

/// Returns whether a packet from `from` reaches `to`. Sends it repeatedly, as a transport would.
bool reaches(Host& from, Host& to, const std::string& text = "text") {
  const TxPacket packet{.destination = &to.address, .header = std::as_bytes(std::span(text)), .payload = {}};
  std::array<RxPacket, 64> packets;
  for (const Nanos end = monotonic_now() + kPatience; monotonic_now() < end; std::this_thread::yield()) {
    from.io().send({&packet, 1});
    from.io().receive(packets);
    const std::size_t count = to.io().receive(packets);
    for (std::size_t i = 0; i < count; ++i)
      if (packets[i].source == from.address && packets[i].bytes.size() == text.size()) return true;
  }
  return false;
}

/// Expects that during the attack, hosts that already know each other still communicate, and that new hosts are found.
void expect_to_bear(const char* what,
                    const std::function<std::function<void()>(Host& victim, Host& friendly)>& attack) {
  FakeFabric fabric;
  Host victim(fabric, 0x7F000001);
  Host friendly(fabric, 0x7F000002);
  ASSERT_TRUE(reaches(friendly, victim) && reaches(victim, friendly)) << what;
  Flood flood(attack(victim, friendly));
  for (std::uint32_t i = 0; i < 5; ++i) {
    Host late(fabric, 0x7F000010 + i);
    EXPECT_TRUE(reaches(late, victim)) << what << ": who asks";
    EXPECT_TRUE(reaches(victim, late)) << what << ": who is asked";
    EXPECT_TRUE(reaches(friendly, victim) && reaches(victim, friendly)) << what << ": who was known";
  }
  fmt::print("{}: {} rounds\n", what, flood.rounds());
  EXPECT_GT(flood.rounds(), 0u);
}

TEST(VerbsAttack, a_flood_of_questions__leaves_others_their_answers_and_is_answered_by_less) {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  const Nanos start = monotonic_now();
  expect_to_bear("questions of one host", [&](Host& victim, Host&) {
    return [&, attacker = std::make_shared<Attacker>(0x7F000066), nonce = std::uint64_t{0}]() mutable {
      attacker->send(victim.address, question(++nonce));
      while (!attacker->receive().empty()) {
      }
      received = attacker->received_bytes;
      sent = attacker->sent_bytes;
    };
  });
  const double seconds = (monotonic_now() - start).seconds();
  EXPECT_LE(received, sent);
  EXPECT_LE(static_cast<double>(received), (seconds + 1) * 1024 * Resolution::kDatagramBytes);
  EXPECT_GT(received, 0u);
}

TEST(VerbsAttack, questions_from_hundreds_of_hosts__leave_others_their_answers) {
  expect_to_bear("questions of 200 hosts", [](Host& victim, Host&) {
    auto attackers = std::make_shared<std::vector<std::unique_ptr<Attacker>>>();
    for (std::uint32_t i = 0; i < 200; ++i) attackers->push_back(std::make_unique<Attacker>(0x7F010000 + i));
    return [&victim, attackers, nonce = std::uint64_t{0}]() mutable {
      (*attackers)[nonce % attackers->size()]->send(victim.address, question(nonce));
      ++nonce;
    };
  });
}

TEST(VerbsAttack, datagrams_of_any_bytes_and_lengths__are_dropped) {
  expect_to_bear("any bytes", [](Host& victim, Host&) {
    return [&victim, attacker = std::make_shared<Attacker>(0x7F000066), random = Random(5)]() mutable {
      ByteVector bytes = random.below(2) == 0 ? answer(random.next(), 9) : question(random.next());
      for (std::uint64_t changes = random.below(8); changes > 0; --changes)
        bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
      if (random.below(4) == 0) bytes.resize(random.below(bytes.size()));
      if (random.below(64) == 0) bytes.resize(random.below(65'000));
      attacker->send(victim.address, bytes);
    };
  });
}

TEST(VerbsAttack, answers_forged_in_a_peers_name__are_rejected) {
  if (const Forger forger; !forger.works()) GTEST_SKIP() << "this user may not send raw IP packets";
  FakeFabric fabric;
  Host victim(fabric, 0x7F000001);
  Host friendly(fabric, 0x7F000002);
  ASSERT_TRUE(reaches(victim, friendly) && reaches(friendly, victim));
  const std::uint32_t right = friendly.io().own_queue().number;
  std::array<RxPacket, 64> packets;
  {
    Flood flood([&, forger = std::make_shared<Forger>(), random = Random(5)]() mutable {
      forger->send(friendly.address, victim.address, answer(random.next(), 9));
    });
    // Sends for 3.5 s. The victim asks once a second, so forged answers arrive while the victim waits for the right
    // answer.
    const std::string text = "text";
    const TxPacket packet{.destination = &friendly.address, .header = std::as_bytes(std::span(text)), .payload = {}};
    std::uint64_t sent = 0;
    std::uint64_t arrived = 0;
    for (const Nanos end = monotonic_now() + 3500_ms; monotonic_now() < end; std::this_thread::yield()) {
      if (sent - arrived < 64) sent += victim.io().send({&packet, 1});
      victim.io().receive(packets);
      arrived += friendly.io().receive(packets);
    }
    for (const Nanos end = monotonic_now() + kPatience; arrived < sent && monotonic_now() < end;)
      arrived += friendly.io().receive(packets);
    EXPECT_EQ(arrived, sent) << "none went elsewhere";
    fmt::print("{} forged answers\n", flood.rounds());
    EXPECT_GT(flood.rounds(), 1000u);
  }
  EXPECT_EQ(friendly.io().own_queue().number, right);
  EXPECT_EQ(victim.io().counters().unreachable, 0u);
}

TEST(VerbsAttack, questions_in_thousands_of_names__are_answered_by_no_more_and_bear_the_others) {
  if (const Forger forger; !forger.works()) GTEST_SKIP() << "this user may not send raw IP packets";
  expect_to_bear("questions in the names of all of 127.0.0.0/8", [](Host& victim, Host&) {
    return [&victim, forger = std::make_shared<Forger>(), random = Random(6)]() mutable {
      const auto ip = static_cast<std::uint32_t>(0x7F100000 + random.below(0xE00000));
      forger->send(Address::v4(ip, 9), victim.address, question(random.next()));
    };
  });
}

// The victim sends packets to thousands of forged addresses, as if it answered packets from them. Each address needs a
// route and a question.
TEST(VerbsAttack, endless_new_peers__do_not_block_other_peers) {
  FakeFabric fabric;
  Host victim(fabric, 0x7F000001);
  Host friendly(fabric, 0x7F000002);
  ASSERT_TRUE(reaches(victim, friendly));
  const std::string text = "an answer to whom there is not";
  std::uint32_t unknown_peer = 0x7F100000;
  const auto answer_unknown_peers = [&] {
    for (int i = 0; i < 20; ++i) {
      const Address to = Address::v4(unknown_peer++, 9);
      const TxPacket packet{.destination = &to, .header = std::as_bytes(std::span(text)), .payload = {}};
      victim.io().send({&packet, 1});
    }
  };
  const auto reached = [&](Host& host) {
    std::array<RxPacket, 64> packets;
    const TxPacket packet{.destination = &host.address, .header = std::as_bytes(std::span(text)), .payload = {}};
    for (const Nanos end = monotonic_now() + kPatience; monotonic_now() < end; Clock::sleep(Nanos(500'000))) {
      answer_unknown_peers();
      victim.io().send({&packet, 1});
      victim.io().receive(packets);
      if (host.io().receive(packets) > 0) return true;
    }
    return false;
  };
  for (const Nanos end = monotonic_now() + 2_s; monotonic_now() < end;) ASSERT_TRUE(reached(friendly));
  for (std::uint32_t i = 0; i < 5; ++i) {
    Host late(fabric, 0x7F000010 + i);
    ASSERT_TRUE(reached(late)) << i;
    ASSERT_TRUE(reached(friendly)) << i;
  }
  fmt::print("{} unknown peers\n", unknown_peer - 0x7F100000);
  EXPECT_GT(unknown_peer - 0x7F100000, 10'000u);
  // After the port has given up these peers, no packet waits for them. The port can again hold kMaxWaiting packets.
  std::array<RxPacket, 64> packets;
  for (const Nanos end = monotonic_now() + 3_s; monotonic_now() < end; std::this_thread::yield())
    victim.io().receive(packets);
  const std::uint64_t before = victim.io().counters().waiting_full;
  const Address no_host = Address::v4(0x7F000077, 9);
  const TxPacket packet{.destination = &no_host, .header = std::as_bytes(std::span(text)), .payload = {}};
  for (std::uint32_t i = 0; i < VerbsIo::kMaxWaiting; ++i) victim.io().send({&packet, 1});
  EXPECT_EQ(victim.io().counters().waiting_full, before);
  Host last(fabric, 0x7F000020);
  EXPECT_TRUE(reaches(victim, last));
}

}  // namespace
}  // namespace mltcp::rdma::attack_test
