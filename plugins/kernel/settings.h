// The settings of a job of kernel TCP: its bandwidth function, as the table that BPF programs interpolate, and the
// known facts about its iterations.
#pragma once

#include <optional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/plugins/kernel/iterations.h"

namespace mltcp::kernel {

/// Changes of settings; absent members stay as they are.
struct SettingsChange {
  std::optional<std::string> function;   ///< as cc::Augmentation::read() accepts it: "F1", "0.5", "fair", ...
  std::optional<Nanos> gap;              ///< silence that separates iterations; 0: learned
  std::optional<Bytes> iteration_bytes;  ///< 0: learned

  [[nodiscard]] bool empty() const { return !function && !gap && !iteration_bytes; }
};

/// F1, iterations learned.
mltcp_settings default_settings();

/// Throws InputError if it is not a function, or if its gains are not from 1/1024 to 1024.
void apply(const SettingsChange& change, mltcp_settings& settings);

/// The text that was given.
std::string function_of(const mltcp_settings& settings);

}  // namespace mltcp::kernel
