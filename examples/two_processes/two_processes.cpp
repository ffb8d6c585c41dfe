// Two processes exchange messages over ports of any kind: one receives, the other sends. Over the kernel's UDP sockets,
// they need no privileges, and run on two machines or on one. Their addresses must be addresses of the kernel:
//
//   two_processes receive udp: 127.0.0.1/8
//   two_processes send    udp: 127.0.0.2/8 127.0.0.1
//
// On one machine, the processes can also use shared memory, without privileges:
//
//   two_processes receive memif:/tmp/m.sock,role=server 10.0.0.1/24
//   two_processes send    memif:/tmp/m.sock,role=client 10.0.0.2/24 10.0.0.1
//
// Over network interfaces of the kernel, through DPDK, the processes need root:
//
//   two_processes receive af_packet:eth0 10.0.0.1/24
//   two_processes send    af_packet:eth0 10.0.0.2/24 10.0.0.1
//
// For all ports except udp:, the kernel must not have these addresses, because the program's own transport uses them.
#include <fmt/format.h>
#include <mltcp/base/error.h>
#include <mltcp/dpdk/register_datapath.h>
#include <mltcp/socket/register_datapath.h>
#include <mltcp/transport/host_datapath.h>
#include <mltcp/transport/poll_loop.h>
#include <mltcp/transport/shard.h>
#include <mltcp/transport/udp_port.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace mltcp::literals;

constexpr std::size_t kMessages = 100;
constexpr std::size_t kMessageBytes = 1'000'000;
constexpr mltcp::Nanos kPatience = 20_s;

/// Returns byte `i` of every message.
std::byte byte_at(std::size_t i) { return static_cast<std::byte>(i * 131); }

/// One side of the connection. The loop calls poll(), which does all of the program's work.
struct End : mltcp::Pollable {
  explicit End(mltcp::PacketIo& io) : shard(io, {}) {}

  mltcp::Nanos poll(mltcp::Nanos now) override {
    const mltcp::Nanos next = shard.poll(now);
    mltcp::Completion completion;
    bool any = false;
    while (shard.take_completions({&completion, 1}) == 1) {
      on(completion);
      any = true;
    }
    return any ? std::min(next, shard.poll(now)) : next;  // sends at once what on() has posted
  }
  virtual void on(const mltcp::Completion& completion) = 0;

  mltcp::Shard shard;
  std::size_t done = 0;  ///< number of messages
  bool is_closed = false;
};

struct Receiver final : End {
  explicit Receiver(mltcp::PacketIo& io) : End(io), buffer(kMessageBytes) { shard.listen({}); }

  void on(const mltcp::Completion& completion) override {
    using Kind = mltcp::Completion::Kind;
    if (completion.kind == Kind::closed) {
      is_closed = true;
      return;
    }
    if (completion.kind == Kind::received && completion.status == mltcp::Status::ok) {
      ++done;
      for (std::size_t i = 0; i < buffer.size(); ++i) wrong += buffer[i] == byte_at(i) ? 0U : 1U;
    }
    // A sender waits until its peer has posted a buffer. So the receiver can use one buffer for all messages.
    if (completion.kind == Kind::accepted || completion.kind == Kind::received)
      shard.receive(completion.connection, buffer, 0);
  }

  std::vector<std::byte> buffer;
  std::size_t wrong = 0;
};

struct Sender final : End {
  Sender(mltcp::PacketIo& io, const mltcp::Address& peer, mltcp::Nanos now) : End(io), message(kMessageBytes) {
    for (std::size_t i = 0; i < message.size(); ++i) message[i] = byte_at(i);
    connection = shard.connect(peer, {}, now);  // the shard finds out the peer's MAC address
    for (std::size_t i = 0; i < kMessages; ++i) shard.send(connection, message, i);
  }

  void on(const mltcp::Completion& completion) override {
    using Kind = mltcp::Completion::Kind;
    if (completion.kind == Kind::sent && completion.status == mltcp::Status::ok && ++done == kMessages)
      shard.close(connection);
    if (completion.kind == Kind::closed) is_closed = true;
  }

  std::vector<std::byte> message;  ///< unchanged while the transport sends it
  mltcp::ConnectionId connection = 0;
};

int run(const std::vector<std::string>& arguments) {
  const bool sends = arguments[0] == "send";
  mltcp::socket::register_datapath();  // registers the kinds of ports that this program can open
  mltcp::dpdk::register_datapath();
  mltcp::HostDatapathConfig config;
  config.device = arguments[1];
  config.sleeps = true;  // the loop sleeps until a packet arrives
  const mltcp::AddressPrefix own = mltcp::AddressPrefix::parse(arguments[2]);
  mltcp::HostPlace place;
  place.address = own.address;
  place.address.port = mltcp::kDefaultUdpPort;
  place.prefix_bits = own.bits;

  const auto host = mltcp::open_host_datapath(config);  // opens the port
  host->take_place(place);  // gives the port an address, and creates a datapath for each shard
  mltcp::PacketIo& io = host->io(0);

  mltcp::PollLoop loop(host->time(), mltcp::Idle::sleep);
  const mltcp::Nanos end = loop.now() + kPatience;
  if (sends) {
    Sender sender(io, mltcp::Address::parse(arguments[3], mltcp::kDefaultUdpPort), loop.now());
    loop.attach(io, sender);
    loop.run(end, [&] { return sender.is_closed; });
    fmt::print("sent {} messages\n", sender.done);
    return sender.done == kMessages ? 0 : 1;
  }
  Receiver receiver(io);
  loop.attach(io, receiver);
  fmt::print("ready\n");
  std::fflush(stdout);
  loop.run(end, [&] { return receiver.is_closed; });
  loop.run(loop.now() + 200_ms);  // gives time to acknowledge the end of the connection, even after a loss
  fmt::print("received {} messages, {} bytes of them wrong\n", receiver.done, receiver.wrong);
  return receiver.done == kMessages && receiver.wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool receives = arguments.size() == 3 && arguments[0] == "receive";
  if (!receives && !(arguments.size() == 4 && arguments[0] == "send"))
    throw mltcp::InputError(
        "write two_processes receive DEVICE IP/PREFIX, or two_processes send DEVICE IP/PREFIX PEER");
  return run(arguments);
} catch (const mltcp::InputError& error) {
  fmt::print(stderr, "two_processes: {}\n", error.what());
  return 2;
} catch (const std::exception& error) {
  fmt::print(stderr, "two_processes: {}\n", error.what());
  return 1;
}
