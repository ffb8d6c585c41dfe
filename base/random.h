// Seeded random numbers that are the same on every machine and with every standard library.
//
// The generator is xoshiro256** 1.0 (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS
// 2021); SplitMix64 fills its state. The distributions are implemented here because the distributions of <random>
// differ between libraries, and a simulation must give the same result from the same seed everywhere.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "mltcp/base/units.h"

namespace mltcp {

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed = 1) {
    for (auto& word : state_) word = split_mix(seed);
  }

  /// Returns an independent random stream, determined by `seed` and the stream's `number`.
  static constexpr Random stream(std::uint64_t seed, std::uint64_t number) {
    std::uint64_t mixed = seed;
    const std::uint64_t first = split_mix(mixed);
    return Random(first ^ (number * 0x9E3779B97F4A7C15ULL + 0xD1B54A32D192ED03ULL));
  }

  /// Returns a number that is uniform over all 64-bit values.
  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  /// Returns a number that is uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Returns a number that is uniform in [0, bound); `bound` must not be 0. For bounds below 2^32 the bias is below
  /// 2^-32.
  constexpr std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Uint128>(next()) * bound) >> 64);
  }
  /// Returns true with probability `p`. Draws no number if p is 0 or less.
  constexpr bool chance(double p) { return p > 0 && uniform() < p; }
  /// Returns a normally distributed number with mean 0 and standard deviation 1 (Box-Muller, one value of each pair).
  double normal() {
    const double u = 1.0 - uniform();
    const double v = uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

 private:
  static constexpr std::uint64_t split_mix(std::uint64_t& x) {
    std::uint64_t z = (x += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace mltcp
