// All settings of an experiment file, from its text in the provenance of results, so that pages can show how two
// results differ and what all points of a sweep share. Not installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"

namespace mltcp::experiment {

struct Setting {
  std::string key;    ///< "bottleneck.buffer"; for a job with its name: "job vgg19-a: start"
  std::string value;  ///< as in the file, without quotes; one line
  bool operator==(const Setting&) const = default;
};

/// All settings of the experiment, ascending by key. `ecn` includes its defaults, to be comparable. Empty without
/// provenance, or if that has no readable text of an experiment.
std::optional<std::vector<Setting>> settings_of(const std::optional<Provenance>& provenance);

/// Null if there is no such key.
const std::string* find_setting(const std::vector<Setting>& settings, std::string_view key);

/// The links' ECN marking, from bottleneck.ecn or topology.ecn: "kmin 60 kB, kmax 60 kB, pmax 1", or that it is off.
std::string marking_of(const std::vector<Setting>& settings);

}  // namespace mltcp::experiment
