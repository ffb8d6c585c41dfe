// All congestion control algorithms by name: built in, registered by the program, or loaded from shared objects. All of
// them are used in the same way, through their tables.
//
// Register and load algorithms at set-up. All functions may be called from any thread. Tables are never moved or
// removed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/cc/controller.h"

namespace mltcp::cc {

inline constexpr std::size_t kMaxAlgorithms = 64;

/// Returns all algorithms. The built-in ones come first.
std::span<const AlgorithmTable* const> algorithms();
/// Returns the names of algorithms(), in the same order, separated by ", ".
std::string algorithm_names();

/// Returns the algorithm called `name`. Throws InputError that lists the existing names if there is none.
const AlgorithmTable& find_algorithm(std::string_view name);

/// Returns the parameter tables of all algorithms, and of policy `turns` (cc/turns.h).
std::vector<const ParameterTable*> parameter_tables();
/// Returns the parameter table of algorithm or policy `name`. Throws InputError with a cure if there
/// is none.
const ParameterTable& find_parameters(std::string_view name);

/// Adds an algorithm under its name. Does nothing if the same table is already registered. `table` must exist until the
/// program ends. Throws InputError if the name is taken, or if there are already kMaxAlgorithms.
const AlgorithmTable& register_algorithm(const AlgorithmTable& table);
/// Adds algorithm `State`. Throws like register_algorithm(table).
template <typename State>
const AlgorithmTable& register_algorithm() {
  return register_algorithm(table_of<State>());
}

/// Describes a shared object with algorithms. The shared object's function mltcp_cc_library() returns it.
struct AlgorithmLibrary {
  std::uint64_t abi = 0;  ///< kLibraryAbi at the build of the shared object; must stay the first member, with this type
  const AlgorithmTable* const* tables = nullptr;
  std::size_t count = 0;
};

/// ABI version, which must be equal in program and shared object. The upper half is a number to increment when the
/// meaning of an event, sample or table changes. The lower half is a hash of their sizes.
inline constexpr std::uint64_t kLibraryAbi = [] {
  constexpr std::uint64_t number = 3;
  std::uint32_t layout = 2166136261U;  // FNV-1a
  for (const std::size_t size : {sizeof(void*), sizeof(AlgorithmTable), sizeof(Parameter), sizeof(ParameterValue),
                                 sizeof(ParameterProblem), sizeof(Parameters), sizeof(Capabilities), sizeof(PathInfo),
                                 sizeof(NetworkInfo), sizeof(Output), sizeof(AckSample), sizeof(CongestionEvent),
                                 sizeof(LossReport), Controller::kStateBytes, Controller::kStateAlign})
    layout = (layout ^ static_cast<std::uint32_t>(size)) * 16777619U;
  return number << 32U | layout;
}();

/// Returns the descriptor of algorithms `States`. A shared object's function mltcp_cc_library() must return this
/// descriptor.
template <typename... States>
const AlgorithmLibrary* library_of() {
  static const std::array<const AlgorithmTable*, sizeof...(States)> tables{&table_of<States>()...};
  static const AlgorithmLibrary library{kLibraryAbi, tables.data(), tables.size()};
  return &library;
}

/// Loads the shared object `file`, and registers only its algorithm `name`. May be called repeatedly for a file. The
/// code stays loaded. Throws InputError "cause; cure" if the file does not exist, is no shared object, has another ABI
/// or no such algorithm, or if the name is taken.
const AlgorithmTable& load_algorithm(const std::filesystem::path& file, std::string_view name);

/// Returns the algorithm that `text` from a file or command line names. `text` is NAME, or FILE.so:NAME to load the
/// algorithm from a shared object. FILE is relative to `folder`, or to the current folder if `folder` is empty. Throws
/// InputError like find_algorithm() and load_algorithm().
const AlgorithmTable& algorithm_from(std::string_view text, const std::filesystem::path& folder = {});

/// Returns whether `text` has the form FILE.so:NAME.
constexpr bool names_a_library(std::string_view text) { return text.find(':') != std::string_view::npos; }

/// Returns the absolute path of the shared object from which the algorithm was loaded; empty if it was not loaded.
std::filesystem::path library_file(const AlgorithmTable& table);

}  // namespace mltcp::cc

/// Only shared objects with algorithms define this function:
///   const mltcp::cc::AlgorithmLibrary* mltcp_cc_library() { return mltcp::cc::library_of<Mine, Another>(); }
extern "C" [[gnu::visibility("default")]] const mltcp::cc::AlgorithmLibrary* mltcp_cc_library();
