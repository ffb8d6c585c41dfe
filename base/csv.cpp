// Reads hand-written tables (see csv.h).
#include "mltcp/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "mltcp/base/text.h"

namespace mltcp {

CsvReader::CsvReader(std::string_view text, std::string file) : rest_(text), file_(std::move(file)) {
  // Spreadsheets write this byte order mark before UTF-8 text.
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
}

bool CsvReader::next() {
  std::string_view line;
  while (line.empty()) {
    if (rest_.empty()) return false;
    ++line_;
    const std::size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    line = trimmed(line.substr(0, line.find('#')));
  }
  if (line.find('\r') != std::string_view::npos)
    fail("columns", "there is a carriage return within the line", "end lines with LF or CR LF");
  if (line.find('"') != std::string_view::npos)
    fail("columns", "there are quotation marks", "write names and values without quotation marks and without commas");
  fields_.clear();
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = line.find(',');
    fields_.push_back(trimmed(line.substr(0, comma)));
    if (comma != std::string_view::npos) line.remove_prefix(comma + 1);
  }
  if (!columns_.empty() && fields_.size() != columns_.size())
    fail("columns", fmt::format("the line has {} fields and the first one {} columns", fields_.size(), columns_.size()),
         "write a field for each, separated by commas");
  return true;
}

void CsvReader::read_columns(std::span<const std::string_view> known, std::size_t needed,
                             std::string_view columns_are) {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::string_view name = fields_[i];
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail("columns", fmt::format("{} is not known", in_quotes(name)), columns_are);
    if (std::find(fields_.begin(), fields_.end(), name) != fields_.begin() + static_cast<std::ptrdiff_t>(i))
      fail("columns", fmt::format("{} appears twice", in_quotes(name)), "keep one of them");
  }
  for (const std::string_view name : known.first(needed))
    if (std::find(fields_.begin(), fields_.end(), name) == fields_.end())
      fail("columns", fmt::format("{} is missing", in_quotes(name)), "add the column");
  columns_ = fields_;
}

void CsvReader::fail(std::string_view column, std::string_view cause, std::string_view cure) const {
  fail(column, fmt::format("{}; {}", cause, cure));
}

void CsvReader::fail(std::string_view column, std::string_view cause_and_cure) const {
  // An error of an empty file is reported for line 1.
  throw InputError(one_line(fmt::format("{}:{}: {}: {}", file_, std::max(line_, 1U), column, cause_and_cure)));
}

std::string csv_field(std::string_view text) {
  constexpr std::string_view formulas = "=+-@\t\r";
  double number = 0;
  const bool is_signed = text.starts_with('+');  // from_chars() does not accept a plus sign
  const auto [end, problem] = std::from_chars(text.data() + (is_signed ? 1 : 0), text.data() + text.size(), number);
  const bool is_number = problem == std::errc() && end == text.data() + text.size();
  const bool is_formula = !text.empty() && formulas.find(text.front()) != std::string_view::npos && !is_number;
  std::string field = is_formula ? "'" : "";
  field += text;
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  for (std::size_t at = 0; (at = field.find('"', at)) != std::string::npos; at += 2) field.insert(at, 1, '"');
  return '"' + field + '"';
}

}  // namespace mltcp
