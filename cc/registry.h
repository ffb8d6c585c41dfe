// The algorithms there are, by name: those of this build, those that the program registers, and those of shared objects
// that it loads. All of them are alike to whoever looks: files, help and other hosts know them by their tables.
//
// Registering and loading are for set-up. Every function here may be called from any thread; tables are never moved or
// taken back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "mltcp/cc/controller.h"

namespace mltcp::cc {

inline constexpr std::size_t most_algorithms = 64;

/// All algorithms, those of this build first.
std::span<const AlgorithmTable* const> algorithms();
/// Their names, in that order, separated by ", ".
std::string algorithm_names();

/// The algorithm called `name`; throws InputError that lists the names there are.
const AlgorithmTable& find_algorithm(std::string_view name);

/// Adds an algorithm, from then on known by its name; nothing if that very one is there already. `table` lives as long
/// as the program. Throws InputError if another one has its name, or if there are too many.
const AlgorithmTable& register_algorithm(const AlgorithmTable& table);
/// Adds algorithm `State`.
template <typename State>
const AlgorithmTable& register_algorithm() {
  return register_algorithm(table_of<State>());
}

/// What a shared object with algorithms says of itself. It defines mltcp_cc_library(), below.
struct AlgorithmLibrary {
  std::uint64_t abi = 0;  ///< library_abi of its build. This member stays the first, of this type
  const AlgorithmTable* const* tables = nullptr;
  std::size_t count = 0;
};

/// What program and shared object must have in common: a number that is raised when the meaning of an event, a sample
/// or a table changes, and below it what shows of their layout.
inline constexpr std::uint64_t library_abi = [] {
  constexpr std::uint64_t number = 1;
  std::uint32_t layout = 2166136261U;  // FNV-1a
  for (const std::size_t size :
       {sizeof(void*), sizeof(AlgorithmTable), sizeof(Parameter), sizeof(ParameterValue), sizeof(ParameterProblem),
        sizeof(Parameters), sizeof(Capabilities), sizeof(PathInfo), sizeof(NetworkInfo), sizeof(Output),
        sizeof(AckSample), sizeof(CongestionEvent), Controller::state_bytes, Controller::state_align})
    layout = (layout ^ static_cast<std::uint32_t>(size)) * 16777619U;
  return number << 32U | layout;
}();

/// The library of algorithms `States`, for mltcp_cc_library() to return.
template <typename... States>
const AlgorithmLibrary* library_of() {
  static const std::array<const AlgorithmTable*, sizeof...(States)> tables{&table_of<States>()...};
  static const AlgorithmLibrary library{library_abi, tables.data(), tables.size()};
  return &library;
}

/// Loads shared object `file` and registers its algorithm `name`, and no other of it. Again is fine. The code stays
/// loaded. Throws InputError "cause; cure": no such file, no shared object, another ABI, no such algorithm, a name that
/// another algorithm has.
const AlgorithmTable& load_algorithm(const std::filesystem::path& file, std::string_view name);

/// The algorithm that a file or a command line calls `text`: NAME, or FILE.so:NAME, which is loaded; FILE is relative
/// to `folder` (empty: the current one). Throws InputError as find_algorithm() and load_algorithm() do.
const AlgorithmTable& algorithm_from(std::string_view text, const std::filesystem::path& folder = {});

/// Whether algorithm_from() would load a file.
constexpr bool names_a_library(std::string_view text) { return text.find(':') != std::string_view::npos; }

/// The shared object that a registered algorithm was loaded from, absolute; empty if it was not.
std::filesystem::path library_file(const AlgorithmTable& table);

}  // namespace mltcp::cc

/// Of a shared object with algorithms, and of that alone:
///   const mltcp::cc::AlgorithmLibrary* mltcp_cc_library() { return mltcp::cc::library_of<Mine, Another>(); }
extern "C" [[gnu::visibility("default")]] const mltcp::cc::AlgorithmLibrary* mltcp_cc_library();
