// Converts bandwidth functions to fixed-point tables (see settings.h).
#include "mltcp/plugins/kernel/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/cc/augmentation.h"

namespace mltcp::kernel {
namespace {

constexpr double kMaxGain = 1024;

std::uint32_t fixed_point(double gain) {
  if (!(gain >= 1 / kMaxGain) || !(gain <= kMaxGain))
    throw InputError(fmt::format("a gain of {} is out of range; in the kernel it is from 1/1024 to 1024", gain));
  return static_cast<std::uint32_t>(std::lround(gain * static_cast<double>(MLTCP_GAIN_ONE)));
}

void set_function(const std::string& text, mltcp_settings& settings) {
  const cc::Augmentation augmentation = cc::Augmentation::read(text);
  if (augmentation.takes_turns())
    throw InputError("in the kernel, bursts do not wait for other bursts; leave out \"turns\"");
  settings.iteration_aware = augmentation.iteration_aware() ? 1 : 0;
  constexpr std::uint32_t segments = MLTCP_GAIN_SEGMENTS;
  for (std::uint32_t i = 0; i <= segments; ++i)
    settings.gain[i] = fixed_point(augmentation.gain_at(1.0 * i / segments));
  constexpr std::size_t max_length = sizeof(settings.function) - 1;
  const std::string shown = text.size() <= max_length ? text : text.substr(0, max_length - 3) + "...";
  std::fill(std::begin(settings.function), std::end(settings.function), '\0');
  std::memcpy(settings.function, shown.data(), shown.size());
}

}  // namespace

mltcp_settings default_settings() {
  mltcp_settings settings{};
  set_function("F1", settings);
  return settings;
}

void apply(const SettingsChange& change, mltcp_settings& settings) {
  mltcp_settings changed = settings;
  if (change.function) set_function(*change.function, changed);
  if (change.gap) changed.gap_ns = static_cast<std::uint64_t>(std::max(change.gap->count, std::int64_t{0}));
  if (change.iteration_bytes) changed.iteration_bytes = *change.iteration_bytes;
  settings = changed;
}

std::string function_of(const mltcp_settings& settings) {
  return {settings.function, strnlen(settings.function, sizeof(settings.function))};
}

}  // namespace mltcp::kernel
