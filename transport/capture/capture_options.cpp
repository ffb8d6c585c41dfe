// Parses the options of a capture (see capture_options.h).
#include "mltcp/transport/capture/capture_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <system_error>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::capture {
namespace {

constexpr std::uint32_t kMinSnap = 64;
constexpr std::uint32_t kMaxSnap = 65535;
constexpr std::uint32_t kMaxFiles = 10000;
constexpr Bytes kMinFile = 64'000;
constexpr std::string_view kForm = "write FILE[,snap=BYTES][,size=BYTES][,files=N]";

/// Returns the position of the file name extension in a path; the end of the path if there is no extension.
std::size_t ending_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = file.rfind('.');
  return dot == std::string::npos || dot <= name ? file.size() : dot;
}

std::uint32_t whole(std::string_view what, std::string_view key, std::string_view text, std::uint32_t min,
                    std::uint32_t max) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
    throw InputError(
        fmt::format("{}: {} is {}; give a whole number from {} to {}", what, key, in_quotes(text), min, max));
  return value;
}

void take(CaptureOptions& options, std::string_view what, std::string_view word) {
  const std::size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : word.substr(equals + 1);
  if (key == "snap") {
    options.snap_bytes = whole(what, key, value, kMinSnap, kMaxSnap);
  } else if (key == "files") {
    options.files = whole(what, key, value, 2, kMaxFiles);
  } else if (key == "size") {
    try {
      options.file_bytes = parse_bytes(value);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: size: {}", what, error.what()));
    }
    if (options.file_bytes < kMinFile)
      throw InputError(
          fmt::format("{}: size is {}; give at least {}", what, in_quotes(value), bytes_to_text(kMinFile)));
  } else {
    throw InputError(fmt::format("{}: {} is not known; {}", what, in_quotes(word), kForm));
  }
}

}  // namespace

CaptureOptions parse_capture(std::string_view what, std::string_view text) {
  CaptureOptions options;
  std::size_t at = text.find(',');
  options.file = trimmed(text.substr(0, at));
  if (options.file.empty()) throw InputError(fmt::format("{}: the name of the file is empty; {}", what, kForm));
  while (at != std::string_view::npos) {
    const std::size_t next = text.find(',', at + 1);
    take(options, what, text.substr(at + 1, next == std::string_view::npos ? next : next - at - 1));
    at = next;
  }
  if (options.files > 1 && options.file_bytes == 0)
    throw InputError(
        fmt::format("{}: files={} needs the size of a file; add size=, such as size=100MB", what, options.files));
  for (std::size_t found = 0; (found = options.file.find("%p", found)) != std::string::npos;)
    options.file.replace(found, 2, std::to_string(getpid()));
  return options;
}

CaptureOptions with_suffix(CaptureOptions options, std::string_view suffix) {
  options.file.insert(ending_of(options.file), fmt::format("-{}", suffix));
  return options;
}

}  // namespace mltcp::capture
