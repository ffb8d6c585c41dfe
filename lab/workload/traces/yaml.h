// Reads untrusted YAML in bounded time and memory.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string_view>

namespace mltcp::workload {

/// Parses the first document of `text`. Throws YAML::Exception for errors. Also throws it for aliases, which could
/// expand a few bytes to many, and for deep nesting, which could exhaust the stack. The caller must limit the size of
/// `text`, because a node uses hundreds of bytes of memory.
YAML::Node load_yaml(std::string_view text);

}  // namespace mltcp::workload
