// Lists of the fields of Provenance (see base/fields.h), the same for all result files.
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/base/json/in_json.h"
#include "mltcp/base/json/provenance.h"

namespace mltcp {

constexpr auto fields_of(const Provenance::File* /*type*/) {
  using T = Provenance::File;
  return list_of<T>(field("path", &T::path), field("sha256", &T::sha256), field("bytes", &T::bytes),
                    field("text", &T::text, kIfSet));
}

constexpr auto fields_of(const Provenance::Machine* /*type*/) {
  using T = Provenance::Machine;
  return list_of<T>(field("cpu", &T::cpu, kIfSet), field("cpus", &T::cpus), field("memory_bytes", &T::memory, kIfSet),
                    field("system", &T::system, kIfSet), field("kernel", &T::kernel, kIfSet));
}

constexpr auto fields_of(const Provenance* /*type*/) {
  using T = Provenance;
  return list_of<T>(field("version", &T::version), field("commit", &T::commit, kIfSet),
                    field("modified", &T::modified, kIfSet), field("build", &T::build, kIfSet), field("date", &T::date),
                    field("command", &T::command), field("files", &T::files), field("machine", &T::machine));
}

}  // namespace mltcp
