// YAML of others, which is read as far as its size is worth.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string_view>

namespace mltcp::workload {

/// The first document of `text`. Throws YAML::Exception; for aliases, too, by which a few bytes could stand for many,
/// and for what is nested deeply, which takes the stack. The caller bounds the size: a node takes hundreds of bytes.
YAML::Node load_yaml(std::string_view text);

}  // namespace mltcp::workload
