// The parts of `mltcp gen` that other commands use.
#pragma once

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/lab/experiment/results/results.h"
#include "provenance.h"
#include "series_output.h"

namespace mltcp::tools {

/// Checks that a coordinator could start with these words of `mltcp gen`, including --serve: reads them, the experiment
/// and its plan, but does not listen. Throws the InputError that the coordinator would throw. False: they contain
/// --help, which has been printed.
bool check_coordinator_words(const std::vector<std::string>& words);

/// How a coordinator runs an experiment across hosts that join it (mltcp gen --join).
struct Serving {
  std::string address;                  ///< to listen on
  experiment::StreamKey key{};          ///< only hosts with this key can join; null: only hosts without one
  Nanos wait{60'000'000'000};           ///< for hosts to join
  std::string plan{};                   ///< file; empty: plans are computed
  std::optional<std::string> json{};    ///< file, or "-" for standard output
  std::optional<std::string> report{};  ///< the page of the results, likewise
  bool ranks = false;                   ///< show each rank on the terminal
  SeriesArguments series{};             ///< written at the end
  /// Gets the address when hosts can join.
  std::function<void(const std::string& address)> listening{};
  /// Adds to the results before they are printed.
  std::function<void(experiment::Results& results)> complete{};
};

/// The key of option --key, for both ends; null if it was not given. Throws InputError. Call it once.
experiment::StreamKey stream_key_of(const std::optional<std::string>& key);

/// Coordinates the experiment, whose datapath is "hosts", prints its results to `out` and writes them. Throws
/// InputError or RunError.
experiment::Results serve_experiment(const experiment::Experiment& experiment, const Serving& serving,
                                     const FilesRead& files, std::FILE* out);

}  // namespace mltcp::tools
