// Makes the text of HTML pages (see html.h).
#include "mltcp/lab/experiment/report/internal/html.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "mltcp/base/text.h"

namespace mltcp::experiment {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : one_line(text, "\n\t")) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string script_safe(const nlohmann::json& json) {
  constexpr std::size_t digits = 4;
  const std::string text = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') {
      out += "\\u003c";
    } else if (text[i] != '\\') {
      out += text[i];
    } else if (text[++i] != 'u') {
      out += {'\\', text[i]};
    } else {  // writes characters outside ASCII as \uXXXX
      unsigned code = 0;
      std::from_chars(&text[i + 1], &text[i + 1] + digits, code, 16);
      out += is_printable(code) ? "\\u" + text.substr(i + 1, digits) : "?";
      i += digits;
    }
  }
  return out;
}

std::string filled(std::string_view page, std::span<const Part> parts) {
  std::string out;
  while (true) {
    const auto open = page.find("{{");
    const auto close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    out += page.substr(0, open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    for (const auto& [key, value] : parts) {
      if (key == name) out += value;
    }
    page.remove_prefix(close + 2);
  }
  return out += page;
}

std::string listed(const std::vector<std::string>& items) {
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += i + 1 == items.size() ? " and " : ", ";
    out += items[i];
  }
  return out;
}

}  // namespace mltcp::experiment
