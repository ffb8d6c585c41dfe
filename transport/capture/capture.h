// A capture: packets of one or several interfaces into a pcapng file, while the data path goes on undisturbed.
//
// In real time each interface has a ring of bytes between its thread, the only producer, and a thread of the capture's
// own that writes the file, ordered by time. Where the ring is full the packet is not captured, and counted. A disk
// that is full or slow costs packets of the capture and nothing else. In virtual time nothing can be late: packets are
// written as they come, in the thread that runs the network, and the file is the same every time.
//
// The data path sees CapturedIo (captured_io.h) and FrameTap (transport/ethernet/frame_tap.h), and they see Tap.
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

  /// The time to give with packets: in virtual time the network's, else since 1970.
  [[nodiscard]] Nanos now() const;
  void received(const RxPacket& packet, Nanos time) noexcept;
  void sent(const TxPacket& packet, Nanos time) noexcept;
  /// Ethernet frames, for Capture::add_ethernet().
  void frame(Way way, std::span<const std::byte> first, std::size_t frame_bytes) noexcept override;

  /// Those that the interface had, and those of them that are not in the file.
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
  const std::uint32_t snap_bytes_;  ///< of what is recorded: headers are made later
  std::unique_ptr<Inside> inside_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

class Capture {
 public:
  /// In virtual time, by the clock of a network; it is asked for each packet.
  Capture(const CaptureOptions& options, std::function<Nanos()> virtual_time);
  /// In real time. Both throw RunError if the file can't be written.
  explicit Capture(const CaptureOptions& options);
  /// As finish().
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// An interface whose UDP payloads are recorded; IP and UDP headers are made for them as the datapath sends them:
  /// addresses, ECN codepoint, DSCP class selector, and a TTL of 64 less `hops`. Before start(). The tap lives as long
  /// as the capture.
  Tap& add(std::string name, std::string description, const Address& own);
  /// An interface of Ethernet frames.
  Tap& add_ethernet(std::string name, std::string description);
  /// Packets are recorded from now on; in real time the writer begins. Throws RunError if there is no thread for it,
  /// or if the files are to be too small for the interfaces.
  void start();

  struct Summary {
    std::uint64_t seen = 0;
    std::uint64_t dropped = 0;  ///< of these, not in the file
    bool is_full = false;       ///< the file reached its size
    std::string failure;        ///< why it could not be written to the end
    std::string file;           ///< the newest of several
  };
  /// Nobody records any more. Writes what is left, and the counters of each interface. May be called again.
  Summary finish();
  /// What finish() has returned, for people: "132 packets in run.pcapng", and what is missing. `is_complete`: nothing
  /// is.
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
