// Set-up checks of the augmentation (see augmentation.h).
#include "mltcp/cc/augmentation.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

#include "mltcp/base/error.h"

namespace mltcp::cc {

Augmentation Augmentation::constant(double gain) {
  if (!std::isfinite(gain) || gain <= 0)
    throw InputError(fmt::format("a weight of {} is not finite and above 0; give 1 for a fair share", gain));
  Augmentation a;
  a.constant_ = gain;
  return a;
}

Augmentation Augmentation::read(std::string_view text) {
  if (text == "fair") return {};
  constexpr std::string_view with_turns = "turns";
  if (text.starts_with(with_turns)) {
    const std::string_view function = text.substr(with_turns.size());
    if (function.empty()) return turns(Aggressiveness::read("F1"));
    if (function.starts_with(' ')) return turns(Aggressiveness::read(function.substr(1)));
  }
  double gain = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), gain);
  if (error == std::errc() && end == text.data() + text.size()) return constant(gain);
  // If the text does not look like one of the papers' names, the message lists all forms.
  return mltcp(text.starts_with('F') ? Aggressiveness::read(text) : Aggressiveness::from_text(text));
}

Augmentation Augmentation::mltcp(const Aggressiveness& function) {
  function.validate();
  Augmentation a;
  a.iteration_aware_ = true;
  a.function_ = function;
  a.min_ = function.least();
  a.inverse_min_ = 1 / function.least();
  return a;
}

Augmentation Augmentation::turns(const Aggressiveness& function) {
  Augmentation a = mltcp(function);
  a.takes_turns_ = true;
  return a;
}

}  // namespace mltcp::cc
