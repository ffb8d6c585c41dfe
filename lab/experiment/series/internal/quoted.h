// Texts in JSON. Not installed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mltcp::experiment {

/// `text` as a JSON string, with quotes; invalid UTF-8 is replaced.
inline std::string quoted_in_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mltcp::experiment
