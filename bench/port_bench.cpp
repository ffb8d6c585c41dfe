// Measures the transport between two hosts: the goodput of one connection, or round trips. Each host is a process with
// its own port.
//
//   port_bench serve  --device af_xdp:eth0 --address 10.79.0.2
//   port_bench stream --device af_xdp:eth0 --address 10.79.0.1 --peer 10.79.0.2 --size 1000000
//   port_bench ping   --device af_xdp:eth0 --address 10.79.0.1 --peer 10.79.0.2 --size 32
//   port_bench copy   --size 1000000        (memcpy of messages of this size: the upper bound of the hardware)
//   port_bench kernel-serve segments --address 10.79.0.2      (bare loops on the kernel's sockets: kernel_loop.h)
//   port_bench kernel       segments --address 10.79.0.1 --peer 10.79.0.2
//
// A port --device udp: uses the kernel's UDP sockets, and a port verbs:DEVICE uses the queues of an RDMA device. Both
// kinds of ports need an IP address of the kernel.
//
// `serve` prints "ready" when it listens, and ends when its client has closed the connection. `serve` needs the
// client's --size, and --echo if the client runs `ping`. Each side prints its results as one line of JSON. Only
// messages that complete after the warm-up and within the measured time count. A message is complete when the client
// knows that the server's buffer contains all of it. bench/peers/run starts both sides, pinned to CPUs, in network
// namespaces. docs/explanation/peers.md has the results.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernel_loop.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_io.h"
#if MLTCP_HAS_VERBS
#include "mltcp/rdma/register_datapath.h"
#endif
#include "mltcp/socket/register_datapath.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/poll_loop.h"
#include "mltcp/transport/shard.h"

namespace {

using namespace mltcp;
using Json = nlohmann::ordered_json;

constexpr std::uint16_t kUdpPort = 62400;
/// Maximum bytes in flight. They are enough that the sender never waits for a completion, and few enough that the
/// buffers stay in the cache.
constexpr std::size_t kBytesUnderWay = 4 << 20;
constexpr std::size_t kMaxUnderWay = 512;
constexpr Nanos kPatience{30'000'000'000};
constexpr Nanos kLinger{200'000'000};

struct Options {
  dpdk::PortConfig port;
  std::string address;
  std::string peer;
  std::string cores;
  Idle idle = Idle::spin;
  bool echo = false;
  bool mltcp = false;
  std::size_t size = 1'000'000;
  double seconds = 5;
  double warm_up = 1;
  ConnectionConfig connection;
};

std::size_t messages_under_way(std::size_t size) {
  return std::clamp<std::size_t>(kBytesUnderWay / std::max<std::size_t>(size, 1), 2, kMaxUnderWay);
}

/// Returns the processor time of the calling thread in seconds, in the program and in the kernel.
std::array<double, 2> thread_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

/// The common part of client and server: a shard, message buffers, and the handling of completions.
class End : public Pollable {
 public:
  End(PacketIo& io, const Options& options, std::uint64_t seed)
      : shard(io, {.seed = seed}), options_(options), depth(options.echo ? 1 : messages_under_way(options.size)) {
    buffers.assign(2 * depth, std::vector<std::byte>(options.size, std::byte{0x5A}));
  }
  Nanos poll(Nanos now) final {
    begin(now);
    const Nanos due = shard.poll(now);
    std::array<Completion, 64> done;
    bool any = false;
    while (const std::size_t count = shard.take_completions(done)) {
      any = true;
      for (std::size_t i = 0; i < count; ++i) {
        if (done[i].kind == Completion::Kind::closed) closed = true;
        if (done[i].status != Status::ok && done[i].kind != Completion::Kind::closed && failure.empty() && !closing) {
          failure = to_text(done[i].status);
        }
        on_completion(done[i], now);
      }
    }
    return any ? now : due;  // returning `now` sends at once what on_completion() has posted
  }
  [[nodiscard]] bool is_over() const { return closed || !failure.empty(); }

  Shard shard;
  bool closed = false;
  bool closing = false;
  std::string failure;

 protected:
  virtual void begin(Nanos) {}
  virtual void on_completion(const Completion& done, Nanos now) = 0;

  const Options& options_;
  const std::size_t depth;
  std::vector<std::vector<std::byte>> buffers;
};

class Server final : public End {
 public:
  Server(PacketIo& io, const Options& options) : End(io, options, 8) {
    closing = true;  // the client closes the connection, even after a failure
    shard.listen(options.connection);
  }

 private:
  void on_completion(const Completion& done, Nanos) override {
    if (done.kind == Completion::Kind::accepted) {
      for (std::size_t i = 0; i < buffers.size(); ++i) shard.receive(done.connection, buffers[i], i);
    } else if (done.kind == Completion::Kind::received) {
      if (done.status != Status::ok) return;
      // The connection reads the buffer until the echo is acknowledged. The message after the next one may arrive in
      // this buffer, but the client acknowledges the echo before it sends that message.
      if (options_.echo) shard.send(done.connection, buffers[done.tag], done.tag);
      shard.receive(done.connection, buffers[done.tag], done.tag);
    }
  }
};

class Client final : public End {
 public:
  Client(PacketIo& io, const Options& options) : End(io, options, 7), server_(Address::parse(options.peer, kUdpPort)) {
    if (options.mltcp) {
      JobConfig job;
      job.augmentation = cc::Augmentation::mltcp({});
      job_ = shard.add_job(job);
    }
    if (options.echo) round_trips.reserve(8 << 20);
  }

  std::uint64_t messages = 0;
  Nanos taken;
  std::array<double, 2> processor{};
  ConnectionStats before;
  ConnectionStats after;
  std::vector<std::uint32_t> round_trips;  ///< in ns

 private:
  void begin(Nanos now) override {
    if (connection_ == 0) {
      connection_ = shard.connect(server_, options_.connection, now);
      if (options_.mltcp) {
        if (!shard.attach(connection_, job_) || !shard.begin_iteration(job_, Bytes{1} << 40))
          throw RunError("the connection carries no job");
      }
      if (options_.echo) {
        for (std::size_t i = 0; i < buffers.size(); ++i) shard.receive(connection_, buffers[i], i);
      }
      give_up_ = now + kPatience;
    } else if (!connected_ && now > give_up_) {
      failure = "nobody answers";
    } else if (connected_ && !started_ && now >= start_) {
      started_ = true;
      start_ = now;
      messages = 0;
      round_trips.clear();
      before = shard.stats(connection_).value_or(ConnectionStats{});
      processor = thread_seconds();
    } else if (started_ && !closing && now >= end_) {
      closing = true;
      taken = now - start_;
      after = shard.stats(connection_).value_or(ConnectionStats{});
      const auto used = thread_seconds();
      for (std::size_t i = 0; i < used.size(); ++i) processor[i] = used[i] - processor[i];
      shard.abort(connection_, now);
    }
  }

  void on_completion(const Completion& done, Nanos now) override {
    if (closing) return;
    if (done.kind == Completion::Kind::connected) {
      connected_ = true;
      start_ = now + Nanos::from_seconds(options_.warm_up);
      end_ = start_ + Nanos::from_seconds(options_.seconds);
      for (std::size_t i = 0; i < depth; ++i) send(i, now);
    } else if (done.kind == Completion::Kind::sent && !options_.echo) {
      ++messages;
      send(done.tag, now);
    } else if (done.kind == Completion::Kind::received) {
      ++messages;
      if (round_trips.size() < round_trips.capacity()) {
        round_trips.push_back(static_cast<std::uint32_t>(std::min<std::int64_t>((now - sent_).count, UINT32_MAX)));
      }
      shard.receive(connection_, buffers[done.tag], done.tag);
      send(0, now);
    }
  }

  void send(std::size_t buffer, Nanos now) {
    sent_ = now;
    if (shard.send(connection_, echo_or(buffer), buffer) != PostResult::ok) failure = "a message was not taken";
  }
  [[nodiscard]] std::span<const std::byte> echo_or(std::size_t buffer) const {
    return options_.echo ? std::span<const std::byte>(request_).first(options_.size) : buffers[buffer];
  }

  const Address server_;
  std::vector<std::byte> request_ = std::vector<std::byte>(options_.echo ? options_.size : 0, std::byte{0x33});
  JobId job_ = 0;
  ConnectionId connection_ = 0;
  bool connected_ = false;
  bool started_ = false;
  Nanos give_up_;
  Nanos start_;
  Nanos end_;
  Nanos sent_;
};

double microseconds(std::vector<std::uint32_t>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share * last)] / 1e3;
}

Json report(const Client& client, const Options& options) {
  const double seconds = client.taken.seconds();
  Json json;
  json["port_seconds"] = seconds;
  json["messages_per_second"] = static_cast<double>(client.messages) / seconds;
  if (options.echo) {
    auto sorted = client.round_trips;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) throw RunError("no answer came within the time; give more seconds");
    for (const auto& [name, share] : {std::pair("p50", 0.5), std::pair("p99", 0.99), std::pair("p999", 0.999)})
      json[fmt::format("{}_us", name)] = microseconds(sorted, share);
  } else {
    json["gbps"] = static_cast<double>(client.messages * options.size) * 8e-9 / seconds;
  }
  const ConnectionStats& a = client.after;
  const ConnectionStats& b = client.before;
  json["packets_per_second"] = static_cast<double>(a.packets_sent - b.packets_sent) / seconds;
  json["reverse_packets_per_second"] = static_cast<double>(a.packets_received - b.packets_received) / seconds;
  json["lost_packets"] = a.lost_packets - b.lost_packets;
  json["cwnd_bytes"] = a.cwnd_bytes;
  json["smoothed_rtt_us"] = static_cast<double>(a.smoothed_rtt.count) / 1e3;
  json["user_share"] = client.processor[0] / seconds;
  json["kernel_share"] = client.processor[1] / seconds;
  return json;
}

/// A host's access to the network, through a port of any kind. Client and server use this class.
class Place {
 public:
  virtual ~Place() = default;
  [[nodiscard]] virtual PacketIo& io() = 0;
  [[nodiscard]] virtual TimeSource& time() = 0;
  /// Adds the description of the port, and its counters.
  virtual void tell(Json& json) const = 0;
};

class PortPlace final : public Place {
 public:
  explicit PortPlace(const Options& options)
      : eal_(eal_options(options)),
        port_(eal_, options.port),
        host_(eal_, port_, {.address = Address::parse(options.address, kUdpPort)}) {}
  [[nodiscard]] PacketIo& io() override { return host_.io(); }
  [[nodiscard]] TimeSource& time() override { return eal_.time(); }
  void tell(Json& json) const override {
    const dpdk::PortIoCounters& io = host_.io().counters();
    json["port"] = port_.description();
    json["eal"] = eal_.description();
    json["port_full"] = io.port_full;
    json["no_buffer"] = io.no_buffer;
    for (const auto& [name, value] : port_.statistics()) {
      if (value != 0 && (name.find("err") != std::string::npos || name.find("miss") != std::string::npos)) {
        json[name] = value;
      }
    }
  }

 private:
  static dpdk::EalOptions eal_options(const Options& options) {
    dpdk::EalOptions made;
    made.cores = options.cores;
    made.memory_mb = 64 + dpdk::Port::memory_mb(options.port);
    return made;
  }
  dpdk::Eal eal_;
  dpdk::Port port_;
  dpdk::PortHost host_;
};

class NamedPlace final : public Place {
 public:
  explicit NamedPlace(const Options& options)
      : datapath_(open_host_datapath({.device = options.port.device,
                                      .mtu = options.port.mtu,
                                      .queue_packets = options.port.descriptors,
                                      .sleeps = options.idle == Idle::sleep,
                                      .cores = options.cores})) {
    datapath_->take_place({.address = Address::parse(options.address, kUdpPort)});
  }
  [[nodiscard]] PacketIo& io() override { return datapath_->io(0); }
  [[nodiscard]] TimeSource& time() override { return datapath_->time(); }
  void tell(Json& json) const override {
    const DatapathLosses losses = datapath_->losses();
    json["port"] = datapath_->description();
    json["missed"] = losses.missed;
    json["unsent"] = losses.unsent;
  }

 private:
  std::unique_ptr<HostDatapath> datapath_;
};

std::unique_ptr<Place> place_of(const Options& options) {
  socket::register_datapath();
#if MLTCP_HAS_VERBS
  rdma::register_datapath();
#endif
  const std::string& device = options.port.device;
  if (device.starts_with("udp:") || device.starts_with("verbs:")) return std::make_unique<NamedPlace>(options);
  return std::make_unique<PortPlace>(options);
}

int run(const Options& options, const std::string& mode) {
  const std::unique_ptr<Place> place = place_of(options);
  PollLoop loop(place->time(), options.idle);
  std::unique_ptr<End> end;
  if (mode == "serve") {
    end = std::make_unique<Server>(place->io(), options);
  } else {
    end = std::make_unique<Client>(place->io(), options);
  }
  loop.attach(place->io(), *end);
  if (mode == "serve") {
    std::puts("ready");
    std::fflush(stdout);
  }
  loop.run(Nanos::never(), [&] { return end->is_over(); });
  loop.run(loop.now() + kLinger);  // the peer may still need retransmissions

  Json json;
  json["mode"] = mode;
  if (!end->failure.empty()) throw RunError(fmt::format("the connection failed: {}", end->failure));
  if (const auto* client = dynamic_cast<const Client*>(end.get())) json.update(report(*client, options));
  const ShardStats& stats = end->shard.stats();
  json["sent_packets"] = stats.packets_sent;
  json["received_packets"] = stats.packets_received;
  json["rounds"] = loop.counters().rounds;
  json["stalls"] = loop.counters().stalls;
  place->tell(json);
  std::puts(json.dump().c_str());
  return 0;
}

/// Measures the rate at which memcpy copies messages, one after the other, between buffers like those of client and
/// server.
void copy(const Options& options) {
  const std::size_t depth = messages_under_way(options.size);
  std::vector<std::vector<std::byte>> from(depth, std::vector<std::byte>(options.size, std::byte{1}));
  std::vector<std::vector<std::byte>> to(2 * depth, std::vector<std::byte>(options.size));
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::uint64_t messages = 0;
  double warm = 0;  // time of the first pass, in which the kernel also allocates the pages
  double now = 0;
  for (; now - warm < options.seconds || messages < to.size(); ++messages) {
    if (messages == to.size()) warm = elapsed();
    std::memcpy(to[messages % to.size()].data(), from[messages % depth].data(), options.size);
    now = elapsed();
  }
  const auto counted = static_cast<double>(messages - to.size());
  Json json;
  json["mode"] = "copy";
  json["gbps"] = counted * static_cast<double>(options.size) * 8e-9 / (now - warm);
  std::puts(json.dump().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.connection.max_packets_in_flight = 512;
  CLI::App app("MLTCP between two processes, each on a port: goodput or round trips.");
  app.require_subcommand(1);
  const auto add = [&](CLI::App* mode) {
    mode->add_option("--device", options.port.device, "the port, as in af_xdp:eth0")->required();
    mode->add_option("--address", options.address, "own IPv4 address")->required();
    mode->add_option("--cores", options.cores, "the CPU to run on");
    mode->add_option("--mtu", options.port.mtu, "0: that of the interface");
    mode->add_option("--descriptors", options.port.descriptors, "packets that wait in a queue of the port");
    mode->add_option("--busy-budget", options.port.busy_budget, "AF_XDP: packets per busy poll; 0: none");
    mode->add_option("--size", options.size, "bytes of a message, the same at both ends")
        ->check(CLI::Range(1, 1 << 30));
    mode->add_option("--idle", options.idle, "spin, pause or sleep")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, Idle>{{"spin", Idle::spin}, {"pause", Idle::pause}, {"sleep", Idle::sleep}}));
    mode->add_option("--cc", options.connection.congestion_control, "congestion control");
    mode->add_option("--window", options.connection.max_packets_in_flight, "most packets under way");
    mode->add_option("--ack-every", options.connection.ack_every, "packets per acknowledgement; of the receiving end");
    mode->add_option("--adapt-ack-ratio", options.connection.adapt_ack_ratio,
                     "ask for fewer acknowledgements when much is in flight; of the sending end");
    mode->add_option("--ack-delay", options.connection.max_ack_delay.count, "ns that an acknowledgement waits");
    mode->add_option("--pack", options.connection.pack_messages, "short messages share packets");
    return mode;
  };
  add(app.add_subcommand("serve", "receive, and send back if asked to"))
      ->add_flag("--echo", options.echo, "send each message back: for ping");
  for (auto* mode : {add(app.add_subcommand("stream", "send messages one behind the other")),
                     add(app.add_subcommand("ping", "send a message, wait for it to come back"))}) {
    mode->add_option("--peer", options.peer, "the server's IPv4 address")->required();
    mode->add_option("--seconds", options.seconds, "that count")->check(CLI::Range(0.05, 3600.0));
    mode->add_option("--warm-up", options.warm_up, "seconds before")->check(CLI::Range(0.0, 60.0));
    mode->add_flag("--mltcp", options.mltcp, "as a job with MLTCP's gain");
  }
  auto* plain = app.add_subcommand("copy", "memcpy of messages in this process: the physical line");
  plain->add_option("--size", options.size, "bytes of a message")->check(CLI::Range(1, 1 << 30));
  plain->add_option("--seconds", options.seconds, "that count")->check(CLI::Range(0.05, 3600.0));
  bench::KernelLoop kernel;
  for (auto* mode : {app.add_subcommand("kernel-serve", "the receiving end of a bare loop on the kernel's sockets"),
                     app.add_subcommand("kernel", "the sending end")}) {
    mode->add_option("what", kernel.what, "segments, stream or echo")
        ->required()
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, bench::KernelLoop::What>{{"segments", bench::KernelLoop::What::segments},
                                                           {"stream", bench::KernelLoop::What::stream},
                                                           {"echo", bench::KernelLoop::What::echo}}));
    mode->add_option("--address", kernel.address, "own IPv4 address")->required();
    mode->add_option("--peer", kernel.peer, "the other end's IPv4 address");
    mode->add_option("--size", kernel.size, "bytes of a packet, a write or a message")->check(CLI::Range(1, 1 << 30));
    mode->add_option("--spins", kernel.spins, "echo: 1, or 0 to block");
    mode->add_option("--seconds", kernel.seconds, "that count")->check(CLI::Range(0.05, 3600.0));
    mode->add_option("--warm-up", kernel.warm_up, "seconds before")->check(CLI::Range(0.0, 60.0));
  }
  CLI11_PARSE(app, argc, argv);
  const std::string mode = app.get_subcommands().front()->get_name();
  if (mode == "ping") options.echo = true;
  try {
    if (mode == "copy") {
      copy(options);
      return 0;
    }
    if (mode.starts_with("kernel")) {
      (mode == "kernel" ? bench::run_kernel_loop : bench::serve_kernel_loop)(kernel);
      return 0;
    }
    return run(options, mode);
  } catch (const InputError& error) {
    std::fprintf(stderr, "port_bench: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "port_bench: %s\n", error.what());
    return 1;
  }
}
