// Hostile frames on the network of a running experiment. `mltcp testbed` uses real ports. An attacker on the wires of
// both hosts sees each frame and forges frames with the other host's address. Without the tags of connections, or
// without the key, the attack has no effect, and the experiment ends normally.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "../random_bytes.h"
#include "../started_program.h"
#include "attacker.h"
#include "mltcp/base/random.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::attack {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kExperiment = R"(
iterations = 10
policies = ["fair"]
[bottleneck]
rate = "100 Mbps"
buffer = "75 kB"
[[job]]
name = "a"
compute = "5 ms"
communicate = "250 kB"
)";

/// A running `mltcp testbed`.
class Testbed : public StartedProgram {
 public:
  Testbed(const fs::path& folder, const std::vector<std::string>& options)
      : StartedProgram(words(folder, options), folder, "testbed"), folder_(folder) {}

  /// Returns the id of the switch's process, whose network namespace contains the interfaces to all hosts. Returns 0 if
  /// there is no such process.
  [[nodiscard]] pid_t bridge() const {
    pid_t found = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0])) == 0) continue;
      const std::string words = content(entry.path() / "cmdline");
      if (words.find("switch-0.json") != std::string::npos && words.find(folder_.string()) != std::string::npos)
        found = std::stoi(entry.path().filename());
    }
    return found;
  }

 private:
  static std::vector<std::string> words(const fs::path& folder, const std::vector<std::string>& options) {
    std::vector<std::string> all{
        "env", "TMPDIR=" + (folder / "tmp").string(), MLTCP_PROGRAM, "testbed", "e.toml", "--device", "af_packet"};
    all.insert(all.end(), options.begin(), options.end());
    return all;
  }

  fs::path folder_;
};

/// A packet socket that receives all frames on one interface.
class Wire {
 public:
  explicit Wire(const char* interface) : file_(::socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))) {
    sockaddr_ll own{};
    own.sll_family = AF_PACKET;
    own.sll_protocol = htons(ETH_P_ALL);
    own.sll_ifindex = static_cast<int>(if_nametoindex(interface));
    EXPECT_NE(own.sll_ifindex, 0) << interface;
    EXPECT_EQ(bind(file_, reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    // The switch listens on this interface. Without this option, the switch would also receive the frames that this
    // test sends. The switch would then learn wrong ports for the addresses in these frames.
    const int on = 1;
    EXPECT_EQ(setsockopt(file_, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on), 0);
  }
  ~Wire() { close(file_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Returns the next frame that the host has sent, or an empty vector if there is none.
  ByteVector receive() {
    ByteVector frame(2048);
    sockaddr_ll from{};
    for (;;) {
      socklen_t size = sizeof from;
      const ssize_t count =
          recvfrom(file_, frame.data(), frame.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
      if (count <= 0) return {};
      if (from.sll_pkttype == PACKET_OUTGOING) continue;  // the switch sent this frame
      frame.resize(static_cast<std::size_t>(count));
      return frame;
    }
  }
  void send(const ByteVector& frame) {
    if (::send(file_, frame.data(), frame.size(), MSG_DONTWAIT) > 0) ++sent_;
  }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  int file_;
  std::atomic<std::uint64_t> sent_ = 0;
};

/// A thread that listens on the wires of two hosts and forges frames until stop(). The attacker knows the numbers of
/// connections and packets. If `reads` is true, it also uses everything else on the wires.
class Attack {
 public:
  Attack(pid_t bridge, bool reads) : reads_(reads), thread_([this, bridge] { run(bridge); }) {}
  ~Attack() { stop(); }
  Attack(const Attack&) = delete;
  Attack& operator=(const Attack&) = delete;

  void stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // The following counters are valid after stop().
  std::uint64_t forged = 0;
  std::uint64_t sealed = 0;    ///< number of observed sealed packets
  std::uint64_t unsealed = 0;  ///< number of observed unsealed packets with frames of the job

 private:
  void run(pid_t bridge) {
    const int network = open(("/proc/" + std::to_string(bridge) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(setns(network, CLONE_NEWNET), 0) << strerror(errno);  // affects this thread only
    close(network);
    Wire first("h0");
    Wire second("h1");
    const std::array<Wire*, 2> wires{&first, &second};
    while (!over_) {
      bool any = false;
      for (std::size_t side = 0; side < 2; ++side) {
        const ByteVector frame = wires[side]->receive();
        if (frame.empty()) continue;
        any = true;
        on_frame(side, frame, *wires[1 - side]);
      }
      if (!any) std::this_thread::sleep_for(1ms);
    }
    forged = first.sent() + second.sent();
  }

  /// Handles a frame sent by host `side`. The switch delivers the frame itself; this function sends forged frames to
  /// the other host.
  void on_frame(std::size_t side, const ByteVector& bytes, Wire& to) {
    encap::Frame frame;
    if (encap::parse(bytes, encap::VerifyUdp::no, frame) != encap::Reject::none) return;
    if (frame.payload.size() < wire::kHeaderBytes || frame.payload[0] != std::byte{wire::magic}) return;
    ++seen_;
    if (wire::is_sealed(frame.payload)) ++sealed;
    // Short unsealed packets are answers to forged packets and do not belong to the job.
    else if (frame.payload.size() > wire::kHeaderBytes + wire::kConnectFrameBytes)
      ++unsealed;
    if (const std::uint32_t connection = wire::peek_connection(frame.payload); connection != 0)
      connections_[side] = connection;
    auto& heard = heard_[side];
    heard.push_back(bytes);
    if (heard.size() > 100) heard.pop_front();
    if (seen_ > 50 && seen_ % 8 != 0) return;  // limits the load, because two CPUs have to suffice for all processes
    forge(side, frame, to);
    if (!reads_) return;
    to.send(bytes);
    to.send(heard[random_.below(heard.size())]);
    if (frame.payload.size() > wire::kHeaderBytes) {
      ByteVector changed = bytes;
      changed[changed.size() - 1 - random_.below(frame.payload.size() - wire::kHeaderBytes)] ^= std::byte{1};
      to.send(with_payload(frame, {changed.end() - std::ssize(frame.payload), changed.end()}));
    }
  }

  void forge(std::size_t side, const encap::Frame& frame, Wire& to) {
    wire::Header header;
    std::memcpy(&header.tag, frame.payload.data() + 8, sizeof header.tag);
    if (!reads_) header.tag = random_.next();
    header.connection = connections_[side];
    std::uint32_t number = 0;
    std::memcpy(&number, frame.payload.data() + 20, sizeof number);
    header.packet_number = number + 1 + random_.below(3);
    const auto say = [&](const auto& frames) { to.send(with_payload(frame, packet(header, frames))); };
    if (header.connection != 0) {
      say([](wire::Writer& w) { w.close(wire::CloseReason::aborted); });
      say([](wire::Writer& w) {
        w.data({.last = true, .message = 0, .offset = 0, .length = 4});
        w.copy(random_bytes(4).data(), 4);
      });
      say([&](wire::Writer& w) { acknowledge(w, 0, header.packet_number + 1000); });
      // The attacker sends a second CLOSE, whose flags say that it is sealed.
      ByteVector pretended = packet(header, [](wire::Writer& w) { w.close(wire::CloseReason::aborted); });
      pretended[1] |= std::byte{wire::sealed | wire::clear};
      to.send(with_payload(frame, pretended));
    }
    // The CONNECT has the victim's id and the attacker's tag, as if the peer had been restarted.
    const wire::ConnectFrame again{.max_packet = 1472,
                                   .source_connection = connections_[1 - side] != 0 ? connections_[1 - side] : 1,
                                   .credit = 1,
                                   .tag = random_.next()};
    header.connection = 0;
    for (int i = 0; i < 2; ++i) say([&](wire::Writer& w) { w.connect(again); });
    say([&](wire::Writer& w) { w.reset(connections_[1 - side]); });
    say([&](wire::Writer& w) {
      w.connect(again);
      w.close(wire::CloseReason::aborted);
    });
    to.send(with_payload(frame, random_bytes(random_.below(1400), random_.next())));
  }

  /// Returns a frame that contains `payload`. Its hosts and ports are those of `frame`.
  static ByteVector with_payload(const encap::Frame& frame, const ByteVector& payload) {
    ByteVector bytes(encap::header_bytes(frame.headers.destination));
    encap::write_headers(frame.headers, payload.size(), encap::sum(payload.data(), payload.size()), bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  }

  const bool reads_;
  std::atomic<bool> over_ = false;
  Random random_{1};
  std::uint64_t seen_ = 0;
  std::array<std::uint32_t, 2> connections_{};  ///< connection ids in the packets that each side sends
  std::array<std::deque<ByteVector>, 2> heard_;
  std::thread thread_;
};

class TestbedAttack : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "to enter a testbed's network takes root";
    const pid_t child = fork();
    if (child == 0) _exit(unshare(CLONE_NEWPID | CLONE_NEWNET) == 0 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) GTEST_SKIP() << "this machine makes no namespaces";
    if (std::system("ip link help >/dev/null 2>&1; [ $? -ne 127 ]") != 0)  // NOLINT(cert-env33-c)
      GTEST_SKIP() << "iproute2 is not installed";
    fs::create_directory(folder_ / "tmp");
    std::ofstream(folder_ / "e.toml") << kExperiment;
  }
  /// Attacks during the whole experiment. Returns the experiment's exit status.
  int attacked(Testbed& testbed, bool reads) {
    pid_t bridge = 0;
    EXPECT_TRUE(soon([&] { return (bridge = testbed.bridge()) != 0; }, 60s)) << testbed.said();
    Attack attack(bridge, reads);
    const int status = testbed.finish();
    attack.stop();
    forged_ = attack.forged;
    sealed_ = attack.sealed;
    unsealed_ = attack.unsealed;
    return status;
  }

  mltcp::TemporaryFolder folder_;
  std::uint64_t forged_ = 0;
  std::uint64_t sealed_ = 0;
  std::uint64_t unsealed_ = 0;
};

TEST_F(TestbedAttack, frames_without_tags__change_nothing) {
  Testbed testbed(folder_, {});
  EXPECT_EQ(attacked(testbed, false), 0) << testbed.said();
  EXPECT_THAT(testbed.said(), HasSubstr(" messages verified, 0 damaged"));
  EXPECT_GT(forged_, 1000U);
  EXPECT_GT(unsealed_, 1000U);
  EXPECT_EQ(sealed_, 0U);
}

// This test shows that hosts accept the forged frames if there is no key.
TEST_F(TestbedAttack, frames_with_the_tags_that_were_seen__end_an_experiment_without_a_key) {
  // The experiment is long enough that some forged packet arrives before the host's own packet with the same number,
  // even on a busy machine.
  std::string longer = kExperiment;
  longer.replace(longer.find("iterations = 10"), 15, "iterations = 1000");
  std::ofstream(folder_ / "e.toml") << longer;
  Testbed testbed(folder_, {});
  EXPECT_EQ(attacked(testbed, true), 1) << testbed.said();
  EXPECT_THAT(testbed.said(), HasSubstr("connection"));
}

TEST_F(TestbedAttack, frames_of_who_sees_all_but_has_no_key__change_nothing) {
  security::JobKey::generate().write_file(folder_ / "job.key");
  Testbed testbed(folder_, {"--key", "job.key"});
  EXPECT_EQ(attacked(testbed, true), 0) << testbed.said();
  EXPECT_THAT(testbed.said(), HasSubstr(" messages verified, 0 damaged"));
  EXPECT_GT(forged_, 1000U);
  EXPECT_GT(sealed_, 1000U);
  EXPECT_EQ(unsealed_, 0U);
}

}  // namespace
}  // namespace mltcp::attack
