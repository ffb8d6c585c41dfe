// Checks the limits of JSON texts (see json.h).
#include "mltcp/base/json.h"

#include <fmt/format.h>

namespace mltcp {

std::string beyond_limits(std::string_view json, const JsonLimits& limits) {
  std::size_t depth = 0;
  // An array or object contains at most one value more than it has commas.
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        break;
      case '[':
      case '{':
        if (++depth > limits.depth) return fmt::format("nests more than {} levels deep", limits.depth);
        ++values;
        break;
      case ']':
      case '}':
        if (depth > 0) --depth;
        break;
      case ',':
        ++values;
        break;
      default:
        break;
    }
    if (values > limits.values) return fmt::format("has more than {} values", limits.values);
  }
  return "";
}

}  // namespace mltcp
