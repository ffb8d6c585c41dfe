// Reads hand-written tables: comma-separated fields, comments after '#', and blank lines. Formats fields of tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp {

/// Iterates over the lines of a table. Errors are InputError "FILE:LINE: COLUMN: cause; cure" for the current line.
/// Quoting is not supported: lines with quotation marks, or with a carriage return inside, are refused.
class CsvReader {
 public:
  /// `file` is used in messages. `text` must outlive the reader.
  CsvReader(std::string_view text, std::string file);

  /// Advances to the next line with fields; false at the end.
  bool next();

  /// Takes the current line as the header: columns must be among `known`, without duplicates, and include the first
  /// `needed` of them. `columns_are` is the cure for an unknown one. All later lines must have as many fields.
  void read_columns(std::span<const std::string_view> known, std::size_t needed, std::string_view columns_are);

  /// Trimmed of spaces; not empty after next() returned true.
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  /// As set by read_columns(); empty before.
  [[nodiscard]] const std::vector<std::string_view>& columns() const { return columns_; }
  [[nodiscard]] std::uint32_t line() const { return line_; }

  [[noreturn]] void fail(std::string_view column, std::string_view cause, std::string_view cure) const;

  /// Returns parse(field); adds file, line and column to an InputError that it throws.
  template <typename Parse>
  auto parsed(std::string_view column, std::string_view field, Parse parse) const {
    try {
      return parse(field);
    } catch (const InputError& error) {
      fail(column, error.what());
    }
  }

 private:
  [[noreturn]] void fail(std::string_view column, std::string_view cause_and_cure) const;

  std::string_view rest_;
  std::string file_;
  std::uint32_t line_ = 0;
  std::vector<std::string_view> fields_;
  std::vector<std::string_view> columns_;
};

/// `text` as a field of a table (RFC 4180), in quotes if needed. A spreadsheet would treat text that begins with = + -
/// @, a tab or a carriage return, and is no number, as a formula; such text gets a leading apostrophe, which marks it
/// as text.
std::string csv_field(std::string_view text);

}  // namespace mltcp
