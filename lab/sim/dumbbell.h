// The dumbbell of lab/fabric/dumbbell.h in virtual time. All packets to hosts on the right use the bottleneck. All
// packets to hosts on the left use the reverse link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/fabric/dumbbell.h"
#include "mltcp/lab/fabric/usage_meter.h"
#include "mltcp/lab/sim/network.h"

namespace mltcp::sim {

struct DumbbellOptions {
  bool virtual_payload = false;                 ///< whether hosts accept virtual payloads; see NetworkOptions
  std::uint32_t transmit_queue_packets = 1024;  ///< length of each host's transmit queue; see NetworkOptions
  Nanos usage_bin{1'000'000};                   ///< bin width of usage(); see fabric::UsageMeter
  std::size_t usage_bins = 16384;
  /// Model of polling loops. If it is on, one receive loop polls all hosts on the right, as ports of one machine, and
  /// one switch loop forwards on both shared links.
  fabric::MachineModel machines;
};

class Dumbbell final : public Network {
 public:
  /// The UDP port of every host.
  static constexpr std::uint16_t kPort = 4793;

  /// Throws InputError if `config` or `options` are out of range. Faults and marking on the two shared links are
  /// independent, even if their seeds are equal.
  explicit Dumbbell(const fabric::DumbbellConfig& config, const DumbbellOptions& options = {});

  [[nodiscard]] std::uint32_t pairs() const { return static_cast<std::uint32_t>(left_.size()); }
  /// left() and right() return host number `pair` of a side. `pair` must be below pairs(). The address on the left is
  /// 10.1.(pair / 250).(pair % 250 + 1); on the right, the second byte is 2.
  [[nodiscard]] Host& left(std::uint32_t pair) { return *left_[pair]; }
  [[nodiscard]] Host& right(std::uint32_t pair) { return *right_[pair]; }

  /// Returns the number of the shared link from left to right.
  [[nodiscard]] LinkId bottleneck_id() const { return bottleneck_; }
  /// Returns the bottleneck link. DumbbellConfig::classes must be 1.
  [[nodiscard]] fabric::Link& bottleneck() { return link(bottleneck_); }
  [[nodiscard]] const fabric::Link& bottleneck() const { return link(bottleneck_); }
  /// Returns the shared link from right to left. DumbbellConfig::classes must be 1.
  [[nodiscard]] fabric::Link& reverse() { return link(reverse_); }
  [[nodiscard]] const fabric::Link& reverse() const { return link(reverse_); }
  /// Returns the wire bytes of each job on the bottleneck over time. They include packets that a fault lost.
  [[nodiscard]] const fabric::UsageMeter& usage() const { return usage_; }

 private:
  std::vector<Host*> left_;
  std::vector<Host*> right_;
  LinkId bottleneck_ = 0;
  LinkId reverse_ = 0;
  fabric::UsageMeter usage_;
};

}  // namespace mltcp::sim
