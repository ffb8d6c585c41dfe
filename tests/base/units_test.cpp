// Tests values with units: accepted texts, refused texts and their errors, and that written values can be read again.
#include "mltcp/base/units.h"

#include <limits>
#include <string>
#include <vector>

#include "../message_of.h"
#include "mltcp/base/random.h"

namespace mltcp {
namespace {

template <typename Parse>
std::string refusal(Parse parse, std::string_view text) {
  return message_of<InputError>([&] { return parse(text); });
}

TEST(Units, modulo__is_never_negative) {
  EXPECT_EQ(modulo(Nanos(7), Nanos(5)), Nanos(2));
  EXPECT_EQ(modulo(Nanos(5), Nanos(5)), Nanos(0));
  EXPECT_EQ(modulo(Nanos(-1), Nanos(5)), Nanos(4));
  EXPECT_EQ(modulo(Nanos(-5), Nanos(5)), Nanos(0));
  EXPECT_EQ(modulo(Nanos(0), Nanos(5)), Nanos(0));
}

TEST(Units, parse_duration__every_unit) {
  EXPECT_EQ(parse_duration("7 ns").count, 7);
  EXPECT_EQ(parse_duration("7 us").count, 7'000);
  EXPECT_EQ(parse_duration("7 ms").count, 7'000'000);
  EXPECT_EQ(parse_duration("7 s").count, 7'000'000'000);
  EXPECT_EQ(parse_duration("7 min").count, 420'000'000'000);
}

TEST(Units, parse_bytes__every_unit) {
  EXPECT_EQ(parse_bytes("3 B"), 3U);
  EXPECT_EQ(parse_bytes("3 kB"), 3'000U);
  EXPECT_EQ(parse_bytes("13.5 MB"), 13'500'000U);
  EXPECT_EQ(parse_bytes("3 GB"), 3'000'000'000U);
  EXPECT_EQ(parse_bytes("3 TB"), 3'000'000'000'000U);
  EXPECT_EQ(parse_bytes("3 KiB"), 3'072U);
  EXPECT_EQ(parse_bytes("3 MiB"), 3'145'728U);
  EXPECT_EQ(parse_bytes("3 GiB"), 3'221'225'472U);
  EXPECT_EQ(parse_bytes("3 TiB"), 3'298'534'883'328U);
}

TEST(Units, parse_rate__every_unit) {
  EXPECT_EQ(parse_rate("9 bps").bits_per_second, 9U);
  EXPECT_EQ(parse_rate("9 kbps").bits_per_second, 9'000U);
  EXPECT_EQ(parse_rate("9 Mbps").bits_per_second, 9'000'000U);
  EXPECT_EQ(parse_rate("9 Gbps").bits_per_second, 9'000'000'000U);
  EXPECT_EQ(parse_rate("9 Tbps").bits_per_second, 9'000'000'000'000U);
}

TEST(Units, parse__space_is_free) {
  for (const char* text : {"1.5ms", "1.5 ms", "  1.5 ms", "1.5\tms  ", "1.5   ms"})
    EXPECT_EQ(parse_duration(text).count, 1'500'000) << text;
}

TEST(Units, parse__forms_of_numbers) {
  EXPECT_EQ(parse_duration("+2 ms").count, 2'000'000);
  EXPECT_EQ(parse_duration(".5 ms").count, 500'000);
  EXPECT_EQ(parse_duration("5. ms").count, 5'000'000);
  EXPECT_EQ(parse_duration("1e3 ns").count, 1'000);
  EXPECT_EQ(parse_duration("1E+3ns").count, 1'000);
  EXPECT_EQ(parse_duration("25e-1 us").count, 2'500);
  EXPECT_EQ(parse_bytes("1000000000000000000000000000000e-28 B"), 100U);
  EXPECT_EQ(parse_bytes("0.00000000000000000000000000001 TB"), 0U);
  EXPECT_EQ(parse_bytes("1e-999999999999 TB"), 0U);
}

TEST(Units, parse__zero_needs_no_unit) {
  EXPECT_EQ(parse_duration("0").count, 0);
  EXPECT_EQ(parse_bytes("0.0"), 0U);
  EXPECT_EQ(parse_rate("-0 bps").bits_per_second, 0U);
}

TEST(Units, parse__fractions_are_rounded_to_the_nearest) {
  EXPECT_EQ(parse_duration("1.4 ns").count, 1);
  EXPECT_EQ(parse_duration("1.5 ns").count, 2);
  EXPECT_EQ(parse_duration("0.49999 ns").count, 0);
  EXPECT_EQ(parse_bytes("0.3 KiB"), 307U);
}

// A double represents all whole numbers only up to 2^53.
TEST(Units, parse__exact_beyond_the_precision_of_double) {
  EXPECT_EQ(parse_bytes("9007199254740993 B"), 9'007'199'254'740'993U);
  EXPECT_EQ(parse_duration("9000000000.000000001 s").count, 9'000'000'000'000'000'001);
  EXPECT_EQ(parse_bytes("8999999999999999.999 kB"), 8'999'999'999'999'999'999U);
}

TEST(Units, parse__errors_name_text_cause_and_cure) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "does not begin with a number"},
      {"   ", "does not begin with a number"},
      {"ms", "does not begin with a number"},
      {"fast", "does not begin with a number"},
      {"nan ms", "does not begin with a number"},
      {"inf ms", "does not begin with a number"},
      {". ms", "does not begin with a number"},
      {"-", "does not begin with a number"},
      {"-1 ms", "it is negative"},
      {"-0.001 ms", "it is negative"},
      {"150", "the unit is missing"},
      {"1.5e3", "the unit is missing"},
      {"150 MS", "unknown unit \"MS\""},
      {"150 millis", "unknown unit \"millis\""},
      {"1 2 ms", "unknown unit \"2 ms\""},
      {"1,5 ms", "unknown unit \",5 ms\""},
      {"1.2.3 ms", "unknown unit \".3 ms\""},
      {"0x10 ms", "unknown unit \"x10 ms\""},
      {"1e ms", "unknown unit \"e ms\""},
      {"0 parsec", "unknown unit \"parsec\""},
      {"293 s s", "unknown unit \"s s\""},
      {"9200000001 s", "it is too large"},
      {"1e30 ns", "it is too large"},
      {"1e999999999999 ns", "it is too large"},
      {"99999999999999999999999999999999999999999999 ns", "it is too large"}};
  for (const auto& [text, cause] : cases) {
    const std::string message = refusal(parse_duration, text);
    EXPECT_THAT(message, HasSubstr(text)) << text;
    EXPECT_THAT(message, HasSubstr("is not a duration")) << text;
    EXPECT_THAT(message, HasSubstr(cause)) << text;
    EXPECT_THAT(message, HasSubstr("ns, us, ms, s, min, such as \"150 ms\"")) << text;
  }
  EXPECT_THAT(refusal(parse_bytes, "5 Mb"), HasSubstr("is not a size: unknown unit \"Mb\""));
  EXPECT_THAT(refusal(parse_bytes, "5 mb"), HasSubstr("B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, such as \"13.5 MB\""));
  EXPECT_THAT(refusal(parse_bytes, "99999999 TB"), HasSubstr("it is too large"));
  EXPECT_THAT(refusal(parse_rate, "1 Gb/s"), HasSubstr("is not a rate: unknown unit \"Gb/s\""));
  EXPECT_THAT(refusal(parse_rate, "1 GBps"), HasSubstr("bps, kbps, Mbps, Gbps, Tbps, such as \"1 Gbps\""));
}

TEST(Units, parse__errors_are_one_short_line) {
  const std::string message = refusal(parse_duration, "1\n" + std::string(10'000, 'x'));
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_LT(message.size(), 400U);
}

TEST(Units, to_text__shortest_exact_unit) {
  EXPECT_EQ(to_text(Nanos(150'000'000)), "150 ms");
  EXPECT_EQ(to_text(Nanos(1'500)), "1.5 us");
  EXPECT_EQ(to_text(Nanos(0)), "0 ns");
  EXPECT_EQ(to_text(Nanos(-2'000)), "-2 us");
  EXPECT_EQ(to_text(Nanos(1'000'000'001)), "1000000.001 us");
  EXPECT_EQ(to_text(Nanos::never()), "never");
  EXPECT_EQ(to_text(Nanos(std::numeric_limits<std::int64_t>::min())), "-9223372036854775.808 us");
  EXPECT_EQ(bytes_to_text(13'500'000), "13.5 MB");
  EXPECT_EQ(bytes_to_text(1), "1 B");
  EXPECT_EQ(to_text(Rate(1'000'000'000)), "1 Gbps");
  EXPECT_EQ(to_text(Rate(999)), "999 bps");
}

TEST(Units, to_text__reads_back_over_random_values) {
  Random random(20'240'607);
  for (int i = 0; i < 200'000; ++i) {
    // All magnitudes are equally frequent. Half of the numbers are round decimal numbers, as people write them.
    std::uint64_t value = random.next() >> (1 + random.below(63));
    if (random.chance(0.5)) {
      std::uint64_t power = 1;
      for (std::uint64_t zeros = random.below(16); zeros > 0; --zeros) power *= 10;
      value = value / power * power;
    }
    value %= 9'200'000'000'000'000'000U;
    const Nanos duration(static_cast<std::int64_t>(value));
    ASSERT_EQ(parse_duration(to_text(duration)), duration) << to_text(duration);
    ASSERT_EQ(parse_bytes(bytes_to_text(value)), value) << bytes_to_text(value);
    ASSERT_EQ(parse_rate(to_text(Rate(value))), Rate(value)) << to_text(Rate(value));
  }
}

TEST(Units, time_for__rounds_up_and_does_not_wrap) {
  EXPECT_EQ(Rate(1'000'000'000).time_for(1'500).count, 12'000);
  EXPECT_EQ(Rate(3).time_for(1).count, 2'666'666'667);
  EXPECT_EQ(Rate(8).time_for((Bytes{1} << 30) - 1).count, ((std::int64_t{1} << 30) - 1) * 1'000'000'000);
  // 8 TB at 1 Gbps take 64,000 s. The product of bytes and nanoseconds per second needs 77 bits.
  EXPECT_EQ(Rate(1'000'000'000).time_for(8'000'000'000'000).count, 64'000'000'000'000);
}

TEST(Units, bytes_in__rounds_down_and_does_not_wrap) {
  EXPECT_EQ(Rate(1'000'000'000).bytes_in(Nanos(12'007)), 1'500U);
  EXPECT_EQ(Rate(1'000'000'000).bytes_in(Nanos(-5)), 0U);
  EXPECT_EQ(Rate(400'000'000'000).bytes_in(Nanos(1'000'000'000'000'000)), 50'000'000'000'000'000U);
}

TEST(Units, from_seconds__rounds_to_the_nearest) {
  EXPECT_EQ(Nanos::from_seconds(0.1).count, 100'000'000);
  EXPECT_EQ(Nanos::from_seconds(-0.1).count, -100'000'000);
  EXPECT_EQ(Nanos::from_seconds(1.5e-9).count, 2);
}

}  // namespace
}  // namespace mltcp
