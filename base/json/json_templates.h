// Compiles the templates of nlohmann-json once, in json_templates.cpp, for most files of the laboratory and the
// commands. The precompiled header of these files includes this header, so they need not include it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#ifndef MLTCP_JSON_TEMPLATES
#define MLTCP_JSON_TEMPLATES extern
#endif

namespace mltcp::internal {
using JsonText = decltype(nlohmann::detail::input_adapter(std::declval<const std::string&>()));
}  // namespace mltcp::internal

MLTCP_JSON_TEMPLATES template class nlohmann::basic_json<>;
MLTCP_JSON_TEMPLATES template class nlohmann::basic_json<nlohmann::ordered_map>;
MLTCP_JSON_TEMPLATES template class nlohmann::detail::serializer<nlohmann::json>;
MLTCP_JSON_TEMPLATES template class nlohmann::detail::serializer<nlohmann::ordered_json>;
MLTCP_JSON_TEMPLATES template class nlohmann::detail::parser<nlohmann::json, mltcp::internal::JsonText>;
MLTCP_JSON_TEMPLATES template class nlohmann::detail::parser<nlohmann::ordered_json, mltcp::internal::JsonText>;
MLTCP_JSON_TEMPLATES template class nlohmann::detail::lexer<nlohmann::json, mltcp::internal::JsonText>;
MLTCP_JSON_TEMPLATES template class nlohmann::detail::lexer<nlohmann::ordered_json, mltcp::internal::JsonText>;
