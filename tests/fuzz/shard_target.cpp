// Fuzzes shards. Two honest hosts execute the operations of the input in any order. The network loses, duplicates,
// delays and marks packets as the input states. An unknown peer connects to one host and sends arbitrary packets.
// Invariants:
//
// - at the honest hosts, every operation completes once
// - messages arrive unchanged and at most once, and fill the buffers in the order in which the buffers were posted
// - a message has arrived if its send completed without an error
// - connections end when they are closed, and no timer is pending after that
// - whatever the unknown peer has sent, a new connection works
//
// Input: settings (3 bytes), then operations.
#include <algorithm>
#include <array>
#include <utility>

#include "../transport/test_network.h"
#include "mltcp/lab/experiment/traffic/ledger.h"
#include "seal.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

using namespace testing_network;
using experiment::Ledger;

constexpr std::size_t kMaxOperations = 256;
constexpr std::size_t kNumberOfUnknownPeer = 2;  // hosts 0 and 1 are the honest ones

constexpr std::uint64_t kDiscardedTag = std::uint64_t{1} << 40;

/// Returns settings of the honest hosts, with limits so low that the inputs reach them.
ConnectionConfig config_of(std::uint8_t choices, std::uint8_t algorithm) {
  constexpr std::array<const char*, 6> algorithms{"reno", "cubic", "dctcp", "dcqcn", "swift", "nscc"};
  ConnectionConfig config;
  config.congestion_control = algorithms[algorithm % algorithms.size()];
  config.ecn = true;
  config.max_rate = Rate(10'000'000'000);  // DCQCN also begins at this rate
  config.full_integrity = (choices & 1) != 0;
  config.pack_messages = (choices & 2) == 0;
  config.credit_in_acks = (choices & 4) == 0;
  config.await_answer = (choices & 8) == 0;
  config.max_sends = (choices & 16) != 0 ? 3 : 64;
  config.max_receives = (choices & 32) != 0 ? 3 : 64;
  config.max_packets_in_flight = (choices & 64) != 0 ? 16 : 1024;
  if ((choices & 128) != 0) config.keep_alive = 2_s;
  return config;
}

PacketIo::Limits limits_of(std::uint8_t choices) {
  PacketIo::Limits limits;
  if ((choices & 1) != 0) limits.keeps_payload_from = 200;
  if ((choices & 2) != 0) limits.burst = 4;
  if ((choices & 4) != 0) limits.max_packet_bytes = wire::kSmallestPacket;
  if ((choices & 8) != 0) limits.batch = 4;
  return limits;
}

/// The limits are small, so that creating a shard takes little time.
const ShardConfig small_shard{.max_connections = 8, .max_jobs = 2, .max_completions = 512, .max_zero_copy_sends = 8};

class Run {
 public:
  Run(const ConnectionConfig& config, const PacketIo::Limits& limits, Program& program)
      : program_(program),
        config_(config),
        pair_(config, config, TestNetwork::kDefaultDelay, limits, small_shard),
        unknown_peer_(pair_.add(small_shard, limits)) {
    unknown_peer_.dead = true;
    pair_.logging = false;
    ids_ = pair_.connect();
    require(ids_.second != 0, "no connection over a network without faults");
    pair_.client().on_completion = [this](const Completion& completion) { take(completion, ids_.first, up_, down_); };
    pair_.server().on_completion = [this](const Completion& completion) { take(completion, ids_.second, down_, up_); };
    JobConfig job;
    job.number = 7;
    job.augmentation = cc::Augmentation::mltcp({});
    job.learn_iterations = true;
    job_ = pair_.c().add_job(job);
    pair_.fate = [this](const Parsed& packet, Fate& fate) {
      const wire::Frame* const accept = packet.find(wire::FrameType::accept);
      if (packet.to == kNumberOfUnknownPeer && accept != nullptr) strange_id_ = accept->connect.source_connection;
      decide(fate);
    };
  }

  void run() {
    for (std::size_t i = 0; i < kMaxOperations && !program_.has_ended(); ++i) {
      operate(program_.byte());
      pair_.wake_all();
      pair_.run_for(Nanos(static_cast<std::int64_t>(program_.byte()) * 1'000));
    }
    finish();
  }

 private:
  void take(const Completion& completion, ConnectionId own, Ledger& out, Ledger& in) {
    if (completion.connection != own) return;
    const bool at_client = own == ids_.first && &out == &up_;
    bool& is_closed = at_client ? client_closed_ : server_closed_;
    require(!is_closed, "a completion after the connection's last");
    switch (completion.kind) {
      case Completion::Kind::sent:
        return out.on_sent(completion.tag, completion.status);
      case Completion::Kind::received:
        if (completion.tag >= kDiscardedTag) {
          // The program already owns the buffer of a discarded receive, so the content of the message is not checked.
          static_cast<void>(in.on_received(completion.tag - kDiscardedTag, completion.status, completion.bytes));
          return;
        }
        static_cast<void>(in.on_received(completion.tag, completion.status, completion.bytes));
        return;
      case Completion::Kind::closed:
        is_closed = true;
        return;
      case Completion::Kind::connected:
      case Completion::Kind::accepted:
        require(false, "the connection is opened twice");
    }
  }

  /// Decides what happens to a packet. Each packet uses the next byte of the list `fates_`. After the last byte, the
  /// list starts again.
  void decide(Fate& fate) {
    if (fates_.empty()) return;
    const auto byte = std::to_integer<unsigned>(fates_[next_fate_++ % fates_.size()]);
    if ((byte & 7) == 1) fate.drop = true;
    if ((byte & 7) == 2) fate.copies = 2;
    if ((byte & 7) == 3) fate.ecn = Ecn::ce;
    if ((byte & 7) == 4) fate.extra_delay = Nanos(static_cast<std::int64_t>(byte) * 10'000);
  }

  Nanos deadline(std::uint8_t operation) {
    return (operation & 0x80) != 0 ? pair_.now() + Nanos(static_cast<std::int64_t>(program_.byte()) * 100'000)
                                   : Nanos::never();
  }
  void send(Shard& shard, ConnectionId id, Ledger& direction, std::uint8_t operation) {
    const auto message = direction.make((operation & 0x40) != 0 ? program_.number(2) : program_.byte());
    if (shard.send(id, message, direction.sends() - 1, deadline(operation)) != PostResult::ok) direction.take_back();
  }
  void receive(Shard& shard, ConnectionId id, Ledger& direction, std::uint8_t operation) {
    const auto buffer = direction.make_buffer((operation & 0x40) != 0 ? program_.number(2) : program_.byte());
    if (shard.receive(id, buffer, direction.receives() - 1, deadline(operation)) != PostResult::ok)
      direction.take_back_buffer();
  }

  /// Sends a packet of the unknown peer: a header that may match a connection, followed by bytes of the input as
  /// frames.
  void send_as_unknown_peer(std::uint8_t operation) {
    wire::Header header;
    header.flags = program_.byte();
    header.connection = (operation & 0x40) != 0 && strange_id_ != 0 ? strange_id_
                        : (operation & 0x20) != 0                   ? ids_.second
                                                                    : program_.byte();
    header.packet_number = (operation & 0x80) != 0 ? program_.number(8) : strange_number_++;
    header.span = (operation & 0x80) != 0 ? static_cast<std::uint32_t>(program_.number(4)) : 1;
    ByteVector packet(wire::kHeaderBytes);
    const auto frames = program_.bytes(program_.byte());
    wire::Writer writer(packet);
    static_cast<void>(writer.finish(header, {}));
    packet.insert(packet.end(), frames.begin(), frames.end());
    const auto size = static_cast<std::uint16_t>(packet.size());
    std::memcpy(packet.data() + 2, &size, sizeof size);
    packet[0] = std::byte{wire::magic};
    seal(packet);
    // The unknown peer knows the tag of its own connection only.
    const auto ecn = static_cast<Ecn>(operation & 3);
    if (header.connection == strange_id_ && strange_id_ != 0)
      pair_.inject(pair_.server(), unknown_peer_.address, std::move(packet), 0, ecn);
    else
      pair_.inject_as_it_is(pair_.server(), unknown_peer_.address, std::move(packet), 0, ecn);
  }

  void operate(std::uint8_t operation) {
    const bool at_client = (operation & 0x10) == 0;
    Shard& shard = at_client ? pair_.c() : pair_.s();
    const ConnectionId id = at_client ? ids_.first : ids_.second;
    Ledger& out = at_client ? up_ : down_;
    Ledger& in = at_client ? down_ : up_;
    switch (operation & 15) {
      case 0:
      case 1:
        return send(shard, id, out, operation);
      case 2:
      case 3:
        return receive(shard, id, in, operation);
      case 4:
        return pair_.run_for(Nanos(static_cast<std::int64_t>(program_.number(2)) * 10'000));
      case 5:
        fates_ = program_.bytes(program_.byte() % 32);
        next_fate_ = 0;
        return;
      case 6:
      case 7:
        return send_as_unknown_peer(operation);
      case 8:
        static_cast<void>(shard.cancel_send(id, program_.up_to(out.sends())));
        return;
      case 9:
        static_cast<void>(shard.cancel_receive(id, program_.up_to(in.receives())));
        return;
      case 10: {
        const std::uint64_t tag = program_.up_to(in.receives());
        if (tag < in.receives() && shard.discard_receive(id, tag, tag + kDiscardedTag)) {
          in.discard(tag);
        }
        return;
      }
      case 11:
        (at_client ? pair_.client() : pair_.server()).free_places = program_.byte() % 8;
        return;
      case 12:
        static_cast<void>(pair_.c().attach(ids_.first, job_));
        static_cast<void>(pair_.c().begin_iteration(job_, program_.number(2)));
        return;
      case 13:
        static_cast<void>(pair_.c().set_job_rate(job_, Rate(program_.number(4))));
        return;
      case 14:
        pair_.client().free_places = pair_.server().free_places = ~std::size_t{0};
        pair_.stand_still(Nanos(static_cast<std::int64_t>(program_.byte()) * 1'000'000));
        return;
      default:
        // Closing is rare: after it, all further operations of the input have no effect.
        if ((operation & 0x60) == 0x60)
          static_cast<void>(shard.close(id));
        else if ((operation & 0x60) == 0x40 && program_.byte() < 16)
          shard.abort(id, pair_.now());
        return;
    }
  }

  void finish() {
    fates_.clear();
    pair_.client().free_places = pair_.server().free_places = ~std::size_t{0};
    static_cast<void>(pair_.c().set_job_rate(job_, Rate(0)));
    pair_.run_for(10_ms);
    static_cast<void>(pair_.c().close(ids_.first));
    static_cast<void>(pair_.s().close(ids_.second));
    for (const Completion& completion : pair_.server().completions)
      if (completion.kind == Completion::Kind::accepted) static_cast<void>(pair_.s().close(completion.connection));
    // After 2 s of silence, a shard takes up to 30 s to give up a peer.
    pair_.run_for(200_s);
    require(client_closed_ && server_closed_, "a connection does not end");
    up_.expect_all_done();
    down_.expect_all_done();
    for (const Completion& completion : pair_.server().completions)
      require(!pair_.s().exists(completion.connection), "an unknown peer's connection does not end");
    // An ended connection occupies its slot for eight probe timeouts. This may take minutes if hosts stood still.
    const auto is_quiet = [&] {
      return pair_.c().poll(pair_.now()).is_never() && pair_.s().poll(pair_.now()).is_never();
    };
    for (int i = 0; i < 10 && !is_quiet(); ++i) pair_.run_for(200_s);
    require(is_quiet(), "a timer is due after the end of all connections");

    pair_.client().on_completion = nullptr;
    pair_.server().on_completion = nullptr;
    const auto [c, s] = pair_.connect();
    require(s != 0, "no new connection");
    const auto message = random_bytes(5000, 77);
    ByteVector buffer(message.size());
    require(pair_.s().receive(s, buffer, 4711) == PostResult::ok && pair_.c().send(c, message, 4711) == PostResult::ok,
            "nothing can be posted on a new connection");
    require(pair_.transfer(1, 1, 10_s) && buffer == message, "a new connection does not work");
  }

  Program& program_;
  ConnectionConfig config_;
  // Declared before the shards, which may access the memory of the messages until they are destroyed.
  Ledger up_{1};
  Ledger down_{2};
  Pair pair_;
  TestHost& unknown_peer_;
  std::pair<ConnectionId, ConnectionId> ids_;
  JobId job_ = 0;
  bool client_closed_ = false;
  bool server_closed_ = false;
  std::uint64_t strange_number_ = 0;
  ConnectionId strange_id_ = 0;  ///< the unknown peer's latest connection at the server; 0 if it has none
  ByteVector fates_;
  std::size_t next_fate_ = 0;
};

}  // namespace

void fuzz_shard(Input input) {
  Program program(input);
  const std::uint8_t choices = program.byte();
  const std::uint8_t algorithm = program.byte();
  const std::uint8_t limits = program.byte();
  try {
    Run(config_of(choices, algorithm), limits_of(limits), program).run();
  } catch (const experiment::Violation& violation) {
    throw Violation{violation.what};
  }
}

}  // namespace mltcp::fuzz
