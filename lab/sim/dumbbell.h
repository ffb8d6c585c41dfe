// The dumbbell of lab/fabric/dumbbell.h in virtual time. Packets to a host on the right, from either side, take the
// bottleneck; packets to a host on the left take the reverse link.
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
  bool virtual_payload = false;                 ///< see NetworkOptions
  std::uint32_t transmit_queue_packets = 1024;  ///< see NetworkOptions
  Nanos usage_bin{1'000'000};                   ///< bin width of usage(), see fabric::UsageMeter
  std::size_t usage_bins = 16384;
  /// Model of polling loops. If it is on, the hosts on the right are ports of one machine with one receive loop, and
  /// all links belong to one switch.
  fabric::MachineModel machines;
};

class Dumbbell final : public Network {
 public:
  /// The UDP port of every host.
  static constexpr std::uint16_t kPort = 4793;

  /// Throws InputError if `config` or `options` are out of range. The two shared links have independent faults and
  /// marking even with equal seeds.
  explicit Dumbbell(const fabric::DumbbellConfig& config, const DumbbellOptions& options = {});

  [[nodiscard]] std::uint32_t pairs() const { return static_cast<std::uint32_t>(left_.size()); }
  /// Host number `pair`, below pairs(), on each side. Its address is 10.1.(pair / 250).(pair % 250 + 1) on the left,
  /// and 10.2... on the right.
  [[nodiscard]] Host& left(std::uint32_t pair) { return *left_[pair]; }
  [[nodiscard]] Host& right(std::uint32_t pair) { return *right_[pair]; }

  /// The shared link from left to right.
  [[nodiscard]] LinkId bottleneck_id() const { return bottleneck_; }
  /// The bottleneck itself; only if DumbbellConfig::classes is 1.
  [[nodiscard]] fabric::Link& bottleneck() { return link(bottleneck_); }
  [[nodiscard]] const fabric::Link& bottleneck() const { return link(bottleneck_); }
  /// The shared link from right to left; only if DumbbellConfig::classes is 1.
  [[nodiscard]] fabric::Link& reverse() { return link(reverse_); }
  [[nodiscard]] const fabric::Link& reverse() const { return link(reverse_); }
  /// Bytes on the wire of each job on the bottleneck over time, including lost packets.
  [[nodiscard]] const fabric::UsageMeter& usage() const { return usage_; }

 private:
  std::vector<Host*> left_;
  std::vector<Host*> right_;
  LinkId bottleneck_ = 0;
  LinkId reverse_ = 0;
  fabric::UsageMeter usage_;
};

}  // namespace mltcp::sim
