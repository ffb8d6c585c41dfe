// Units of the whole project: time in nanoseconds, rates in bits per second, sizes in bytes.
//
// Nanos is both a point in time (nanoseconds since an epoch chosen by the driver) and a duration: 64-bit signed, 292
// years. Rates are 64-bit unsigned. Products of bytes and rates use 128 bits where 64 may overflow.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace mltcp {

using Bytes = std::uint64_t;

__extension__ typedef unsigned __int128 Uint128;  // NOLINT(modernize-use-using): not before `using`

/// A time or a duration in nanoseconds.
struct Nanos {
  std::int64_t count = 0;

  constexpr Nanos() = default;
  constexpr explicit Nanos(std::int64_t nanoseconds) : count(nanoseconds) {}

  /// A time that is later than any real time.
  static constexpr Nanos never() { return Nanos(std::numeric_limits<std::int64_t>::max()); }
  /// `seconds` rounded to the nearest nanosecond; |seconds| below 9.2e9.
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
/// Offset of `time` within its period, for periods that begin at 0: from 0 to less than `period`. `period` must be
/// above 0.
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

  /// Transmission time of `bytes` at this rate, rounded up; at most 73 years, so that a few such times can be added.
  /// Requires a rate above 0.
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
  /// Number of whole bytes that fit into `duration`; 0 if it is negative.
  [[nodiscard]] constexpr Bytes bytes_in(Nanos duration) const {
    if (duration.count <= 0) return 0;
    const Uint128 bit_nanos = static_cast<Uint128>(bits_per_second) * static_cast<std::uint64_t>(duration.count);
    return static_cast<Bytes>(bit_nanos / 8'000'000'000ULL);
  }

  constexpr auto operator<=>(const Rate&) const = default;

 private:
  static constexpr auto kLongest = static_cast<std::uint64_t>(Nanos::never().count / 4);
};

/// Parsers of values with units, as in experiment files. White space around number and unit is ignored. All throw
/// InputError (base/error.h) that names the text, the cause and the accepted form.

/// A duration such as "150 ms"; units ns, us, ms, s, min. Not negative; below 292 years.
Nanos parse_duration(std::string_view text);
/// A size such as "13.5 MB"; units B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024). Not
/// negative.
Bytes parse_bytes(std::string_view text);
/// A rate such as "1 Gbps"; units bps, kbps, Mbps, Gbps, Tbps (powers of 1000). Not negative.
Rate parse_rate(std::string_view text);

/// The shortest text with a unit that the parsers read as the same value ("150 ms", "13.5 MB", "1 Gbps").
std::string to_text(Nanos duration);
std::string bytes_to_text(Bytes bytes);
std::string to_text(Rate rate);

}  // namespace mltcp
