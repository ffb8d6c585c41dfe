// The packet memory of a switch, shared by all of its output queues. There are two admission schemes.
//
// Dynamic thresholds (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
// IEEE/ACM Transactions on Networking 6(2), 1998): a queue may grow up to alpha times the memory that is currently
// free. If S queues are busy, each gets alpha / (1 + S alpha) of the memory. The rest stays free for queues that become
// busy later.
//
// Priority flow control (IEEE 802.1Qbb, now IEEE 802.1Q clause 36): queues do not drop packets. The memory counts the
// stored bytes of each ingress link and class. When a count rises above xoff, the memory asks the sender of the link to
// pause the class. When the count falls to xon or below, the memory asks the sender to resume the class. Packets that
// arrive before the pause takes effect are stored in the headroom of the link and class. They are dropped only if the
// headroom is full. A pause lasts until it is revoked: the model assumes that the switch refreshes pauses before they
// expire.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"

namespace mltcp::fabric {

struct PfcConfig {
  bool enabled = false;
  Bytes xoff_bytes = 0;  ///< a class is paused when its stored bytes from an ingress link exceed xoff; above 0
  Bytes xon_bytes = 0;   ///< a class is resumed when its stored bytes fall to xon or below; below xoff_bytes
};

struct SwitchMemoryConfig {
  Bytes bytes = 0;     ///< size of the shared memory; 0: each queue has a separate buffer
  double alpha = 1.0;  ///< factor of dynamic thresholds, which are used without PFC; above 0, at most 1000
  PfcConfig pfc;
};

class SwitchMemory {
 public:
  static constexpr std::uint32_t kClasses = 8;
  /// Ingress number of packets that are not subject to PFC.
  static constexpr std::uint32_t kNoIngress = 0xFFFFFFFF;

  /// A request to the sender of link `ingress` to pause or resume a class.
  struct Pause {
    std::uint32_t ingress = 0;
    std::uint8_t priority = 0;
    bool on = false;
  };

  /// Throws InputError if `config` is out of range.
  explicit SwitchMemory(const SwitchMemoryConfig& config);

  /// Registers an ingress link with `headroom` bytes for each class. Returns the number of the ingress link.
  std::uint32_t add_ingress(Bytes headroom);

  /// Returns the current maximum length in bytes of a queue whose packets are not subject to PFC.
  [[nodiscard]] Bytes threshold() const {
    return static_cast<Bytes>(config_.alpha * static_cast<double>(config_.bytes - used_));
  }
  /// Returns whether a packet of `bytes` from link `ingress` is admitted to a queue that holds `queue_bytes`.
  [[nodiscard]] bool admits(Bytes queue_bytes, std::uint32_t bytes, std::uint32_t ingress,
                            std::uint32_t priority) const {
    if (used_ + bytes > config_.bytes) return false;
    if (!config_.pfc.enabled || ingress == kNoIngress) return queue_bytes + bytes <= threshold();
    const Ingress& from = ingresses_[ingress];
    return from.bytes[priority] + bytes <= config_.pfc.xoff_bytes + from.headroom;
  }
  /// take() allocates the memory of an admitted packet; release() frees it.
  void take(std::uint32_t bytes, std::uint32_t ingress, std::uint32_t priority);
  void release(std::uint32_t bytes, std::uint32_t ingress, std::uint32_t priority);

  [[nodiscard]] bool has_pauses() const { return !pauses_.empty(); }
  /// Removes and returns the oldest pause request.
  Pause take_pause() {
    const Pause pause = pauses_.front();
    pauses_.pop();
    return pause;
  }

  [[nodiscard]] Bytes used() const { return used_; }
  [[nodiscard]] Bytes max_used() const { return max_used_; }
  [[nodiscard]] const SwitchMemoryConfig& config() const { return config_; }

 private:
  struct Ingress {
    Bytes headroom = 0;
    std::array<Bytes, kClasses> bytes{};
    std::array<bool, kClasses> paused{};
  };

  SwitchMemoryConfig config_;
  Bytes used_ = 0;
  Bytes max_used_ = 0;
  std::vector<Ingress> ingresses_;
  GrowableRing<Pause> pauses_;
};

}  // namespace mltcp::fabric
