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

/// Iterates over the lines of a table. Errors are InputError "FILE:LINE: COLUMN: cause; cure" for the current line. The
/// reader does not support quoting: it refuses lines with quotation marks or with a carriage return inside.
class CsvReader {
 public:
  /// `file` is the name of the file in messages. `text` must outlive the reader.
  CsvReader(std::string_view text, std::string file);

  /// Advances to the next line with fields. Returns false at the end of the text.
  bool next();

  /// Reads the names of the columns from the current line. Each name must be in `known`, none may appear twice, and the
  /// first `needed` names of `known` must be present. `columns_are` is the cure in the message about an unknown name.
  /// From now on, every line must have as many fields as there are columns.
  void read_columns(std::span<const std::string_view> known, std::size_t needed, std::string_view columns_are);

  /// Fields of the current line, without surrounding spaces. Not empty after next() has returned true.
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  /// Names of the columns; empty until read_columns() is called.
  [[nodiscard]] const std::vector<std::string_view>& columns() const { return columns_; }
  [[nodiscard]] std::uint32_t line() const { return line_; }

  [[noreturn]] void fail(std::string_view column, std::string_view cause, std::string_view cure) const;

  /// Returns parse(field). If `parse` throws InputError, adds file, line and column to its message.
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

/// Returns `text` as a field of a table (RFC 4180), in quotes if needed. A spreadsheet treats a field as a formula if
/// the field is no number and begins with = + - @, a tab or a carriage return. An apostrophe before such a field marks
/// it as text.
std::string csv_field(std::string_view text);

}  // namespace mltcp
