// Hosts that exchange random traffic over networks with faults, and check the transport's guarantees at every step. A
// round consists of connections, messages, deadlines, cancelled operations, jobs, closes, aborts and restarts, all
// drawn from one seed. A violated guarantee is thrown as a Violation.
//
// First, a round draws the settings of shards, connections and keys, and the severity of the network's faults. Then the
// round has these phases:
//
//   busy      programs take random actions; the network has faults at times; hosts stand still and restart
//   settling  the network has no faults: every message that has a buffer arrives
//   closing   all connections are closed, and end
//   proving   each host connects to the next host, and a message arrives
//   ending    the connections of phase proving are closed, and end
//   over      nothing is left: no connection, no memory, no timer
//
// Every step checks these guarantees. The memory for holes in received data and the number of half-open connections are
// within their limits. Each operation completes once. Messages arrive as ledger.h requires. A message that has a buffer
// makes progress while the network has no faults. While connections have to end, data arrives or an operation completes
// at least once in each `patience_`. A client without the key is never accepted.
//
// Sans-IO: hosts are Pollables. The network that carries their packets drives all of them in one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/lab/experiment/traffic/faulty_io.h"
#include "mltcp/lab/experiment/traffic/ledger.h"
#include "mltcp/transport/pollable.h"
#include "mltcp/transport/shard.h"

namespace mltcp::experiment {

struct TrafficSettings {
  std::uint64_t seed = 1;
  Nanos busy{20'000'000};  ///< duration of phase busy
  /// True if time passes while the processor does other work. Hosts then act less often and wait longer.
  bool real_time = false;
  /// True if hosts with even numbers connect only to hosts with odd numbers, and vice versa.
  bool two_sides = false;
};

struct TrafficCounts {
  std::uint64_t connections = 0;  ///< connections opened at both ends
  std::uint64_t messages = 0;     ///< messages that arrived unchanged
  /// Bytes received in messages; compared with the expected bytes if the message could be identified.
  Bytes bytes = 0;
  std::uint64_t operations = 0;  ///< operations that completed, with any status
  std::uint64_t refused = 0;     ///< connections that ended before they were open at the client
  std::uint64_t restarts = 0;
  std::uint64_t stand_stills = 0;
  FaultCounts faults;
  void add(const TrafficCounts& other);
};

class Traffic {
 public:
  enum class Phase : std::uint8_t { busy, settling, closing, proving, ending, over };
  struct Place {
    PacketIo* io = nullptr;
    Address address;
  };

  /// `places` must contain two or more places. The PacketIo of each place must outlive this object.
  Traffic(const TrafficSettings& settings, const std::vector<Place>& places);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  /// pollable() returns the host, which the caller polls. io() returns the PacketIo that the host uses. It adds faults
  /// to the PacketIo of the host's place.
  [[nodiscard]] Pollable& pollable(std::size_t host);
  [[nodiscard]] PacketIo& io(std::size_t host);

  /// Ends phase busy soon.
  void end_soon() { wants_end_ = true; }
  [[nodiscard]] bool is_over() const { return phase_ == Phase::over; }
  [[nodiscard]] TrafficCounts counts() const;
  /// Returns a text that helps people to find the cause of a Violation: settings, phase, and the state of each
  /// connection.
  [[nodiscard]] std::string state() const;

 private:
  struct Host;
  struct End {
    std::size_t host = 0;
    ConnectionId id = 0;
    bool open = false;
    bool closing = false;     ///< close() or abort() was called
    bool ended = false;       ///< true if the connection has ended at this end, or if the host is gone
    Status how = Status::ok;  ///< status with which the connection ended
    [[nodiscard]] bool is_live() const { return open && !closing && !ended; }
  };
  struct Watch {
    std::uint64_t messages = 0;
    Bytes end_of_next = 0;
    Nanos since;
    Nanos between;  ///< longest time between packets, by the sender's pacing rates since time `since`
  };
  /// A connection, as the programs at both ends know it.
  struct Link {
    Link(std::uint32_t number, std::size_t from, std::size_t to)
        : client{.host = from}, server{.host = to}, up(2 * number), down(2 * number + 1) {}
    End client;
    End server;
    Ledger up;  ///< messages from client to server
    Ledger down;
    Watch up_watch;
    Watch down_watch;
    bool has_no_key = false;  ///< true if the client has no valid key; the server must not accept it
    bool is_proof = false;
  };
  struct Direction {
    Ledger& ledger;
    End& sender;
    End& receiver;
    Watch& watch;
  };
  /// An accepted connection whose client has not yet identified it.
  struct Introduction {
    std::vector<std::byte> buffer;
  };
  struct Side {
    std::size_t link = 0;
    bool is_client = false;
  };

  static constexpr std::size_t kHelloBytes = 64;
  static constexpr std::uint64_t kDiscardedTag = std::uint64_t{1} << 40;

  void draw_settings();
  [[nodiscard]] ConnectionConfig draw_connection();
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  [[nodiscard]] Nanos up_to(Nanos max) {
    return Nanos(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(max.count) + 1)));
  }

  Nanos poll(Host& host, Nanos now);
  void start(Host& host);
  void restart(Host& host);
  void take(Host& host, const Completion& completion);
  void take_introduction(Host& host, const Completion& completion);
  void bind(Host& host, ConnectionId id, const Completion& completion, std::vector<std::byte> hello);
  void check(const Host& host) const;

  void tick(Nanos now);
  void go_to(Phase phase);
  void change_weather();
  void make_well();
  void watch();
  void watch(const Direction& direction);
  /// Returns the time between packets at the sender's current pacing rate, or 0 if the sender's window is at least a
  /// packet.
  [[nodiscard]] Nanos between_packets(const End& sender) const;
  [[nodiscard]] bool is_expected(const Direction& direction) const;
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] bool is_quiet() const;
  /// Returns whether any shard still holds a connection.
  [[nodiscard]] bool has_connections() const;
  /// Returns a number that changes whenever data arrives or an operation completes.
  [[nodiscard]] std::uint64_t progress() const;
  void close_all();
  void prove();
  void expect_nothing_left();

  void act(Host& host);
  bool connect(Host& host, std::size_t to, bool is_proof);
  void act_on(Host& host, const Side& side);
  void post_sends(Host& host, Link& link, const Side& side, std::uint64_t max);
  void post_receives(Host& host, Link& link, const Side& side, std::uint64_t max);
  void act_on_job(Host& host, ConnectionId id);
  [[nodiscard]] Nanos deadline();

  [[nodiscard]] End& end_of(const Side& side) {
    return side.is_client ? links_[side.link].client : links_[side.link].server;
  }
  [[nodiscard]] End& other_end_of(const Side& side) {
    return side.is_client ? links_[side.link].server : links_[side.link].client;
  }
  [[nodiscard]] Ledger& out_of(const Side& side) {
    return side.is_client ? links_[side.link].up : links_[side.link].down;
  }
  [[nodiscard]] Ledger& in_of(const Side& side) {
    return side.is_client ? links_[side.link].down : links_[side.link].up;
  }

  const TrafficSettings settings_;
  Random random_;
  // Declared before the hosts, because shards may access the memory of messages until they are destroyed.
  std::deque<Link> links_;
  std::vector<std::unique_ptr<Host>> hosts_;

  // Settings of the round, drawn once.
  /// Keys of listeners and clients; empty if the round uses no keys.
  std::vector<std::shared_ptr<const PacketKey>> keys_;
  std::shared_ptr<const PacketKey> strange_key_;
  std::size_t max_links_ = 0;  ///< maximum number of open connections of a host
  Bytes max_bytes_ = 0;        ///< maximum length of a message
  std::uint64_t depth_ = 1;    ///< maximum number of open operations in a direction
  Nanos pace_;                 ///< mean time between actions of a program
  Nanos patient_;              ///< time from which keep-alive, idle and give-up times are derived
  Nanos give_up_after_;
  bool is_endless_ = false;
  double badness_ = 0;     ///< scale of the probabilities of faults, 0 to 1
  double restarting_ = 0;  ///< probability that an action is a restart
  double standing_ = 0;
  double ending_ = 0;  ///< probability that an action ends a connection
  bool with_jobs_ = false;
  bool with_deadlines_ = false;
  Nanos stall_bound_;
  Nanos patience_;

  Phase phase_ = Phase::busy;
  Nanos began_{-1};
  Nanos phase_since_;
  std::uint64_t progress_ = 0;
  Nanos progress_since_;
  Nanos now_;
  Nanos next_tick_;
  Nanos next_weather_;
  Nanos well_since_;
  bool is_well_ = true;
  bool wants_end_ = false;
  TrafficCounts counts_;
};

}  // namespace mltcp::experiment
