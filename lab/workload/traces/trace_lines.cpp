// See trace_lines.h.
#include "mltcp/lab/workload/traces/trace_lines.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;
constexpr std::size_t kMaxLine = std::size_t{1} << 20;

}  // namespace

TraceLines::TraceLines(TraceInput& input) : input_(input) { fill(); }

bool TraceLines::fill() {
  if (ended_) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kChunk);
  const std::size_t read = input_.read(buffer_.data() + kept, kChunk);
  buffer_.resize(kept + read);
  ended_ = read == 0;
  return !ended_;
}

bool TraceLines::next(std::string_view& line) {
  std::size_t looked = at_;
  while (true) {
    const std::size_t end = buffer_.find('\n', looked);
    if (end != std::string::npos) {
      line = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      break;
    }
    if (buffer_.size() - at_ > kMaxLine) {
      ++number_;
      fail("the line is longer than 1 MiB", "give a text trace");
    }
    const std::size_t offset = buffer_.size() - at_;
    if (fill()) {
      looked = at_ + offset;
      continue;
    }
    if (at_ == buffer_.size()) return false;
    line = std::string_view(buffer_).substr(at_);
    at_ = buffer_.size();
    break;
  }
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void TraceLines::fail(std::string_view cause, std::string_view cure) const {
  throw InputError(one_line(fmt::format("{}:{}: {}; {}", input_.name(), number_, cause, cure)));
}

}  // namespace mltcp::workload
