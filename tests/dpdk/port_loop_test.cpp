// Tests loops over real ports that sleep until packets, deadlines or signals wake them.
#include "port_stations.h"

namespace mltcp::dpdk {
namespace {

using namespace port_stations;

/// Sends numbered datagrams to the kernel, one after the other, and counts the datagrams that return unchanged.
class Pinger final : public Pollable {
 public:
  Pinger(PortIo& io, const Address& to) : io_(io), to_(to) {}
  Nanos poll(Nanos now) override {
    std::array<RxPacket, 32> packets;
    for (std::size_t count = 0; (count = io_.receive(packets)) != 0;) {
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t number = 0;
        if (packets[i].bytes.size() == sizeof number) std::memcpy(&number, packets[i].bytes.data(), sizeof number);
        if (number == next_ && packets[i].source == to_) {
          ++back;
          if (now - sent_at_ < 12_ms) ++prompt;
          sent_at_ = {};
        }
      }
    }
    if (sent_at_ == Nanos() || now - sent_at_ > 200_ms) {
      ++next_;
      const TxPacket packet{&to_, std::as_bytes(std::span(&next_, 1)), {}, Ecn::ect0, 3};
      io_.send({&packet, 1});
      sent_at_ = now;
    }
    return sent_at_ + 200_ms;
  }
  std::size_t back = 0;
  std::size_t prompt = 0;  ///< number of datagrams that returned within 12 ms, which is less than a full sleep

 private:
  PortIo& io_;
  Address to_;
  std::uint64_t next_ = 0;
  Nanos sent_at_;
};

TEST(Port, tap__speaks_with_the_kernel_and_wakes_up_by_its_interrupts) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "/dev/net/tun is not to be had";
  EXPECT_PLAYED(play(
      [](const Channel& /*other*/) -> std::string {
        Station here({.kind = "tap", .interrupts = true}, "mltap0", 1);
        if (!run_command("ip address add 10.9.0.2/24 dev mltap0")) return "no address";
        const int echo = socket(AF_INET, SOCK_DGRAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(9000);
        if (bind(echo, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "no echo";
        const pid_t echoer = fork();
        if (echoer == 0) {
          for (;;) {
            std::array<char, 2048> bytes{};
            sockaddr_in from{};
            socklen_t size = sizeof from;
            const auto got = recvfrom(echo, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
            if (got < 0) _exit(0);
            usleep(2'000);  // gives the loop time to fall asleep
            sendto(echo, bytes.data(), static_cast<std::size_t>(got), 0, reinterpret_cast<sockaddr*>(&from), size);
          }
        }
        Address to = host(2);
        to.port = 9000;
        Pinger pinger(here.place.io(), to);
        here.attach(pinger);
        const bool done = here.loop.run(here.loop.now() + kPatience, [&] { return pinger.back >= 50; });
        kill(echoer, SIGKILL);
        waitpid(echoer, nullptr, 0);
        if (!done) return fmt::format("{} of 50 came back", pinger.back);
        const auto& neighbours = here.place.io().neighbours();
        if (neighbours.learnt == 0) return "the kernel was not asked";
        if (!here.port.has_interrupts()) return "no interrupts";
        if (here.loop.counters().sleeps < 25)
          return fmt::format("the loop slept {} times", here.loop.counters().sleeps);
        return pinger.prompt >= 25 ? "" : fmt::format("{} of 50 came promptly", pinger.prompt);
      },
      idle_part));
}

/// Answers each packet after 2 ms, so that the sender has time to fall asleep.
class LateEcho final : public Pollable {
 public:
  explicit LateEcho(PortIo& io) : io_(io) {}
  Nanos poll(Nanos now) override {
    std::array<RxPacket, 32> packets;
    for (std::size_t count = 0; (count = io_.receive(packets)) != 0;) {
      const RxPacket& last = packets[count - 1];
      bytes_.assign(last.bytes.begin(), last.bytes.end());
      to_ = last.source;
      due_ = now + 2_ms;
    }
    if (now < due_) return due_;
    const TxPacket packet{&to_, bytes_, {}, Ecn::ect0, 3};
    io_.send({&packet, 1});
    due_ = Nanos::never();
    return due_;
  }

 private:
  PortIo& io_;
  Address to_;
  std::vector<std::byte> bytes_;
  Nanos due_ = Nanos::never();
};

/// Receives packets and does nothing else.
struct Quiet final : Pollable {
  explicit Quiet(PortIo& io_) : io(io_) {}
  Nanos poll(Nanos /*now*/) override {
    ++polls;
    std::array<RxPacket, 32> packets;
    while (io.receive(packets) != 0) continue;
    return Nanos::never();
  }
  PortIo& io;
  std::size_t polls = 0;
};

/// With several queues, the loop drives several shards, which hand packets over to each other.
Pair wake_up(const std::string& kind, std::uint16_t queues = 1) {
  const std::string skip = skip_without(kind);
  if (!skip.empty()) return {skip, skip};
  constexpr std::size_t kPings = 50;
  const Setting setting{.kind = kind, .queues = queues, .interrupts = true};
  return play(
      [&](const Channel& other) -> std::string {
        Station here(setting, "ve0", 1);
        if (!here.port.has_interrupts()) return "no interrupts";
        if (!other.receives('r')) return "the other end did not start";
        Pinger pinger(here.place.io(), host(2));
        here.attach(pinger);
        std::optional<Quiet> second;
        if (queues > 1) here.attach(second.emplace(here.place.io(1)), 1);
        if (!here.run(other, [&] { return pinger.back >= kPings; })) return fmt::format("{} came back", pinger.back);
        // Expects 1 to 20 sleeps per packet. About five are normal: four short sleeps after the packet, and one until
        // the answer. If all sleeps were short, there would be 40.
        const std::uint64_t sleeps = here.loop.counters().sleeps;
        if (sleeps < kPings || sleeps > 20 * kPings) return fmt::format("the loop slept {} times", sleeps);
        return pinger.prompt >= kPings / 2 ? "" : fmt::format("{} of {} came promptly", pinger.prompt, kPings);
      },
      [&](const Channel& other) -> std::string {
        Station here({.kind = kind, .interrupts = true}, "ve1", 2);
        LateEcho echo(here.place.io());
        here.attach(echo);
        other.tell('r');
        here.loop.run(here.loop.now() + kPatience, [&] { return other.is_called(); });
        other.tell('d');
        return "";
      });
}

TEST(PollLoop, af_packet__sleeps_until_a_packet_comes) { EXPECT_PLAYED(wake_up("af_packet")); }
TEST(PollLoop, af_packet__sleeps_over_queues_that_share_packets) { EXPECT_PLAYED(wake_up("af_packet", 2)); }
TEST(PollLoop, af_xdp__sleeps_until_a_packet_comes) { EXPECT_PLAYED(wake_up("af_xdp")); }

/// After the interface goes down, the port's socket reports an error. The socket stays readable until the error is
/// read.
TEST(PollLoop, af_packet__sleeps_on_when_the_interface_goes_and_comes) {
  EXPECT_PLAYED(play(
      [](const Channel& /*other*/) -> std::string {
        Station here({.interrupts = true}, "ve0", 1);
        Quiet idler(here.place.io());
        here.attach(idler);
        const auto polls_in_half_a_second = [&] {
          here.loop.run(here.loop.now() + 300_ms);  // waits until the kernel's first packets have arrived
          idler.polls = 0;
          here.loop.run(here.loop.now() + 500_ms);
          return idler.polls;
        };
        // The loop polls a few times before each sleep of 20 ms. If all sleeps were short, there would be 10,000 polls.
        // Without sleeps, there would be a million.
        constexpr std::size_t max = 3'000;
        if (!run_command("ip link set ve0 down; ip link set ve0 up")) return "ve0 does not go down and up";
        if (const auto polls = polls_in_half_a_second(); polls > max) return fmt::format("{} polls", polls);
        if (!run_command("ip link delete ve0")) return "ve0 stays";
        const auto polls = polls_in_half_a_second();
        return polls <= max ? "" : fmt::format("{} polls without ve0", polls);
      },
      idle_part));
}

TEST(PollLoop, sleeps_until_a_deadline_that_is_near) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "/dev/net/tun is not to be had";
  EXPECT_PLAYED(play(
      [](const Channel& /*other*/) -> std::string {
        Station here({.kind = "tap", .interrupts = true}, "mltap0", 1);
        struct Metronome final : Pollable {
          explicit Metronome(PortIo& io_) : io(io_) {}
          Nanos poll(Nanos now) override {
            std::array<RxPacket, 32> packets;
            while (io.receive(packets) != 0) continue;
            ++polls;
            if (now >= next) {
              ++beats;
              next = now + 8_ms;
            }
            return next;
          }
          PortIo& io;
          std::size_t polls = 0;
          std::size_t beats = 0;
          Nanos next;
        } metronome(here.place.io());
        here.attach(metronome);
        if (!here.loop.run(here.loop.now() + kPatience, [&] { return metronome.beats > 50; })) return "too slow";
        if (!here.port.has_interrupts()) return "no interrupts";
        // Each deadline causes idle polls before and after its sleep, and short sleeps in the last millisecond. Without
        // sleeps, there would be thousands of polls per deadline.
        return metronome.polls < 300 * metronome.beats
                   ? ""
                   : fmt::format("{} polls for {} deadlines", metronome.polls, metronome.beats);
      },
      idle_part));
}

TEST(LaunchedLoop, stops_from_a_signal_handler_and_runs_on_a_core_of_its_own) {
  EXPECT_PLAYED(play(
      [](const Channel& /*other*/) -> std::string {
        if (usable_cpus().size() < 2) return "skip: one CPU";
        EalOptions options = small_eal();
        options.cores = fmt::format("{},{}", usable_cpus()[0], usable_cpus()[1]);
        const Eal eal(options);
        const Port port(eal, {.device = "ring:loop"});
        const PortHost place(eal, port, {.address = host(1)});
        for (const Idle idle : {Idle::spin, Idle::pause, Idle::sleep}) {
          struct Counter final : Pollable {
            Nanos poll(Nanos now) override {
              if (++polls == 500) throw RunError("enough");
              return now + 10_ms;
            }
            int polls = 0;
          } counter;
          static PollLoop* current = nullptr;
          PollLoop loop(eal.time(), idle);
          current = &loop;
          struct sigaction action {};
          action.sa_handler = [](int) { current->request_stop(); };
          sigaction(SIGALRM, &action, nullptr);
          alarm(1);
          if (!loop.run(loop.now() + kPatience)) return "the signal did not stop the loop";
          if (loop.run(loop.now() + 20_ms)) return "the stop was not forgotten";
          loop.attach(place.io(), counter);
          try {
            LaunchedLoop launched(eal, loop, 1, loop.now() + kPatience);
            launched.wait();
            return "what the Pollable threw is lost";
          } catch (const RunError& error) {
            if (std::string(error.what()) != "enough") return error.what();
          }
          counter.polls = 1000;
          LaunchedLoop launched(eal, loop, 1, loop.now() + kPatience);
          loop.request_stop();
          if (!launched.wait()) return "the launched loop did not stop";
          try {
            const LaunchedLoop none(eal, loop, 2, loop.now());
            return "there is no core 2";
          } catch (const InputError&) {
          }
        }
        return "";
      },
      idle_part));
}

}  // namespace
}  // namespace mltcp::dpdk
