// Texts as JSON strings. This header is not installed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mltcp::experiment {

/// Returns `text` as a JSON string, with quotes. Replaces invalid UTF-8.
inline std::string quoted_in_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mltcp::experiment
