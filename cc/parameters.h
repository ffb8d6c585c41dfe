// What an algorithm can be told: its parameters, described once beside the structure that holds them. From the
// descriptions the ranges are checked, files are read, help is written, and values travel to other hosts.
//
// An algorithm with parameters has, beside what every algorithm has (algorithm.h):
//
//   using Parameters = DctcpParameters;           a structure with the defaults; trivially copyable
//   static constexpr std::array parameters{       one description for each of its members
//       parameter<&DctcpParameters::g>("g", above(0).at_most(1), "weight of a window's marks in alpha"), ...};
//
// and, if it needs them,
//
//   static ParameterProblem problem_of(const Parameters&);       what ranges don't tell: parameters that bound others
//   static void fit(Parameters&, const NetworkInfo&);            what all flows of one network shall have in common
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::cc {

struct AlgorithmTable;

/// Whether `name` can be that of an algorithm or a parameter, and so a key of files: lower-case letters, digits, '-'
/// and
/// '_', beginning with a letter.
constexpr bool is_name(std::string_view name) {
  for (const char c : name)
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-') return false;
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z';
}

/// A value of a parameter; its alternatives are the kinds of parameters.
using ParameterValue = std::variant<double, bool, std::uint32_t, Nanos, Rate, Bytes>;

/// As experiment files have it: "0.5", "true", "5", "50 us", "40 Mbps", "10 MB".
std::string value_text(const ParameterValue& value);

/// The values that a parameter may have, in its unit: nanoseconds, bits per second and bytes for those with types of
/// their own. Made by above() and at_least(). What is not finite is in no range, and a time at most 1000 s.
struct ParameterRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool without_least = false;
  bool without_most = false;
  std::string_view zero{};  ///< not empty: 0 is fine, too, and stands for this

  [[nodiscard]] constexpr ParameterRange at_most(double bound) const {
    ParameterRange range = *this;
    range.most = bound;
    return range;
  }
  [[nodiscard]] constexpr ParameterRange below(double bound) const {
    ParameterRange range = at_most(bound);
    range.without_most = true;
    return range;
  }
  [[nodiscard]] constexpr ParameterRange or_zero(std::string_view meaning) const {
    ParameterRange range = *this;
    range.zero = meaning;
    return range;
  }
};

constexpr ParameterRange at_least(double bound) {
  ParameterRange range;
  range.least = bound;
  return range;
}
constexpr ParameterRange at_least(Nanos bound) { return at_least(static_cast<double>(bound.count)); }
constexpr ParameterRange above(double bound) {
  ParameterRange range = at_least(bound);
  range.without_least = true;
  return range;
}
constexpr ParameterRange above(Nanos bound) { return above(static_cast<double>(bound.count)); }

/// One parameter of an algorithm; made by parameter().
struct Parameter {
  std::string_view name;  ///< the key in files, see is_name()
  ParameterRange range;
  std::string_view help;  ///< what it is, in a line without a full stop
  std::string_view unit;  ///< of a number, as "packets"; empty: none, or that of its type
  ParameterValue by_default;
  // Of the structure that holds it; set() takes a value of by_default's alternative.
  ParameterValue (*get)(const void* parameters);
  void (*set)(void* parameters, const ParameterValue& value);
};

namespace internal {
template <auto member>
struct MemberOf;
template <typename Object, typename Value, Value Object::*member>
struct MemberOf<member> {
  using object = Object;
  using value = Value;
};
}  // namespace internal

/// The description of `member`, whose type is one of ParameterValue's and whose default is the structure's.
template <auto member>
constexpr Parameter parameter(std::string_view name, ParameterRange range, std::string_view help,
                              std::string_view unit = {}) {
  using Object = typename internal::MemberOf<member>::object;
  using Value = typename internal::MemberOf<member>::value;
  return {name,
          range,
          help,
          unit,
          ParameterValue(Object{}.*member),
          [](const void* parameters) { return ParameterValue(static_cast<const Object*>(parameters)->*member); },
          [](void* parameters, const ParameterValue& value) {
            static_cast<Object*>(parameters)->*member = std::get<Value>(value);
          }};
}
/// Of one that is true or false.
template <auto member>
constexpr Parameter parameter(std::string_view name, std::string_view help) {
  static_assert(std::is_same_v<typename internal::MemberOf<member>::value, bool>, "other parameters have a range");
  return parameter<member>(name, ParameterRange{}, help);
}

/// A parameter that another one does not allow.
struct ParameterProblem {
  std::string_view parameter{};  ///< its name; empty: all is well
  std::string_view wanted{};     ///< what it should be, as "above the notification_interval"
  std::string_view bound_by{};   ///< the name of the other
};

/// What is known of a network that all its flows share.
struct NetworkInfo {
  Nanos unloaded_round_trip;  ///< of a full packet over its longest path, with empty queues
};

/// Parameters of any algorithms; of those that nobody has set, the defaults. One object serves any number of
/// controllers: an algorithm copies what it needs when it starts.
class Parameters {
 public:
  static constexpr std::size_t most_bytes = 256;  ///< of the structure of one algorithm

  /// Those of algorithm `State`.
  template <typename State>
  [[nodiscard]] typename State::Parameters of() const {
    typename State::Parameters result;
    if (const Block* block = find(State::name)) std::memcpy(&result, block->bytes.data(), sizeof(result));
    return result;
  }
  /// The same to be changed; valid until another algorithm's are.
  template <typename State>
  [[nodiscard]] typename State::Parameters& edit() {
    using Structure = typename State::Parameters;
    static_assert(sizeof(Structure) <= most_bytes && std::is_trivially_copyable_v<Structure>);
    Block* block = find(State::name);
    if (block == nullptr) {
      block = &blocks_.emplace_back();
      block->algorithm = State::name;
      new (block->bytes.data()) Structure();
    }
    return *std::launder(reinterpret_cast<Structure*>(block->bytes.data()));
  }

  // The same without the type. `parameter` is one of the algorithm's.
  [[nodiscard]] ParameterValue get(const AlgorithmTable& algorithm, const Parameter& parameter) const;
  void set(const AlgorithmTable& algorithm, const Parameter& parameter, const ParameterValue& value);

  /// What is wrong with the parameters of an algorithm.
  struct Objection {
    std::string_view parameter;  ///< empty: nothing
    std::string_view bound_by;   ///< the other one of two that don't go together
    std::string text;            ///< "swift beta of 1.5 is out of range; give a value above 0 and at most 1"
  };
  [[nodiscard]] Objection objection(const AlgorithmTable& algorithm) const;
  /// Throws InputError that names the first parameter of algorithm `name` that is out of range, or that there is no
  /// such algorithm.
  void validate(std::string_view name) const;
  /// Sets what all flows of one network shall have in common, of all algorithms, where nobody has set it.
  void fit(const NetworkInfo& network);

 private:
  struct Block {
    std::string_view algorithm;
    alignas(std::max_align_t) std::array<std::byte, most_bytes> bytes{};
  };
  [[nodiscard]] const Block* find(std::string_view algorithm) const {
    for (const Block& block : blocks_)
      if (block.algorithm == algorithm) return &block;
    return nullptr;
  }
  [[nodiscard]] Block* find(std::string_view algorithm) {
    for (Block& block : blocks_)
      if (block.algorithm == algorithm) return &block;
    return nullptr;
  }
  Block& block_of(const AlgorithmTable& algorithm);

  std::vector<Block> blocks_;
};

/// All defaults.
inline const Parameters default_parameters;

/// The range in words, as "above 0 and at most 1", or "of 1 kB or more, or 0 for 2 ms of the sender's rate"; empty when
/// there is nothing to say.
std::string range_text(const Parameter& parameter);

}  // namespace mltcp::cc
