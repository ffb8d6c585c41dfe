// Common parts of the HTML pages: escaping, data for scripts, and templates. This header is not installed.
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

/// Returns JSON for a script element: the text contains no "<" that could close the element.
std::string script_safe(const nlohmann::json& json);

/// A name and its replacement: {{name}} in a template is replaced.
using Part = std::pair<std::string_view, std::string_view>;
/// Replaces each {{name}} of the template in one pass, so that replacements are not expanded again.
std::string filled(std::string_view page, std::span<const Part> parts);

/// Joins the items as in "a, b and c".
std::string listed(const std::vector<std::string>& items);

}  // namespace mltcp::experiment
