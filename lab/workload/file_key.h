// Options for lists of fields (base/fields.h) that are keys of experiment files. An option states the plausible range
// of a value, and an example for messages. A value outside of the range is an error, because it is probably a mistake.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "mltcp/base/units.h"

namespace mltcp::workload {

inline constexpr std::int64_t kMaxIterations = 1'000'000;
inline constexpr std::int64_t kMaxFlows = 1000;
inline constexpr Nanos kMaxCompute(24LL * 3600 * 1'000'000'000LL);  // one day
inline constexpr double kMaxWeight = 1000;
inline constexpr double kMaxStraggling = 1000;
inline constexpr std::int64_t kMaxPriority = 7;

struct FileKey {};  ///< base class of all options in this file

struct WholeKey : FileKey {
  constexpr WholeKey(std::int64_t its_min, std::int64_t its_max) : min(its_min), max(its_max) {}
  std::int64_t min;
  std::int64_t max;
};
struct TimeKey : FileKey {
  explicit constexpr TimeKey(std::string_view its_example) : example(its_example) {}
  std::string_view example;
  Nanos max = kMaxCompute;
};
/// Option for a field whose value is a number from `min` to `max`.
struct NumberKey : FileKey {
  constexpr NumberKey(double its_min, double its_max, std::string_view its_example)
      : min(its_min), max(its_max), example(its_example) {}
  double min;
  double max;
  std::string_view example;
};
/// Option for a field whose value is a number above 0 and at most `max`.
struct FactorKey : FileKey {
  explicit constexpr FactorKey(double its_max) : max(its_max) {}
  double max;
};
struct ProbabilityKey : FileKey {};
struct RateKey : FileKey {};
struct TruthKey : FileKey {};
/// Option for a field whose value is an inline table that contains all fields of a struct.
struct TableKey : FileKey {
  explicit constexpr TableKey(std::string_view its_example) : example(its_example) {}
  std::string_view example;  ///< example that includes the key of the table
};

/// Whether `Field` is a key of experiment files.
template <typename Field>
inline constexpr bool kIsFileKey =
    std::is_base_of_v<FileKey, std::remove_cvref_t<decltype(std::remove_cvref_t<Field>::about)>>;

}  // namespace mltcp::workload
