// Provenance as text and as JSON (see provenance.h).
#include "mltcp/experiment/results/provenance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mltcp/experiment/results/internal/provenance_json.h"

namespace mltcp::experiment {

std::string to_text(const Provenance& provenance) {
  constexpr std::size_t short_commit = 12;
  std::string source;
  if (!provenance.commit.empty())
    source = fmt::format(" ({}{})", provenance.commit.substr(0, short_commit), provenance.modified ? ", modified" : "");
  return fmt::format("mltcp {}{}, {}: {}", provenance.version, source, provenance.date,
                     fmt::join(provenance.command, " "));
}

nlohmann::ordered_json to_json(const Provenance& provenance) {
  using Json = nlohmann::ordered_json;
  Json json{{"version", provenance.version}};
  if (!provenance.commit.empty()) json["commit"] = provenance.commit;
  if (provenance.modified) json["modified"] = true;
  if (!provenance.build.empty()) json["build"] = provenance.build;
  json["date"] = provenance.date;
  json["command"] = provenance.command;
  json["files"] = Json::array();
  for (const Provenance::File& file : provenance.files) {
    Json entry{{"path", file.path}, {"sha256", file.sha256}, {"bytes", file.bytes}};
    if (file.text) entry["text"] = *file.text;
    json["files"].push_back(std::move(entry));
  }
  const Provenance::Machine& machine = provenance.machine;
  Json& on = json["machine"] = Json::object();
  if (!machine.cpu.empty()) on["cpu"] = machine.cpu;
  on["cpus"] = machine.cpus;
  if (machine.memory > 0) on["memory_bytes"] = machine.memory;
  if (!machine.system.empty()) on["system"] = machine.system;
  if (!machine.kernel.empty()) on["kernel"] = machine.kernel;
  return json;
}

}  // namespace mltcp::experiment
