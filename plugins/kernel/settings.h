// Settings of a job of kernel TCP: its bandwidth function, as a table that BPF programs interpolate, and what is known
// about its iterations.
#pragma once

#include <optional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/plugins/kernel/iterations.h"

namespace mltcp::kernel {

/// Changes of settings. Settings whose members are absent do not change.
struct SettingsChange {
  /// function in the form that cc::Augmentation::read() accepts: "F1", "0.5", "fair", ...
  std::optional<std::string> function;
  std::optional<Nanos> gap;              ///< silence that separates iterations; 0 if it is to be learned
  std::optional<Bytes> iteration_bytes;  ///< bytes per iteration; 0 if they are to be learned

  [[nodiscard]] bool empty() const { return !function && !gap && !iteration_bytes; }
};

/// Returns the default settings: the function F1, with iterations that are learned.
mltcp_settings default_settings();

/// Applies the changes to `settings`. Throws InputError if the text is not a function, or if a gain is not from 1/1024
/// to 1024.
void apply(const SettingsChange& change, mltcp_settings& settings);

/// Returns the text from which the function was made.
std::string function_of(const mltcp_settings& settings);

}  // namespace mltcp::kernel
