// Tests that text from outside appears in messages as one line, without control sequences for terminals.
#include "mltcp/base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/text_parts.h"

namespace mltcp {
namespace {

TEST(Text, one_line__keeps_what_is_printable) {
  for (const char* text : {"", "a b", "ü", "€", "😀", "\xC2\xA0", "\xEF\xBF\xBD"}) EXPECT_EQ(one_line(text), text);
}

TEST(Text, one_line__replaces_control_characters) {
  EXPECT_EQ(one_line("a\nb\r\tc\x1b[31m\x7f"), "a?b??c?[31m?");
  EXPECT_EQ(one_line(std::string("a\0b", 3)), "a?b");
  EXPECT_EQ(one_line("\xC2\x9B"
                     "31m\xC2\x85"),
            "?31m?");                                     // the control characters CSI (U+009B) and next line (U+0085)
  EXPECT_EQ(one_line("\xE2\x80\xA8\xE2\x80\xA9"), "??");  // the line separator and the paragraph separator
}

TEST(Text, one_line__replaces_what_reorders_or_hides) {
  for (const char* text : {"\u00AD", "\u061C", "\u180E", "\u200B", "\u200D", "\u200E", "\u200F", "\u202A", "\u202E",
                           "\u2060", "\u2066", "\u2069", "\uFEFF", "\uFFF9", "\U000E0001", "\U000E007F"})
    EXPECT_EQ(one_line(std::string("a") + text + "b"), "a?b");
  for (const char* text : {"\u0600", "\u2010", "\u2027", "\u202F", "\u2070", "\uFEFE", "\uFFFD", "שלום", "\U000E1000"})
    EXPECT_EQ(one_line(text), text);
}

TEST(Text, one_line__keeps_what_is_asked_for) {
  EXPECT_EQ(one_line("a\n\tb\r\x1b", "\n\t"), "a\n\tb??");
  EXPECT_EQ(one_line("\xFF\n", "\n"), "?\n");
}

TEST(Text, one_line__replaces_bytes_that_are_not_utf8) {
  EXPECT_EQ(one_line("a\xff\xfe"), "a??");
  EXPECT_EQ(one_line("\xC3"), "?");                      // a truncated character
  EXPECT_EQ(one_line("\xE2\x82 "), "?? ");               // a character that the following character truncates
  EXPECT_EQ(one_line("\xC0\x8A\xE0\x80\x8A"), "?????");  // overlong encodings of a newline
  EXPECT_EQ(one_line("\xED\xA0\x80"), "???");            // a UTF-16 surrogate
  EXPECT_EQ(one_line("\xF4\x90\x80\x80\xF5"), "?????");  // code points beyond U+10FFFF
}

TEST(Text, in_quotes__is_short) {
  EXPECT_EQ(in_quotes("a\nb"), "\"a?b\"");
  EXPECT_EQ(in_quotes(std::string(60, 'x')), '"' + std::string(60, 'x') + '"');
  EXPECT_EQ(in_quotes(std::string(61, 'x')), '"' + std::string(60, 'x') + "...\"");
  // The text is not cut within a character.
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "€"), '"' + std::string(59, 'x') + "...\"");
}

TEST(Text, trimmed__at_both_ends_only) {
  EXPECT_EQ(trimmed(" \ta b\r"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \r\t "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(TextParts, parts__are_there_where_nothing_is) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(parts_of("", ','), Parts{""});
  EXPECT_EQ(parts_of("a,,b,", ','), (Parts{"a", "", "b", ""}));
  EXPECT_EQ(words_of("", " \t"), Parts());
  EXPECT_EQ(words_of(" a\t\tbc ", " \t"), (Parts{"a", "bc"}));
}

TEST(TextParts, numbers__are_all_of_the_text_and_in_range) {
  EXPECT_EQ(number_from<std::uint32_t>("4294967295"), 4294967295U);
  for (const char* const text : {"", "4294967296", "-1", "+5", " 5", "5 ", "5.0", "0x5"})
    EXPECT_EQ(number_from<std::uint32_t>(text), std::nullopt) << text;
  EXPECT_EQ(number_from<std::int64_t>("-7"), -7);
  EXPECT_EQ(number_from<double>("1e3"), 1000);
  EXPECT_EQ(number_from<double>("1e999"), std::nullopt);
  EXPECT_EQ(number_from<std::uint32_t>("8", 1, 8), 8U);
  for (const char* const text : {"0", "9"}) EXPECT_EQ(number_from<std::uint32_t>(text, 1, 8), std::nullopt) << text;
  for (const char* const text : {"nan", "inf", "-inf"})
    EXPECT_EQ(number_from<double>(text, -1e18, 1e18), std::nullopt) << text;
}

TEST(TextParts, word__of_a_value_is_its_own_whatever_the_order) {
  enum class Colour { red, green, blue };
  EXPECT_EQ(word_of<Colour>(Colour::green, {{Colour::green, "green"}, {Colour::red, "red"}}), "green");
  EXPECT_EQ(word_of<Colour>(Colour::blue, {{Colour::green, "green"}, {Colour::red, "red"}}), "?");
}

TEST(Text, plural__of_all_but_one) {
  EXPECT_EQ(plural(0, "job"), "0 jobs");
  EXPECT_EQ(plural(1, "shared link"), "1 shared link");
  EXPECT_EQ(plural(2, "job"), "2 jobs");
}

}  // namespace
}  // namespace mltcp
