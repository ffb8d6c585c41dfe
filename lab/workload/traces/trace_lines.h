// Lines of an input, one after the other, in bounded memory.
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

  /// The next line without its end; false after the last. It is valid until the next call. Throws InputError
  /// "NAME:LINE: cause; cure" for a line of more than a megabyte.
  bool next(std::string_view& line);
  /// Of the line that was last given, from 1.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// "NAME:LINE: cause; cure"
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
