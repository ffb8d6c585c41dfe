// Tests several endpoints in one process over DPDK, which is started once for all of them. Covers messages between
// endpoints, endpoints that are opened again, shared memory, and refused settings. Each test runs in a separate process
// with its own network namespace.
#include <gmock/gmock.h>
#include <rte_malloc.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "../message_of.h"
#include "../random_bytes.h"
#include "mltcp/base/error.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/register_datapath.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/endpoint/endpoint.h"
#include "net_fixture.h"

namespace mltcp::dpdk {
namespace {

using endpoint::Code;
using endpoint::Completion;
using endpoint::ConnectionHandle;
using endpoint::ConnectionKind;
using endpoint::Driving;
using endpoint::Endpoint;
using endpoint::EndpointConfig;
using endpoint::OperationHandle;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<std::byte>;

constexpr Nanos kPatience{10'000'000'000};

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

/// Runs `part` in a separate process with its own network namespace. Returns the text of an exception, or an empty
/// text.
std::string alone(const std::function<void()>& part) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return "no sockets";
  Host host(
      [&](const Channel& /*other*/) {
        register_datapath();
        part();
        return std::string();
      },
      ends[0], ends[1]);
  close(ends[0]);
  close(ends[1]);
  return host.finish(60'000);
}

/// Runs `part` like alone(), but in a network namespace with the veth pair ve0 and ve1. Returns "skip: ..." if the pair
/// cannot be created.
std::string alone_on_a_pair(const std::function<void()>& part) {
  return alone([&] {
    if (unshare(CLONE_NEWNET) != 0 ||
        !run_command("ip link add ve0 type veth peer name ve1 && ip link set ve0 up && ip link set ve1 up"))
      throw std::runtime_error("skip: no veth pair can be made; run as root, with iproute2");
    part();
  });
}

#define EXPECT_FINE(run)                                          \
  do {                                                            \
    const std::string verdict = (run);                            \
    if (verdict.rfind("skip: ", 0) == 0) GTEST_SKIP() << verdict; \
    EXPECT_EQ(verdict, "");                                       \
  } while (false)

EndpointConfig config_of(const std::string& device, std::uint8_t host, Driving driving) {
  EndpointConfig config;
  config.datapath.device = device;
  config.address = Address::v4(0x0A090000U + host, 50'000);
  config.driving = driving;
  config.max_connections = 16;
  config.max_operations = 256;
  return config;
}

using Endpoints = std::vector<Endpoint*>;

/// Drives the endpoints that have no threads until `over()` returns true. Throws an exception with `what` if this takes
/// too long.
void drive(const Endpoints& all, const std::string& what, const std::function<bool()>& over) {
  const Nanos end = monotonic_now() + kPatience;
  while (!over()) {
    require(monotonic_now() < end, what + " takes too long");
    bool are_driven = false;
    for (Endpoint* const one : all) {
      one->progress();
      are_driven = are_driven || one->config().driving == Driving::caller;
    }
    if (!are_driven) Clock::sleep(Nanos(100'000));
  }
}

Completion end_of(const Endpoints& all, Endpoint& endpoint, OperationHandle operation, const std::string& what) {
  Completion end;
  drive(all, what, [&] { return endpoint.test(operation, end) == Code::ok; });
  require(end.code == Code::ok, what + ": " + to_text(end));
  return end;
}

/// The two handles of a connection, one at each end.
struct Connected {
  ConnectionHandle here = 0;
  ConnectionHandle there = 0;
};

Connected connect(Endpoint& a, Endpoint& b, ConnectionKind kind) {
  const Endpoints both{&a, &b};
  Connected made;
  OperationHandle operation = 0;
  require(a.connect(b.address().bytes(), {.kind = kind, .post = {}}, made.here, &operation) == Code::ok, "connect()");
  end_of(both, a, operation, "connecting");
  Completion event;
  drive(both, "being connected to", [&] {
    return b.events().poll({&event, 1}) == 1 && event.kind == Completion::Kind::accepted;
  });
  made.there = event.connection;
  return made;
}

constexpr std::array<std::size_t, 4> kSizes{0, 100, 4096, 300'000};

/// Sends one message of each size from `from` to `to`, and compares the received content.
void pass(Endpoint& from, ConnectionHandle out, Endpoint& to, ConnectionHandle in, ConnectionKind kind) {
  const Endpoints both{&from, &to};
  std::vector<Bytes> sent;
  std::vector<Bytes> got;
  std::vector<OperationHandle> sends(kSizes.size());
  std::vector<OperationHandle> receives(kSizes.size());
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    sent.push_back(random_bytes(kSizes[i], i + out));
    got.emplace_back(kSizes[i]);
  }
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    const bool by_tag = kind == ConnectionKind::tagged;
    require((by_tag ? to.receive_tagged(in, got[i], 70 + i, endpoint::kWholeTag, {}, receives[i])
                    : to.receive(in, got[i], 0, {}, receives[i])) == Code::ok,
            "receive()");
    require((by_tag ? from.send_tagged(out, sent[i], 70 + i, {}, sends[i])
                    : from.send(out, sent[i], 0, {}, sends[i])) == Code::ok,
            "send()");
  }
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    end_of(both, from, sends[i], fmt::format("sending {} bytes", kSizes[i]));
    require(end_of(both, to, receives[i], fmt::format("receiving {} bytes", kSizes[i])).bytes == kSizes[i],
            "a message has another length");
    require(got[i] == sent[i], "a message has other bytes");
  }
}

/// Sends messages in both directions, over an ordered and over a tagged connection.
void exchange(Endpoint& a, Endpoint& b) {
  for (const ConnectionKind kind : {ConnectionKind::ordered, ConnectionKind::tagged}) {
    const Connected made = connect(a, b, kind);
    pass(a, made.here, b, made.there, kind);
    pass(b, made.there, a, made.here, kind);
  }
}

/// Opens two endpoints and exchanges messages between them.
void open_two_and_exchange(const std::string& left, const std::string& right, Driving driving) {
  const std::vector<unsigned> before = usable_cpus();
  Endpoint a(config_of(left, 1, driving));
  Endpoint b(config_of(right, 2, driving));
  require(usable_cpus() == before, "the calling thread's affinity has changed");
  exchange(a, b);
}

TEST(DpdkEndpoints, on_two_interfaces__exchange_messages_driven_by_threads) {
  EXPECT_FINE(alone_on_a_pair([] { open_two_and_exchange("af_packet:ve0", "af_packet:ve1", Driving::threads); }));
}

TEST(DpdkEndpoints, on_two_interfaces__exchange_messages_driven_by_the_caller) {
  EXPECT_FINE(alone_on_a_pair([] { open_two_and_exchange("af_packet:ve0", "af_packet:ve1", Driving::caller); }));
}

TEST(DpdkEndpoints, on_two_interfaces__exchange_messages_over_af_xdp) {
  const int file = socket(AF_XDP, SOCK_RAW, 0);
  if (file < 0) GTEST_SKIP() << "this kernel or user has no AF_XDP";
  close(file);
  EXPECT_FINE(alone_on_a_pair([] {
    for (const Driving driving : {Driving::threads, Driving::caller})
      open_two_and_exchange("af_xdp:ve0", "af_xdp:ve1", driving);
  }));
}

TEST(DpdkEndpoints, on_rings__exchange_messages_driven_by_threads) {
  EXPECT_FINE(alone([] { open_two_and_exchange("ring:left,to=right", "ring:right,to=left", Driving::threads); }));
}

TEST(DpdkEndpoints, on_rings__exchange_messages_driven_by_the_caller) {
  EXPECT_FINE(alone([] { open_two_and_exchange("ring:left,to=right", "ring:right,to=left", Driving::caller); }));
}

TEST(DpdkEndpoints, of_other_kinds__share_a_process) {
  EXPECT_FINE(alone_on_a_pair([] {
    Endpoint a(config_of("ring:left,to=right", 1, Driving::threads));
    Endpoint b(config_of("ring:right,to=left", 2, Driving::caller));
    Endpoint c(config_of("af_packet:ve0", 3, Driving::caller));
    Endpoint d(config_of("af_packet:ve1", 4, Driving::threads));
    exchange(a, b);
    exchange(c, d);
  }));
}

TEST(DpdkEndpoints, in_namespaces_of_their_threads__open_interfaces_there) {
  EXPECT_FINE(alone([] {
    if (unshare(CLONE_NEWNET) != 0) throw std::runtime_error("skip: no network namespace can be made; run as root");
    Endpoint first(config_of("ring:loop", 1, Driving::caller));  // DPDK's thread runs in this namespace
    std::string problem;
    std::thread([&] {
      if (unshare(CLONE_NEWNET) != 0 ||
          !run_command("ip link add vn0 type veth peer name vn1 && ip link set vn0 up && ip link set vn1 up")) {
        problem = "skip: no veth pair can be made; run as root, with iproute2";
        return;
      }
      try {
        open_two_and_exchange("af_packet:vn0", "af_packet:vn1", Driving::threads);
      } catch (const std::exception& error) {
        problem = error.what();
      }
    }).join();
    require(problem.empty(), problem);
  }));
}

// ---- Opening again ----

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

std::size_t free_memory() {
  rte_malloc_socket_stats stats{};
  rte_malloc_get_socket_stats(0, &stats);
  return stats.heap_freesz_bytes;
}

void reopen(const std::string& left, const std::string& right, int rounds) {
  std::size_t files = 0;
  std::size_t memory = 0;
  for (int round = 0; round < rounds; ++round) {
    {
      const Driving driving = round % 2 == 0 ? Driving::threads : Driving::caller;
      Endpoint a(config_of(left, 1, driving));
      Endpoint b(config_of(right, 2, driving));
      if (round < 2 || round + 2 >= rounds) exchange(a, b);
    }
    if (round == 1) {
      files = open_files();
      memory = free_memory();
    }
  }
  require(open_files() == files, fmt::format("{} files are open and not {}", open_files(), files));
  require(free_memory() == memory, fmt::format("{} bytes are free and not {}", free_memory(), memory));
  require(free_ports() == max_ports(), "ports were not given back");
}

TEST(DpdkEndpoints, opened_again__work_and_leave_nothing_behind) {
  EXPECT_FINE(alone([] { reopen("ring:left,to=right", "ring:right,to=left", 100); }));
}

TEST(DpdkEndpoints, opened_again_on_interfaces__work_and_leave_nothing_behind) {
  EXPECT_FINE(alone_on_a_pair([] { reopen("af_packet:ve0", "af_packet:ve1", 50); }));
}

TEST(DpdkEndpoints, opened_again_beside_one_that_stays__do_it_no_harm) {
  EXPECT_FINE(alone([] {
    Endpoint stays(config_of("ring:right,to=left", 2, Driving::threads));
    std::size_t memory = 0;
    for (int round = 0; round < 60; ++round) {
      const Bytes last(3000);
      auto goes = std::make_unique<Endpoint>(config_of("ring:left,to=right", 1, Driving::threads));
      Endpoint& comes = *goes;
      const Connected made = connect(comes, stays, ConnectionKind::tagged);
      pass(comes, made.here, stays, made.there, ConnectionKind::tagged);
      // The program destroys the endpoint while its last packets are in flight.
      for (std::uint64_t tag = 0; tag < 20; ++tag) {
        OperationHandle operation = 0;
        require(comes.send_tagged(made.here, last, tag, {}, operation) == Code::ok, "send_tagged()");
      }
      goes.reset();
      stays.close(made.there);  // the program has not received all messages that arrived on this connection
      if (round == 4) memory = free_memory();
    }
    constexpr std::size_t kPoolAndMore = std::size_t{32} << 20;
    require(free_memory() + kPoolAndMore > memory, "pools are left");
  }));
}

// ---- Shared memory ----

TEST(DpdkEndpoints, of_the_first_ones_memory__eight_have_room) {
  EXPECT_FINE(alone([] {
    std::vector<std::unique_ptr<Endpoint>> all;
    for (std::uint8_t number = 0; number < 8; ++number) {
      EndpointConfig config =
          config_of(fmt::format("ring:r{},to=r{}", number, number ^ 1), number + 1, Driving::caller);
      config.datapath.mtu = 9000;
      all.push_back(std::make_unique<Endpoint>(config));
    }
    for (std::size_t i = 0; i < all.size(); i += 2) exchange(*all[i], *all[i + 1]);
  }));
}

TEST(DpdkEndpoints, of_too_little_memory__are_refused_with_how_much_the_first_should_ask_for) {
  EXPECT_FINE(alone([] {
    EndpointConfig small = config_of("ring:left,to=right", 1, Driving::caller);
    small.datapath.memory_mb = 32;
    const Endpoint first(small);
    EndpointConfig more = config_of("ring:right,to=left", 2, Driving::threads);
    more.datapath.memory_mb = 64;
    const std::string contradiction = message_of<RunError>([&] { const Endpoint second(more); });
    require(contradiction.find("with 32 MB in ordinary pages, which can't grow, but 64 MB are requested here; request "
                               "that when opening the first port") != std::string::npos ||
                contradiction == "no error",  // huge pages can grow, so this call may succeed
            contradiction);
    more.datapath.memory_mb.reset();
    more.datapath.mtu = 9000;
    more.datapath.queue_packets = 4096;
    const std::string shortage = message_of<RunError>([&] { const Endpoint second(more); });
    require(
        shortage.find(": all ports of the process share its 32 MB; open the first port with") != std::string::npos ||
            shortage == "no error",
        shortage);
    Endpoint a(config_of("ring:a,to=b", 3, Driving::caller));  // the refused endpoints left nothing behind
    require(free_ports() == max_ports() - 2, "ports were not given back");
  }));
}

TEST(DpdkEndpoints, on_a_device_that_another_has__are_refused_with_its_name) {
  EXPECT_FINE(alone_on_a_pair([] {
    std::optional<Endpoint> first(std::in_place, config_of("af_packet:ve0", 1, Driving::threads));
    for (const Driving driving : {Driving::threads, Driving::caller}) {
      const std::string error =
          message_of<RunError>([&] { const Endpoint second(config_of("af_packet:ve0", 2, driving)); });
      require(error ==
                  "port \"af_packet:ve0\": this process has that device already, as af_packet:ve0, of the host "
                  "10.9.0.1:50000; put more shards on that port, or use another device for this one",
              error);
    }
    Endpoint other(config_of("af_packet:ve1", 3, Driving::threads));
    exchange(*first, other);  // the first endpoint still works
    first.reset();
    Endpoint then(config_of("af_packet:ve0", 2, Driving::threads));
    exchange(then, other);
  }));
}

// Each driving thread can store hundreds of buffers in its own cache, and there are buffers for only a few threads.
TEST(DpdkEndpoints, driven_by_many_threads_in_turn__keep_their_buffers) {
  EXPECT_FINE(alone([] {
    EndpointConfig left = config_of("ring:left,to=right", 1, Driving::caller);
    EndpointConfig right = config_of("ring:right,to=left", 2, Driving::caller);
    left.datapath.queue_packets = right.datapath.queue_packets = 64;  // leaves few buffers in the pools
    Endpoint a(left);
    Endpoint b(right);
    const Connected made = connect(a, b, ConnectionKind::ordered);
    constexpr int kThreads = 12;
    std::string problem;
    std::atomic<int> turn{0};
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) {
      threads.emplace_back([&, number] {
        EalOptions options;
        const Eal eal(options);  // registers the thread with DPDK
        while (turn.load() < number) Clock::sleep(Nanos(100'000));
        try {
          if (problem.empty()) pass(a, made.here, b, made.there, ConnectionKind::ordered);
          if (problem.empty()) pass(b, made.there, a, made.here, ConnectionKind::ordered);
        } catch (const std::exception& error) {
          problem = fmt::format("thread {}: {}", number, error.what());
        }
        ++turn;
        // The thread keeps its buffer caches until it ends.
        while (turn.load() < kThreads) Clock::sleep(Nanos(100'000));
      });
    }
    for (std::thread& thread : threads) thread.join();
    require(problem.empty(), problem);
  }));
}

}  // namespace
}  // namespace mltcp::dpdk
