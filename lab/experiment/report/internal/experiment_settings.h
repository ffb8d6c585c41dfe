// Reads all settings of an experiment from the text of its file, which the provenance of results contains. Pages use
// these settings to show how two results differ, and what all points of a sweep share. This header is not installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"

namespace mltcp::experiment {

struct Setting {
  std::string key;    ///< such as "bottleneck.buffer"; a job's keys start with its name, such as "job vgg19-a: start"
  std::string value;  ///< value as in the file, without quotes, on one line
  bool operator==(const Setting&) const = default;
};

/// Returns all settings of the experiment, ascending by key. Settings of ECN include the default values, so that
/// experiments are comparable. Empty if there is no provenance, or if the provenance contains no readable experiment.
std::optional<std::vector<Setting>> settings_of(const std::optional<Provenance>& provenance);

/// Returns the value of `key`, or null if there is no such key.
const std::string* find_setting(const std::vector<Setting>& settings, std::string_view key);

/// Returns the ECN marking of the links, from bottleneck.ecn or topology.ecn, such as "kmin 60 kB, kmax 60 kB, pmax 1".
/// Without marking, returns a text that says so.
std::string marking_of(const std::vector<Setting>& settings);

}  // namespace mltcp::experiment
