// Units of the whole project: time in nanoseconds, rates in bits per second, sizes in bytes.
//
// Nanos is used both for durations and for points in time, which are nanoseconds since an epoch that the caller
// chooses. It is a signed 64-bit number and covers 292 years. Rates are unsigned 64-bit numbers. Products of bytes and
// rates use 128 bits where 64 may overflow.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace mltcp {

using Bytes = std::uint64_t;

__extension__ typedef unsigned __int128 Uint128;  // NOLINT(modernize-use-using): __extension__ cannot precede `using`

/// A time or a duration in nanoseconds.
struct Nanos {
  std::int64_t count = 0;

  constexpr Nanos() = default;
  constexpr explicit Nanos(std::int64_t nanoseconds) : count(nanoseconds) {}

  /// A time that is later than any real time.
  static constexpr Nanos never() { return Nanos(std::numeric_limits<std::int64_t>::max()); }
  /// Returns `seconds` rounded to the nearest nanosecond; |seconds| must be below 9.2e9.
  static constexpr Nanos from_seconds(double seconds) {
    return Nanos(static_cast<std::int64_t>(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5)));
  }

  [[nodiscard]] constexpr bool is_never() const { return count == never().count; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(count) * 1e-9; }
  [[nodiscard]] constexpr double millis() const { return static_cast<double>(count) * 1e-6; }

  constexpr auto operator<=>(const Nanos&) const = default;
  constexpr Nanos& operator+=(Nanos other) {
    count += other.count;
    return *this;
  }
  constexpr Nanos& operator-=(Nanos other) {
    count -= other.count;
    return *this;
  }
};

constexpr Nanos operator+(Nanos a, Nanos b) { return Nanos(a.count + b.count); }
constexpr Nanos operator-(Nanos a, Nanos b) { return Nanos(a.count - b.count); }
constexpr Nanos operator*(Nanos a, std::int64_t k) { return Nanos(a.count * k); }
constexpr Nanos operator/(Nanos a, std::int64_t k) { return Nanos(a.count / k); }
/// Returns the offset of `time` within its period, from 0 to less than `period`. Periods follow each other, and one
/// begins at time 0. `period` must be above 0.
constexpr Nanos modulo(Nanos time, Nanos period) {
  const std::int64_t rest = time.count % period.count;
  return Nanos(rest < 0 ? rest + period.count : rest);
}

namespace literals {
constexpr Nanos operator""_ns(unsigned long long n) { return Nanos(static_cast<std::int64_t>(n)); }
constexpr Nanos operator""_us(unsigned long long n) { return Nanos(static_cast<std::int64_t>(n) * 1'000); }
constexpr Nanos operator""_ms(unsigned long long n) { return Nanos(static_cast<std::int64_t>(n) * 1'000'000); }
constexpr Nanos operator""_s(unsigned long long n) { return Nanos(static_cast<std::int64_t>(n) * 1'000'000'000); }
}  // namespace literals

/// A data rate in bits per second. 0 means "no rate"; as a limit, 0 means unlimited.
struct Rate {
  std::uint64_t bits_per_second = 0;

  constexpr Rate() = default;
  constexpr explicit Rate(std::uint64_t bps) : bits_per_second(bps) {}

  static constexpr Rate from_gbps(double gbps) { return Rate(static_cast<std::uint64_t>(gbps * 1e9 + 0.5)); }

  [[nodiscard]] constexpr bool is_zero() const { return bits_per_second == 0; }
  [[nodiscard]] constexpr double gbps() const { return static_cast<double>(bits_per_second) * 1e-9; }

  /// Returns the transmission time of `bytes` at this rate, rounded up; at most 73 years, so that a few such times can
  /// be added. The rate must be above 0.
  [[nodiscard]] constexpr Nanos time_for(Bytes bytes) const {
    if (bytes < (std::uint64_t{1} << 30)) [[likely]] {
      const std::uint64_t bit_nanos = bytes * 8'000'000'000ULL;
      const std::uint64_t nanos = (bit_nanos + bits_per_second - 1) / bits_per_second;
      return Nanos(static_cast<std::int64_t>(nanos < kLongest ? nanos : kLongest));
    }
    const Uint128 bit_nanos = static_cast<Uint128>(bytes) * 8'000'000'000ULL;
    const Uint128 nanos = (bit_nanos + bits_per_second - 1) / bits_per_second;
    return Nanos(nanos < kLongest ? static_cast<std::int64_t>(nanos) : static_cast<std::int64_t>(kLongest));
  }
  /// Returns the number of whole bytes that fit into `duration`; 0 if `duration` is negative.
  [[nodiscard]] constexpr Bytes bytes_in(Nanos duration) const {
    if (duration.count <= 0) return 0;
    const Uint128 bit_nanos = static_cast<Uint128>(bits_per_second) * static_cast<std::uint64_t>(duration.count);
    return static_cast<Bytes>(bit_nanos / 8'000'000'000ULL);
  }

  constexpr auto operator<=>(const Rate&) const = default;

 private:
  static constexpr auto kLongest = static_cast<std::uint64_t>(Nanos::never().count / 4);
};

/// The parsers below read values with units, as in experiment files. They ignore white space around number and unit.
/// They throw InputError (base/error.h) that names the text, the cause and the accepted form.

/// Parses a duration such as "150 ms"; units ns, us, ms, s, min. The duration must be 0 or more, and below 292 years.
Nanos parse_duration(std::string_view text);
/// Parses a size such as "13.5 MB"; units B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024). The
/// size must not be negative.
Bytes parse_bytes(std::string_view text);
/// Parses a rate such as "1 Gbps"; units bps, kbps, Mbps, Gbps, Tbps (powers of 1000). The rate must not be negative.
Rate parse_rate(std::string_view text);

/// Returns a text with a unit, such as "150 ms", "13.5 MB" or "1 Gbps". The parsers above read it as the same value.
std::string to_text(Nanos duration);
std::string bytes_to_text(Bytes bytes);
std::string to_text(Rate rate);

}  // namespace mltcp
