// A capture: writes packets of one or several interfaces to a pcapng file, without disturbing the data path.
//
// In real time each interface has a ring of bytes. Only the thread of the interface adds packets to the ring. The
// capture's thread takes packets from all rings and writes them to the file in the order of time. If the ring is full,
// a packet is counted but not captured. So with a full or slow disk the capture loses packets, but the data path does
// not wait. In virtual time packets are written at once, in the thread that runs the network, and the file is the same
// in every run.
//
// On the data path, a CapturedIo (captured_io.h) or a forwarding port (transport/ethernet/frame_tap.h) passes packets
// to a Tap.
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

/// An interface of a capture. Must be used by one thread at a time. In real time its functions neither allocate, lock
/// nor throw.
class Tap final : public encap::FrameTap {
 public:
  ~Tap() override;
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  /// Returns the time that callers pass to received() and sent(). In virtual time it is the time of the network, in
  /// real time the time since 1970.
  [[nodiscard]] Nanos now() const;
  void received(const RxPacket& packet, Nanos time) noexcept;
  void sent(const TxPacket& packet, Nanos time) noexcept;
  /// Records an Ethernet frame. Call this function only on a Tap from Capture::add_ethernet().
  void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept override;

  /// seen() is the number of packets of the interface. dropped() is the number of these packets that are not in the
  /// file.
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
  const std::uint32_t snap_bytes_;  ///< maximum number of bytes of a packet that are put into the ring
  std::unique_ptr<Inside> inside_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

class Capture {
 public:
  /// Prepares a capture in virtual time. `virtual_time` returns the time of the network, and is called for each packet.
  /// Throws RunError if the file cannot be written.
  Capture(const CaptureOptions& options, std::function<Nanos()> virtual_time);
  /// Prepares a capture in real time. Throws RunError if the file cannot be written.
  explicit Capture(const CaptureOptions& options);
  /// Calls finish().
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// Adds an interface whose UDP payloads are recorded. The capture adds IP and UDP headers like those that the
  /// datapath sends: addresses, ECN codepoint, DSCP class selector, and a TTL of 64 minus the packet's hops. Call
  /// before start(). The tap is owned by the capture.
  Tap& add(std::string name, std::string description, const Address& own);
  /// Adds an interface for Ethernet frames. Call before start(). The tap is owned by the capture.
  Tap& add_ethernet(std::string name, std::string description);
  /// Starts recording. In real time, creates the writer's thread. Throws RunError if the thread cannot be created, or
  /// if the maximum file size is too small for the interfaces.
  void start();

  struct Summary {
    std::uint64_t seen = 0;
    std::uint64_t dropped = 0;  ///< number of the `seen` packets that are not in the file
    bool is_full = false;       ///< whether the file has reached its maximum size
    std::string failure;        ///< why the file is incomplete; empty if there was no error
    std::string file;           ///< name of the file, or of the newest of several files
  };
  /// Ends the capture: writes the remaining packets and the counters of each interface. Call when no thread records
  /// packets any more. May be called repeatedly.
  Summary finish();
  /// Returns the result of finish() as text for people: "132 packets in run.pcapng", and why packets are missing. Sets
  /// `is_complete` to true if no packet is missing, or else to false.
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
