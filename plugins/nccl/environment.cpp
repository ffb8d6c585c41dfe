#include "mltcp/plugins/nccl/environment.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/augmentation.h"

namespace mltcp::nccl {
namespace {

using Get = const char* (*)(const char*);

/// Empty where it is not set.
std::string_view value_of(Get get, const char* name) {
  const char* const value = get(name);
  return value == nullptr ? std::string_view() : trimmed(value);
}

std::uint64_t number(Get get, const char* name, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) {
  const std::string_view text = value_of(get, name);
  if (text.empty()) return otherwise;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw InputError(fmt::format("{} is {}; give a number from {} to {}", name, in_quotes(text), least, most));
  return value;
}

bool yes_or_no(Get get, const char* name) {
  const std::string_view text = value_of(get, name);
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  throw InputError(fmt::format("{} is {}; give 0 or 1", name, in_quotes(text)));
}

}  // namespace

Settings read_environment(Get get) {
  Settings settings;
  settings.required = yes_or_no(get, "MLTCP_REQUIRED");
  settings.verbose = yes_or_no(get, "MLTCP_DEBUG");
  settings.device = value_of(get, "MLTCP_DEVICE");
  settings.address = value_of(get, "MLTCP_ADDRESS");
  if (const std::string_view cc = value_of(get, "MLTCP_CC"); !cc.empty()) settings.cc = cc;
  settings.job = static_cast<std::uint32_t>(number(get, "MLTCP_JOB", 0, 0, 0xFFFF'FFFF));
  if (const std::string_view text = value_of(get, "MLTCP_JOB_FUNCTION"); !text.empty()) settings.job_function = text;
  try {
    settings.augmentation = cc::Augmentation::read(settings.job_function);
  } catch (const InputError& error) {
    throw InputError(fmt::format("MLTCP_JOB_FUNCTION: {}", error.what()));
  }
  const std::uint64_t milliseconds = number(get, "MLTCP_PEER_TIMEOUT_MS", 10'000, 10, 3'600'000);
  settings.peer_timeout = Nanos(static_cast<std::int64_t>(milliseconds) * 1'000'000);
  return settings;
}

bool is_required(Get get) noexcept {
  const char* const value = get("MLTCP_REQUIRED");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

const char* from_process(const char* name) { return std::getenv(name); }

}  // namespace mltcp::nccl
