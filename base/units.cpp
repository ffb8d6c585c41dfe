// Reads and writes values with units (see units.h).
#include "mltcp/base/units.h"

#include <fmt/format.h>

#include <array>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;  // size in the base unit: nanoseconds, bytes, bits per second
};

constexpr std::array<Unit, 5> kTimeUnits{
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}}};
constexpr std::array<Unit, 9> kByteUnits{{{"B", 1},
                                          {"kB", 1'000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000},
                                          {"TB", 1'000'000'000'000},
                                          {"KiB", 1ULL << 10},
                                          {"MiB", 1ULL << 20},
                                          {"GiB", 1ULL << 30},
                                          {"TiB", 1ULL << 40}}};
constexpr std::array<Unit, 5> kRateUnits{
    {{"bps", 1}, {"kbps", 1'000}, {"Mbps", 1'000'000}, {"Gbps", 1'000'000'000}, {"Tbps", 1'000'000'000'000}}};

template <std::size_t n>
std::string list(const std::array<Unit, n>& units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

// A decimal number as it was written: digits times ten to the power of `exponent`. Exact, because a double would round
// values above 2^53.
struct Decimal {
  Uint128 digits = 0;
  int exponent = 0;
  std::size_t length = 0;  // number of characters read; 0 if there is no number
  bool negative = false;
};

// Reads [+-]digits[.digits][e[+-]digits]. Drops digits after the 23rd significant digit. In any value in range, the
// dropped digits are worth less than a thousandth of a base unit.
Decimal read_decimal(std::string_view text) {
  constexpr Uint128 enough = Uint128{100'000'000'000} * 100'000'000'000;
  constexpr int far_exponent = 10'000;  // with a larger exponent, positive or negative, a number is too large or 0
  Decimal result;
  std::size_t i = 0;
  const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) result.negative = text[i++] == '-';
  bool any = false;
  bool fraction = false;
  for (; digit(i) || (!fraction && i < text.size() && text[i] == '.'); ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    any = true;
    if (result.digits < enough) {
      result.digits = result.digits * 10 + static_cast<unsigned>(text[i] - '0');
      if (fraction) --result.exponent;
    } else if (!fraction) {
      ++result.exponent;
    }
  }
  if (!any) return {};
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t at = i + 1;
    bool below_one = false;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) below_one = text[at++] == '-';
    if (digit(at)) {
      int power = 0;
      for (; digit(at); ++at)
        if (power < far_exponent) power = power * 10 + (text[at] - '0');
      result.exponent += below_one ? -power : power;
      i = at;
    }
  }
  result.length = i;
  return result;
}

template <std::size_t n>
std::uint64_t parse(std::string_view text, const std::array<Unit, n>& units, std::string_view what,
                    std::string_view example) {
  constexpr std::uint64_t largest = 9'200'000'000'000'000'000;  // 292 years in nanoseconds; fits into 63 bits
  const auto fail = [&](std::string_view why) {
    throw InputError(fmt::format("{} is not a {}: {}; write a number and one of the units {}, such as \"{}\"",
                                 in_quotes(text), what, why, list(units), example));
  };
  const std::string_view written = trimmed(text);
  const Decimal number = read_decimal(written);
  if (number.length == 0) fail("it does not begin with a number");
  if (number.negative && number.digits != 0) fail("it is negative");
  const std::string_view unit_name = trimmed(written.substr(number.length));
  if (unit_name.empty() && number.digits != 0) fail("the unit is missing");
  std::uint64_t factor = unit_name.empty() ? 1 : 0;
  for (const Unit& unit : units)
    if (unit.name == unit_name) factor = unit.factor;
  if (factor == 0) fail(fmt::format("unknown unit {}", in_quotes(unit_name)));
  Uint128 value = number.digits * factor;  // below 10^23 * 2^40, so below 2^117
  for (int power = number.exponent; power > 0 && value != 0; --power) {
    if (value > largest) fail("it is too large");
    value *= 10;
  }
  Uint128 divisor = 1;
  for (int power = number.exponent; power < 0 && divisor <= value * 2; ++power) divisor *= 10;
  value = divisor > value * 2 ? 0 : value / divisor + (value % divisor >= divisor - value % divisor ? 1 : 0);
  if (value > largest) fail("it is too large");
  return static_cast<std::uint64_t>(value);
}

// Writes the value in the largest unit in which it has at most three decimals, so that the text reads back exactly.
template <std::size_t n>
std::string write(std::uint64_t value, const std::array<Unit, n>& units, std::size_t count) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t factor = units[i].factor;
    if (value >= factor && (factor < 1000 ? value % factor == 0 : value % (factor / 1000) == 0)) best = i;
  }
  const std::uint64_t factor = units[best].factor;
  const std::uint64_t whole = value / factor;
  std::string text = fmt::format("{}", whole);
  if (value % factor != 0) {
    std::string decimals = fmt::format("{:03}", (value % factor) * 1000 / factor);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text += "." + decimals;
  }
  return fmt::format("{} {}", text, units[best].name);
}

}  // namespace

Nanos parse_duration(std::string_view text) {
  return Nanos(static_cast<std::int64_t>(parse(text, kTimeUnits, "duration", "150 ms")));
}
Bytes parse_bytes(std::string_view text) { return parse(text, kByteUnits, "size", "13.5 MB"); }
Rate parse_rate(std::string_view text) { return Rate(parse(text, kRateUnits, "rate", "1 Gbps")); }

std::string to_text(Nanos duration) {
  if (duration.is_never()) return "never";
  const std::string sign = duration.count < 0 ? "-" : "";
  const auto value =
      duration.count < 0 ? ~static_cast<std::uint64_t>(duration.count) + 1 : static_cast<std::uint64_t>(duration.count);
  return sign + write(value, kTimeUnits, 4);  // in ns, us, ms or s, because minutes are not divided decimally
}
std::string bytes_to_text(Bytes bytes) { return write(bytes, kByteUnits, 5); }
std::string to_text(Rate rate) { return write(rate.bits_per_second, kRateUnits, kRateUnits.size()); }

}  // namespace mltcp
