// Common parts of the HTML pages: escaping, data for scripts, and templates. Not installed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mltcp::experiment {

/// Escapes text for use between tags and in quoted attributes.
std::string escaped(std::string_view text);

/// JSON for a script element: contains no "<" that could close it.
std::string script_safe(const nlohmann::json& json);

/// Name and replacement of {{name}} in a template.
using Part = std::pair<std::string_view, std::string_view>;
/// Replaces each {{name}} of the template in one pass, so that replacements are not expanded again.
std::string filled(std::string_view page, std::span<const Part> parts);

/// "a, b and c"
std::string listed(const std::vector<std::string>& items);

}  // namespace mltcp::experiment
