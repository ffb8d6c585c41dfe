// Tests tables in comma-separated text.
#include "mltcp/base/csv.h"

#include <array>
#include <string>

#include "../message_of.h"

namespace mltcp {
namespace {

constexpr std::array<std::string_view, 3> kKnown{"name", "size", "note"};

CsvReader table(std::string_view text) {
  CsvReader csv(text, "t.csv");
  EXPECT_TRUE(csv.next());
  csv.read_columns(kKnown, 2, "the columns are name, size and note");
  return csv;
}

std::string refusal(std::string_view text) {
  return message_of<InputError>([&] {
    for (CsvReader csv = table(text); csv.next();) continue;
  });
}

TEST(Csv, next__goes_to_lines_with_fields) {
  CsvReader csv = table("\xef\xbb\xbf# sizes\n\n size , name\r\n 1 kB,\ta b # the first\n  \t\n,\n2 kB,c");
  EXPECT_THAT(csv.columns(), ElementsAre("size", "name"));
  EXPECT_EQ(csv.line(), 3U);
  ASSERT_TRUE(csv.next());
  EXPECT_THAT(csv.fields(), ElementsAre("1 kB", "a b"));
  EXPECT_EQ(csv.line(), 4U);
  ASSERT_TRUE(csv.next());
  EXPECT_THAT(csv.fields(), ElementsAre("", ""));
  ASSERT_TRUE(csv.next());
  EXPECT_THAT(csv.fields(), ElementsAre("2 kB", "c"));
  EXPECT_EQ(csv.line(), 7U);
  EXPECT_FALSE(csv.next());
  EXPECT_FALSE(csv.next());
  EXPECT_FALSE(CsvReader("", "t.csv").next());
  EXPECT_FALSE(CsvReader("# nothing\n\n", "t.csv").next());
}

TEST(Csv, read_columns__refuses_what_is_unknown_twice_or_missing) {
  EXPECT_EQ(refusal("name,weight\n"), "t.csv:1: columns: \"weight\" is not known; the columns are name, size and note");
  EXPECT_EQ(refusal("name,\n"), "t.csv:1: columns: \"\" is not known; the columns are name, size and note");
  EXPECT_EQ(refusal("name,size,name\n"), "t.csv:1: columns: \"name\" appears twice; keep one of them");
  EXPECT_EQ(refusal("\nname,note\n"), "t.csv:2: columns: \"size\" is missing; add the column");
  EXPECT_EQ(refusal("note,size,name\n"), "no error");
}

TEST(Csv, next__refuses_other_dialects) {
  const std::string wide = "; write a field for each, separated by commas";
  EXPECT_EQ(refusal("name,size\na\n"), "t.csv:2: columns: the line has 1 fields and the first one 2 columns" + wide);
  EXPECT_EQ(refusal("name,size\na,1,\n"), "t.csv:2: columns: the line has 3 fields and the first one 2 columns" + wide);
  EXPECT_EQ(
      refusal("name,size\n\"a\",1\n"),
      "t.csv:2: columns: there are quotation marks; write names and values without quotation marks and without commas");
  EXPECT_EQ(refusal("name,size\na,1\rb,2\r"),
            "t.csv:2: columns: there is a carriage return within the line; end lines with LF or CR LF");
}

TEST(Csv, parsed__tells_file_line_and_column) {
  CsvReader csv = table("name,size\n\na,1\n");
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.parsed("size", csv.fields()[1], [](std::string_view text) { return text.size(); }), 1U);
  EXPECT_EQ(refusal_of([&] {
              csv.parsed("size", "x\ny",
                         [](std::string_view text) -> int { throw InputError(std::string(text) + "; mend it"); });
            }),
            "t.csv:3: size: x?y; mend it");
}

TEST(Csv, field__is_what_it_was_and_never_a_formula) {
  for (const char* text : {"", "a", "a b", "a=b", "1-2", "-1", "+1", "-1.5e-3", "-.5", "'=1"})
    EXPECT_EQ(csv_field(text), text);
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
  EXPECT_EQ(csv_field("+1+cmd|' /C calc'!A0"), "'+1+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_field("-1 ms"), "'-1 ms");
  EXPECT_EQ(csv_field("+-1"), "+-1");
  EXPECT_EQ(csv_field("-"), "'-");
  EXPECT_EQ(csv_field("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_field("\ta"), "'\ta");
  EXPECT_EQ(csv_field("\r=a"), "\"'\r=a\"");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_field("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
}

}  // namespace
}  // namespace mltcp
