// FNV-1a with 128 bits (Fowler, Noll, Vo): a hash to detect accidental differences, not secure against an adversary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp {

class Fingerprint {
 public:
  /// Adding texts one by one is equivalent to adding their concatenation.
  constexpr Fingerprint& add(std::string_view text) {
    for (const char byte : text) value_ = (value_ ^ static_cast<unsigned char>(byte)) * kPrime;
    return *this;
  }
  /// The hash as 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string text() const {
    std::string digits(32, '0');
    Uint128 rest = value_;
    for (std::size_t i = digits.size(); i-- > 0; rest >>= 4U) digits[i] = "0123456789abcdef"[rest & 15U];
    return digits;
  }

 private:
  static constexpr Uint128 kPrime = (Uint128{1} << 88U) + 0x13B;
  Uint128 value_ = (Uint128{0x6C62272E07BB0142} << 64U) + 0x62B821756295C58D;
};

}  // namespace mltcp
