// A capture: writes packets of one or several interfaces to a pcapng file, without disturbing the data path.
//
// In real time each interface has a ring of bytes between its thread, which is the only producer, and the capture's
// thread, which writes the file in the order of time. If the ring is full, the packet is counted but not captured. So a
// full or slow disk only costs packets of the capture. In virtual time packets are written at once, in the thread that
// runs the network, and the file is the same in every run.
//
// The data path uses CapturedIo (captured_io.h) and FrameTap (transport/ethernet/frame_tap.h), and these use Tap.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/ethernet/frame_tap.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::capture {

class Capture;
struct Record;

/// An interface of a capture. One thread at a time uses it. Nothing here allocates, locks or throws in real time.
class Tap final : public encap::FrameTap {
 public:
  ~Tap() override;
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  /// The time to pass with packets: in virtual time the network's, else the time since 1970.
  [[nodiscard]] Nanos now() const;
  void received(const RxPacket& packet, Nanos time) noexcept;
  void sent(const TxPacket& packet, Nanos time) noexcept;
  /// Ethernet frames, for Capture::add_ethernet().
  void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept override;

  /// Packets of the interface, and those of them that are not in the file.
  [[nodiscard]] std::uint64_t seen() const { return seen_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  friend class Capture;
  struct Inside;
  Tap(Capture& capture, std::uint32_t number, const Address& own, std::size_t ring_bytes);
  void put(Record& record, std::span<const std::byte> first, std::span<const std::byte> second) noexcept;

  Capture& capture_;
  const std::uint32_t number_;
  const Address own_;
  const std::uint32_t snap_bytes_;  ///< maximum recorded bytes; headers are made later
  std::unique_ptr<Inside> inside_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

class Capture {
 public:
  /// In virtual time: `virtual_time` is a network's clock, called for each packet.
  Capture(const CaptureOptions& options, std::function<Nanos()> virtual_time);
  /// In real time. Both throw RunError if the file cannot be written.
  explicit Capture(const CaptureOptions& options);
  /// As finish().
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// Adds an interface whose UDP payloads are recorded. IP and UDP headers are made for them as the datapath sends
  /// them: addresses, ECN codepoint, DSCP class selector, and a TTL of 64 minus `hops`. Call before start(). The tap
  /// lives as long as the capture.
  Tap& add(std::string name, std::string description, const Address& own);
  /// Adds an interface of Ethernet frames. Call before start().
  Tap& add_ethernet(std::string name, std::string description);
  /// Records packets from now on; in real time starts the writer. Throws RunError if its thread cannot be created, or
  /// if the maximum file size is too small for the interfaces.
  void start();

  struct Summary {
    std::uint64_t seen = 0;
    std::uint64_t dropped = 0;  ///< packets of `seen` that are not in the file
    bool is_full = false;       ///< the file reached its size
    std::string failure;        ///< why the file is incomplete
    std::string file;           ///< the newest of several
  };
  /// Call when nothing records any more. Writes the remaining packets and the counters of each interface. May be called
  /// again.
  Summary finish();
  /// The result of finish(), for people: "132 packets in run.pcapng", and what is missing. `is_complete`: nothing is
  /// missing.
  static std::string to_text(const Summary& summary, bool& is_complete);

 private:
  friend class Tap;
  struct Inside;
  Tap& add(std::string name, std::string description, const Address& own, bool ethernet);
  void write(std::uint32_t number, const Record& record, std::span<const std::byte> bytes);
  std::size_t drain(Nanos until);
  void run_writer();

  const CaptureOptions options_;
  const std::function<Nanos()> virtual_time_;
  std::vector<std::unique_ptr<Tap>> taps_;
  std::unique_ptr<Inside> inside_;
};

}  // namespace mltcp::capture
