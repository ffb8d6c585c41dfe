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

/// Checks whether a coordinator could start with these words of `mltcp gen`, which include --serve. Reads the options,
/// the experiment and its plan, but does not listen. Throws the InputError that the coordinator would throw. Returns
/// false if the words contain --help; then the help has been printed.
bool check_coordinator_words(const std::vector<std::string>& words);

/// Settings of a coordinator that runs an experiment across hosts. The hosts join it with mltcp gen --join.
struct Serving {
  std::string address;                  ///< address to listen on
  experiment::StreamKey key{};          ///< key that hosts must have to join; null: only hosts without a key can join
  Nanos wait{60'000'000'000};           ///< maximum time to wait for hosts to join
  std::string plan{};                   ///< file with a plan; empty: the coordinator computes the plans
  std::optional<std::string> json{};    ///< file for the results, or "-" for standard output
  std::optional<std::string> report{};  ///< file for the page of the results, or "-" for standard output
  bool ranks = false;                   ///< show the progress of each rank on the terminal
  SeriesArguments series{};             ///< series of the hosts, which are written at the end
  /// Called with the address as soon as hosts can join.
  std::function<void(const std::string& address)> listening{};
  /// Called before the results are printed; may add to them.
  std::function<void(experiment::Results& results)> complete{};
};

/// Returns the key that key_of() finds, in the form that coordinators and hosts use; null if there is none. Throws
/// InputError. Call it only once, because key_of() may read the key from a descriptor.
experiment::StreamKey stream_key_of(const std::optional<std::string>& key);

/// Coordinates the experiment, whose datapath must be "hosts". Prints the results to `out`, writes them to the files of
/// `serving`, and returns them. Throws InputError or RunError.
experiment::Results serve_experiment(const experiment::Experiment& experiment, const Serving& serving,
                                     const FilesRead& files, std::FILE* out);

}  // namespace mltcp::tools
