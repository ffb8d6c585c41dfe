// What the HTML pages have in common: names made fit for a page, data for its script, and templates. Not installed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mltcp::experiment {

/// Text as it may stand between tags and in quoted attributes.
std::string escaped(std::string_view text);

/// JSON that may stand in a script element: no "<" is left that could close it.
std::string script_safe(const nlohmann::json& json);

/// What stands for {{name}} in a template.
using Part = std::pair<std::string_view, std::string_view>;
/// Replaces each {{name}} of the template, in one pass, so that what is filled in is never looked at again.
std::string filled(std::string_view page, std::span<const Part> parts);

/// "a, b and c"
std::string listed(const std::vector<std::string>& items);

}  // namespace mltcp::experiment
