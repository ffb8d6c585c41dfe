// The algorithms of this build, by name (see controller.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "mltcp/cc/controller.h"
#include "mltcp/cc/cubic.h"
#include "mltcp/cc/dcqcn.h"
#include "mltcp/cc/dctcp.h"
#include "mltcp/cc/reno.h"
#include "mltcp/cc/swift.h"

namespace mltcp::cc {

std::span<const AlgorithmTable* const> algorithms() {
  static const std::array all{
      &table_of<Reno>(), &table_of<Cubic>(), &table_of<Dctcp>(), &table_of<Dcqcn>(), &table_of<Swift>(),
  };
  return all;
}

const AlgorithmTable& find_algorithm(std::string_view name) {
  std::string names;
  for (const AlgorithmTable* table : algorithms()) {
    if (table->name == name) return *table;
    names += (names.empty() ? "" : ", ") + std::string(table->name);
  }
  throw InputError(fmt::format("unknown congestion control \"{}\"; this version has: {}", name, names));
}

}  // namespace mltcp::cc
