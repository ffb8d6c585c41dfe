// Balancers: how a connection with several path values chooses the value of each packet. One table lists them all.
//
//   one      always the same value
//   spray    all values in turn, in a random order that is drawn again after each round
//   reps     recycles the values of packets that arrived without a congestion mark (Bonato et al., REPS,
//            arXiv 2407.21625). After a loss, it uses only such values for a while
//   bitmap   all values in turn, but values whose packets were marked or lost are left out for some turns
//   mixed    recycles as reps does; without a value to recycle, as bitmap
//   flowlet  one value until nothing is in flight, then a value that was not marked or lost. A training job has such a
//            gap in each iteration, so its packets stay in order
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mltcp {

/// What a connection knows about a path value.
struct PathValue {
  static constexpr std::uint8_t kRetiring = 2;  ///< lost packets in a row that retire a value

  std::uint64_t largest_acked = 0;  ///< highest acknowledged packet number with this value
  std::uint32_t latest = 0;       ///< low bits of the number of the latest packet with this value; see Paths::is_late()
  std::uint8_t penalty = 0;       ///< turns for which a balancer leaves the value out
  std::uint8_t last_penalty = 0;  ///< penalty after the latest mark or loss, reduced by packets without a mark
  std::uint8_t lost_in_a_row = 0;  ///< packets lost since one was acknowledged; at most kRetiring

  [[nodiscard]] bool is_retired() const { return lost_in_a_row >= kRetiring; }
};

class Balancer {
 public:
  virtual ~Balancer() = default;
  /// Returns the value of the next packet. `begins_burst`: whether nothing is in flight.
  virtual std::uint8_t next(std::span<PathValue> values, bool begins_burst) = 0;
  virtual void on_acked(std::span<PathValue> values, std::uint8_t path, bool is_marked) = 0;
  virtual void on_lost(std::span<PathValue> values, std::uint8_t path) = 0;
};

struct BalancerTable {
  std::string_view name;
  std::string_view description;
  /// Creates the state for a connection with `values` path values, 1 to kMaxPaths. `seed` determines random choices.
  std::unique_ptr<Balancer> (*make)(std::uint32_t values, std::uint64_t seed);
};

/// Returns all balancers; the first one is the default.
std::span<const BalancerTable> balancers();
/// Returns the balancer `name`. Throws InputError, with the names of all balancers, if there is none.
const BalancerTable& find_balancer(std::string_view name);

}  // namespace mltcp
