// What goes wrong in reading JSON (nlohmann-json), in words for whoever wrote the file. Not installed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mltcp::experiment {

/// "line 1, column 5: syntax error ...": what the library says, without what only its programmers need.
inline std::string problem_of(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  for (const std::string_view lead : {"] ", "parse error at "})
    if (const auto at = text.find(lead); at != std::string_view::npos) text.remove_prefix(at + lead.size());
  return std::string(text);
}

}  // namespace mltcp::experiment
