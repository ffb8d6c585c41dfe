// Reads an input line by line in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "mltcp/lab/workload/traces/trace_input.h"

namespace mltcp::workload {

class TraceLines {
 public:
  explicit TraceLines(TraceInput& input);

  /// Sets `line` to the next line, without its line end. The line is valid until the next call. Returns false after the
  /// last line. Throws InputError "NAME:LINE: cause; cure" for a line of more than 1 MiB.
  bool next(std::string_view& line);
  /// Returns the number of the last line read, from 1.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Throws InputError "NAME:LINE: cause; cure".
  [[noreturn]] void fail(std::string_view cause, std::string_view cure) const;

 private:
  bool fill();

  TraceInput& input_;
  std::string buffer_;
  std::size_t at_ = 0;
  bool ended_ = false;
  std::uint64_t number_ = 0;
};

}  // namespace mltcp::workload
