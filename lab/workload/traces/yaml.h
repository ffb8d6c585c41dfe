// Reads untrusted YAML in bounded time and memory.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string_view>

namespace mltcp::workload {

/// The first document of `text`. Throws YAML::Exception, also for aliases, which could expand a few bytes to many, and
/// for deep nesting, which could exhaust the stack. The caller bounds the size: a node takes hundreds of bytes.
YAML::Node load_yaml(std::string_view text);

}  // namespace mltcp::workload
