// Writes provenance as text and as JSON (see provenance.h).
#include "mltcp/base/json/provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mltcp/base/json/json_fields.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/base/json/provenance_fields.h"

namespace mltcp {

std::string to_text(const Provenance& provenance) {
  constexpr std::size_t short_commit = 12;
  std::string source;
  if (!provenance.commit.empty())
    source = fmt::format(" ({}{})", provenance.commit.substr(0, short_commit), provenance.modified ? ", modified" : "");
  return fmt::format("mltcp {}{}, {}: {}", provenance.version, source, provenance.date,
                     fmt::join(provenance.command, " "));
}

nlohmann::ordered_json to_json(const Provenance& provenance) { return written(provenance); }

}  // namespace mltcp
