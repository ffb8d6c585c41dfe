// Tables that people write: lines of fields with commas between them, comments behind '#', and blank lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp {

/// Walks through the lines of a table. Errors are InputError "FILE:LINE: COLUMN: cause; cure" with the line read last.
/// There is no quoting: a line with quotation marks is refused, as is one with a carriage return within.
class CsvReader {
 public:
  /// `file` stands for the text in messages. The text must outlive the reader.
  CsvReader(std::string_view text, std::string file);

  /// Goes to the next line with fields; false at the end.
  bool next();

  /// Takes the line's fields as the names of the columns: some of `known`, each once, and all of the first `needed`.
  /// `columns_are` is the cure where one is not known. Each later line must have as many fields.
  void read_columns(std::span<const std::string_view> known, std::size_t needed, std::string_view columns_are);

  /// Without spaces around them; never empty after next() was true.
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  /// As read_columns() found them; empty before.
  [[nodiscard]] const std::vector<std::string_view>& columns() const { return columns_; }
  [[nodiscard]] std::uint32_t line() const { return line_; }

  [[noreturn]] void fail(std::string_view column, std::string_view cause, std::string_view cure) const;

  /// What parse(field) returns; an InputError of it gets file, line and column.
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

}  // namespace mltcp
