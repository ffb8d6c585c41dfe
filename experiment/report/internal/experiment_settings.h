// What an experiment's file sets, one setting after the other, from the text that the provenance of results keeps: so
// that pages can tell in what two results differ, and what all points of a sweep share. Not installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/experiment/results/provenance.h"

namespace mltcp::experiment {

struct Setting {
  std::string key;    ///< "bottleneck.buffer"; of a job with its name: "job vgg19-a: start"
  std::string value;  ///< as in the file, without quotes; one line
  bool operator==(const Setting&) const = default;
};

/// All settings of the experiment, ascending by key. `ecn` has its defaults filled in, so that it can be compared.
/// Nothing without provenance, or where that has no text of an experiment that this program reads.
std::optional<std::vector<Setting>> settings_of(const std::optional<Provenance>& provenance);

/// Null where there is none of that key.
const std::string* find_setting(const std::vector<Setting>& settings, std::string_view key);

/// Of the links, as of bottleneck.ecn or topology.ecn: "kmin 60 kB, kmax 60 kB, pmax 1", or that nothing is marked.
std::string marking_of(const std::vector<Setting>& settings);

}  // namespace mltcp::experiment
