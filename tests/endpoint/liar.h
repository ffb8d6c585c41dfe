// A cheating peer: a shard of the transport that imitates an endpoint and sends frames that no endpoint would send.
// Each test has a pair of honest endpoints, one of which is the attacker's victim.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "endpoint_pair.h"
#include "mltcp/endpoint/internal/frames.h"
#include "mltcp/transport/shard.h"

namespace mltcp::endpoint::testing_attacker {

using namespace testing_pair;

/// Connects to the victim like an endpoint, and then sends the frames that the test selects. `host` is the attacker's
/// number in the network.
class Attacker {
 public:
  Attacker(loop_network::Network& network, const EndpointAddress& victim, std::uint8_t host = 9)
      : io_(network, Address::v4(0x0A000000U + host, 50'000)),
        shard_(io_, {.seed = host}),
        network_(network),
        victim_(victim),
        self_(Address::v4(0x0A000000U + host, 50'000), 1, {host, host, host}) {
    config_.give_up_after = 200_ms;
    config_.idle_limit = 200_ms;
    config_.keep_alive = 50_ms;
    config_.max_sends = config_.max_receives = 4096;
  }

  void connect(bool tagged, bool with_data = true) {
    control = shard_.connect(victim_.base(), config_, now());
    if (tagged && with_data) data = shard_.connect(victim_.base(), config_, now());
  }
  [[nodiscard]] Hello hello(bool tagged, bool is_data = false) const {
    Hello hello;
    hello.kind = tagged ? ConnectionKind::tagged : ConnectionKind::ordered;
    hello.is_data = is_data;
    hello.token = 4711;
    hello.meant = victim_.id();
    hello.eager_limit = 1024;
    hello.unexpected_messages = 4;
    hello.from = self_;
    return hello;
  }
  void say(ConnectionId connection, const Hello& hello) {
    HelloBuffer buffer;
    write(hello, buffer);
    say(connection, buffer);
  }
  void say(ConnectionId connection, std::span<const std::byte> bytes) {
    said_.emplace_back(bytes.begin(), bytes.end());
    shard_.send(connection, said_.back(), 1);
  }
  void say(const Frame& frame, std::size_t payload = 0) {
    ByteVector bytes(Frame::kHeaderBytes + payload, std::byte{7});
    write(frame, std::span<std::byte, Frame::kHeaderBytes>(bytes.data(), Frame::kHeaderBytes));
    say(control, bytes);
  }
  void listen(ConnectionId connection, std::size_t buffers) {
    for (std::size_t i = 0; i < buffers; ++i) {
      heard_.emplace_back(4096);
      shard_.receive(connection, heard_.back(), heard_.size() - 1);
    }
  }
  void greet_tagged() {
    connect(true);
    listen(control, 60);
    listen(data, 1);
    say(control, hello(true));
    say(data, hello(true, true));
  }
  /// Accepts connections. The latest connection becomes `control`, with a buffer for its hello.
  void accept_all() { shard_.listen(config_); }
  [[nodiscard]] const EndpointAddress& address() const { return self_; }
  void close(ConnectionId connection) { shard_.close(connection); }
  void accept_data(std::size_t buffers) { listen(data, buffers); }
  void poll() {
    shard_.poll(now());
    Completion completion;
    while (shard_.take_completions({&completion, 1}) == 1) {
      if (completion.kind == mltcp::Completion::Kind::closed) ++closed;
      if (completion.kind == mltcp::Completion::Kind::accepted) {
        control = completion.connection;
        listen(control, 1);
      }
      if (completion.kind == mltcp::Completion::Kind::received && completion.bytes == Hello::bytes)
        asked = parse(std::span(heard_[completion.tag]).first(Hello::bytes), question) == Verdict::fine;
      if (completion.kind != mltcp::Completion::Kind::received || completion.status != Status::ok) continue;
      const auto came = std::span<const std::byte>(heard_[completion.tag]).first(completion.bytes);
      if (completion.connection == data) came_as_data.push_back(completion.bytes);
      Frame frame;
      if (completion.connection == control && parse(came, frame)) frames.push_back(frame);
      if (on_bytes) on_bytes(came);
      if (listens_on) shard_.receive(completion.connection, heard_[completion.tag], completion.tag);
    }
  }
  [[nodiscard]] bool heard(FrameType type) const {
    return std::any_of(frames.begin(), frames.end(), [&](const Frame& frame) { return frame.type == type; });
  }
  [[nodiscard]] const Frame& last() const { return frames.back(); }
  void die() { dead = true; }

  ConnectionId control = 0;
  ConnectionId data = 0;
  int closed = 0;
  bool asked = false;  ///< whether a hello has arrived, which is then in `question`
  Hello question;
  bool dead = false;
  std::vector<Frame> frames;
  /// Lengths of messages on `data`. The first is the length of the hello.
  std::vector<Bytes> came_as_data;
  std::function<void(std::span<const std::byte>)> on_bytes;  ///< called with every message that arrives
  bool listens_on = false;                                   ///< whether each buffer is posted again after use

 private:
  using Completion = mltcp::Completion;
  [[nodiscard]] Nanos now() const { return Nanos(network_.time); }

  loop_network::LoopIo io_;
  Shard shard_;
  loop_network::Network& network_;
  EndpointAddress victim_;
  EndpointAddress self_;
  ConnectionConfig config_;
  std::deque<ByteVector> said_;
  std::deque<ByteVector> heard_;
};

class AttackerTest : public EndpointPair {
 protected:
  AttackerTest() {
    open();
    connect(ConnectionKind::tagged);
    attacker = std::make_unique<Attacker>(*network, right->address());
    each_step = [this] {
      if (attacker != nullptr && !attacker->dead) attacker->poll();
    };
  }
  ~AttackerTest() override {
    each_step = nullptr;
    attacker.reset();
  }
  void renew_attacker() {
    attacker.reset();
    run_for(5_ms);
    attacker = std::make_unique<Attacker>(*network, right->address());
  }
  /// Opens a tagged connection from the attacker and returns the victim's handle.
  ConnectionHandle greet() {
    attacker->frames.clear();
    attacker->greet_tagged();
    return accept();
  }
  ConnectionHandle accept() {
    const Completion accepted = event(*right);
    EXPECT_EQ(accepted.kind, Completion::Kind::accepted);
    return accepted.connection;
  }
  EndpointReport report() {
    EndpointReport all;
    EXPECT_EQ(right->report(all), Code::ok);
    return all;
  }
  /// Expects that the attacker's connection has ended with `cause`, and that the honest connection works.
  void expect_broken(Cause cause) {
    const Completion closed = event(*right, 100_ms);
    EXPECT_EQ(closed.kind, Completion::Kind::closed);
    EXPECT_TRUE(ended(closed, Code::protocol, cause));
    EXPECT_EQ(report().broken_protocols, 1U);
    expect_honest_goes_on();
  }
  void expect_honest_goes_on() {
    expect_honest_goes_on_beside();
    EXPECT_EQ(report().connections, 1U);
  }
  void expect_honest_goes_on_beside() {
    const ByteVector message = bytes_of(20'000);
    ByteVector buffer(20'000);
    const OperationHandle receiving = receive_tagged(*right, there, buffer, 12);
    send_tagged(*left, here, message, 12);
    EXPECT_EQ(end_of(*right, receiving).code, Code::ok);
    EXPECT_EQ(buffer, message);
  }

  std::unique_ptr<Attacker> attacker;
};

}  // namespace mltcp::endpoint::testing_attacker
