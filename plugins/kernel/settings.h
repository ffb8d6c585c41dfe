// What a job of kernel TCP is told: its function of aggressiveness, as the table that BPF programs interpolate, and
// what is known of its iterations.
#pragma once

#include <optional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/plugins/kernel/iterations.h"

namespace mltcp::kernel {

/// What is to be changed; the rest stays as it is.
struct SettingsChange {
  std::optional<std::string> function;   ///< as cc::Augmentation::read() has it: "F1", "0.5", "fair", ...
  std::optional<Nanos> gap;              ///< silence that separates iterations; 0: learned
  std::optional<Bytes> iteration_bytes;  ///< 0: learned

  [[nodiscard]] bool empty() const { return !function && !gap && !iteration_bytes; }
};

/// F1, iterations learned.
mltcp_settings default_settings();

/// Throws InputError for what is no function, or one whose gains are not from 1/1024 to 1024.
void apply(const SettingsChange& change, mltcp_settings& settings);

/// As it was written.
std::string function_of(const mltcp_settings& settings);

}  // namespace mltcp::kernel
