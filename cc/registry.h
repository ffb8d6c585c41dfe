// All congestion control algorithms by name: built in, registered by the program, or loaded from shared objects. All
// are used in the same way; files, help texts and other hosts refer to them by their tables.
//
// Register and load algorithms at set-up. Any thread may call all functions. Tables are never moved or removed.
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

inline constexpr std::size_t kMaxAlgorithms = 64;

/// All algorithms, built-in ones first.
std::span<const AlgorithmTable* const> algorithms();
/// The names of the algorithms in the same order, separated by ", ".
std::string algorithm_names();

/// The algorithm called `name`; throws InputError that lists the existing names.
const AlgorithmTable& find_algorithm(std::string_view name);

/// Adds an algorithm under its name; does nothing if the same table is registered already. `table` must live until the
/// program ends. Throws InputError if the name is taken or there are kMaxAlgorithms already.
const AlgorithmTable& register_algorithm(const AlgorithmTable& table);
/// Adds algorithm `State`.
template <typename State>
const AlgorithmTable& register_algorithm() {
  return register_algorithm(table_of<State>());
}

/// Descriptor of a shared object with algorithms, returned by its mltcp_cc_library() (below).
struct AlgorithmLibrary {
  std::uint64_t abi = 0;  ///< kLibraryAbi of its build; must stay the first member, of this type
  const AlgorithmTable* const* tables = nullptr;
  std::size_t count = 0;
};

/// ABI version, which must be equal in program and shared object. Upper half: a number to increment when the meaning of
/// an event, sample or table changes. Lower half: a hash of their layout.
inline constexpr std::uint64_t kLibraryAbi = [] {
  constexpr std::uint64_t number = 2;
  std::uint32_t layout = 2166136261U;  // FNV-1a
  for (const std::size_t size : {sizeof(void*), sizeof(AlgorithmTable), sizeof(Parameter), sizeof(ParameterValue),
                                 sizeof(ParameterProblem), sizeof(Parameters), sizeof(Capabilities), sizeof(PathInfo),
                                 sizeof(NetworkInfo), sizeof(Output), sizeof(AckSample), sizeof(CongestionEvent),
                                 sizeof(LossReport), Controller::kStateBytes, Controller::kStateAlign})
    layout = (layout ^ static_cast<std::uint32_t>(size)) * 16777619U;
  return number << 32U | layout;
}();

/// The descriptor of algorithms `States`, which mltcp_cc_library() returns.
template <typename... States>
const AlgorithmLibrary* library_of() {
  static const std::array<const AlgorithmTable*, sizeof...(States)> tables{&table_of<States>()...};
  static const AlgorithmLibrary library{kLibraryAbi, tables.data(), tables.size()};
  return &library;
}

/// Loads the shared object `file` and registers its algorithm `name` only; may be called repeatedly. The code stays
/// loaded. Throws InputError "cause; cure": no such file, not a shared object, another ABI, no such algorithm, name
/// taken.
const AlgorithmTable& load_algorithm(const std::filesystem::path& file, std::string_view name);

/// The algorithm that `text` from a file or command line names: NAME, or FILE.so:NAME, which is loaded. FILE is
/// relative to `folder` (empty: the current one). Throws InputError like find_algorithm() and load_algorithm().
const AlgorithmTable& algorithm_from(std::string_view text, const std::filesystem::path& folder = {});

/// Whether `text` has the form FILE.so:NAME.
constexpr bool names_a_library(std::string_view text) { return text.find(':') != std::string_view::npos; }

/// Absolute path of the shared object that the algorithm was loaded from; empty if it was not loaded.
std::filesystem::path library_file(const AlgorithmTable& table);

}  // namespace mltcp::cc

/// Defined by shared objects with algorithms, and only there:
///   const mltcp::cc::AlgorithmLibrary* mltcp_cc_library() { return mltcp::cc::library_of<Mine, Another>(); }
extern "C" [[gnu::visibility("default")]] const mltcp::cc::AlgorithmLibrary* mltcp_cc_library();
