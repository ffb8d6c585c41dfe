// The parameters of algorithms. Each parameter is described once, next to the structure that contains it. Range
// checks, files, help texts and the transfer to other hosts all use these descriptions.
//
// An algorithm with parameters has, in addition to the members of every algorithm (algorithm.h):
//
//   using Parameters = DctcpParameters;           a structure with the defaults; trivially copyable
//   static constexpr std::array parameters{       one description for each of its members
//       parameter<&DctcpParameters::g>("g", above(0).at_most(1), "weight of a window's marks in alpha"), ...};
//
// and, if it needs them,
//
//   static ParameterProblem problem_of(const Parameters&);       checks parameters that limit each other
//   static void fit(Parameters&, const NetworkInfo&);            sets the values that all flows of a network must share
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::cc {

/// Returns whether `name` is a valid name of an algorithm or parameter, and so a key in files: lower-case letters,
/// digits, '-' and '_', beginning with a letter.
constexpr bool is_name(std::string_view name) {
  for (const char c : name)
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-') return false;
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z';
}

/// The value of a parameter. The alternatives are the possible types.
using ParameterValue = std::variant<double, bool, std::uint32_t, Nanos, Rate, Bytes>;

/// Returns the value in the syntax of experiment files: "0.5", "true", "5", "50 us", "40 Mbps", "10 MB".
std::string value_text(const ParameterValue& value);

/// The valid values of a parameter, in nanoseconds, bits per second or bytes for the types with units. above() and
/// at_least() make ranges. Infinities and NaN are never valid, and a time is at most 1000 s.
struct ParameterRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool without_min = false;
  bool without_max = false;
  std::string_view zero{};  ///< meaning of the value 0; if not empty, 0 is valid even outside the range

  [[nodiscard]] constexpr ParameterRange at_most(double bound) const {
    ParameterRange range = *this;
    range.max = bound;
    return range;
  }
  [[nodiscard]] constexpr ParameterRange below(double bound) const {
    ParameterRange range = at_most(bound);
    range.without_max = true;
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
  range.min = bound;
  return range;
}
constexpr ParameterRange at_least(Nanos bound) { return at_least(static_cast<double>(bound.count)); }
constexpr ParameterRange above(double bound) {
  ParameterRange range = at_least(bound);
  range.without_min = true;
  return range;
}
constexpr ParameterRange above(Nanos bound) { return above(static_cast<double>(bound.count)); }

/// The description of one parameter; made by parameter().
struct Parameter {
  std::string_view name;  ///< the key in files, see is_name()
  ParameterRange range;
  std::string_view help;  ///< help text: one line without a full stop
  std::string_view unit;  ///< unit of a plain number, such as "packets"; empty if there is none or the type implies it
  ParameterValue by_default;
  // Access to the parameter structure; set() requires a value of the same type as by_default.
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

/// Returns the value that describes a member: the member itself, and for a float the number with at most seven decimal
/// digits that a user would write, such as 0.8 for 0.8F.
template <typename Value>
constexpr Value described(Value value) {
  return value;
}
constexpr double described(float value) {
  const auto exact = static_cast<double>(value);
  if (!(exact >= -1e9 && exact <= 1e9)) return exact;  // a whole number, or none
  for (double scale = 1; scale <= 1e7; scale *= 10) {
    const auto whole = static_cast<std::int64_t>(exact * scale + (exact < 0 ? -0.5 : 0.5));
    const double decimal = static_cast<double>(whole) / scale;
    if (static_cast<float>(decimal) == value) return decimal;
  }
  return exact;
}

}  // namespace internal

/// Returns the description of `member`, which must have one of the types of ParameterValue, or float, which is
/// described as a double. The default is the member's initial value.
template <auto member>
constexpr Parameter parameter(std::string_view name, ParameterRange range, std::string_view help,
                              std::string_view unit = {}) {
  using Object = typename internal::MemberOf<member>::object;
  using Value = typename internal::MemberOf<member>::value;
  using Described = decltype(internal::described(Value{}));
  return {name,
          range,
          help,
          unit,
          ParameterValue(internal::described(Object{}.*member)),
          [](const void* parameters) {
            return ParameterValue(internal::described(static_cast<const Object*>(parameters)->*member));
          },
          [](void* parameters, const ParameterValue& value) {
            auto held = std::get<Described>(value);
            if constexpr (std::is_same_v<Value, float>)  // a larger one is not finite, and so out of range
              if (std::isfinite(held) && std::abs(held) > static_cast<double>(std::numeric_limits<float>::max()))
                held = std::numeric_limits<double>::infinity();
            static_cast<Object*>(parameters)->*member = static_cast<Value>(held);
          }};
}
/// Returns the description of a parameter of type bool.
template <auto member>
constexpr Parameter parameter(std::string_view name, std::string_view help) {
  static_assert(std::is_same_v<typename internal::MemberOf<member>::value, bool>, "other parameters have a range");
  return parameter<member>(name, ParameterRange{}, help);
}

/// A parameter that is invalid because of the value of another parameter.
struct ParameterProblem {
  std::string_view parameter{};  ///< name of the parameter; empty if there is no problem
  std::string_view wanted{};     ///< the valid values, such as "above the notification_interval"
  std::string_view bound_by{};   ///< name of the parameter that limits `parameter`
};

/// Properties of a network that are the same for all its flows.
struct NetworkInfo {
  Nanos unloaded_round_trip;  ///< RTT of a full packet over the longest path, with empty queues
  Rate rate{};                ///< rate of the hosts' links, or of the link that all flows share; 0 if not known
};

/// A parameter structure, type-erased; made by parameter_table().
struct ParameterTable {
  std::string_view name;  ///< name of the algorithm, or of the policy that has the parameters
  std::span<const Parameter> parameters;
  void (*set_defaults)(void* structure);
  ParameterProblem (*problem_of)(const void* structure);
  void (*fit)(void* structure, const NetworkInfo&);  ///< null if no parameter depends on the network
};

/// Parameter values of any number of algorithms, and of policy `turns`. Parameters that are not set have their
/// defaults. Any number of controllers and jobs may share one such object.
class Parameters {
 public:
  static constexpr std::size_t kMaxBytes = 256;  ///< maximum size of one algorithm's structure

  /// Returns the parameters of algorithm `State`.
  template <typename State>
  [[nodiscard]] typename State::Parameters of() const {
    typename State::Parameters result;
    if (const Block* block = find(State::name)) std::memcpy(&result, block->bytes.data(), sizeof(result));
    return result;
  }
  /// Returns the same, without a copy. The reference is valid until parameters are changed.
  template <typename State>
  [[nodiscard]] const typename State::Parameters& view() const {
    using Structure = typename State::Parameters;
    static constexpr Structure by_default{};
    const Block* block = find(State::name);
    return block == nullptr ? by_default : *std::launder(reinterpret_cast<const Structure*>(block->bytes.data()));
  }
  /// Returns the parameters of algorithm `State` for changing them. The reference is valid until the parameters of
  /// another algorithm are edited.
  template <typename State>
  [[nodiscard]] typename State::Parameters& edit() {
    using Structure = typename State::Parameters;
    static_assert(sizeof(Structure) <= kMaxBytes && std::is_trivially_copyable_v<Structure>);
    Block* block = find(State::name);
    if (block == nullptr) {
      block = &blocks_.emplace_back();
      block->algorithm = State::name;
      new (block->bytes.data()) Structure();
    }
    return *std::launder(reinterpret_cast<Structure*>(block->bytes.data()));
  }

  // get() and set() serve an algorithm that is chosen at run time. `parameter` must belong to `algorithm`.
  [[nodiscard]] ParameterValue get(const ParameterTable& algorithm, const Parameter& parameter) const;
  void set(const ParameterTable& algorithm, const Parameter& parameter, const ParameterValue& value);

  /// The reason why an algorithm's parameters are invalid.
  struct Objection {
    std::string_view parameter;  ///< name of the invalid parameter; empty if all are valid
    std::string_view bound_by;   ///< name of the parameter that conflicts with `parameter`; empty if none
    std::string text;  ///< message such as "swift beta of 1.5 is out of range; give a value above 0 and at most 1"
  };
  [[nodiscard]] Objection objection(const ParameterTable& algorithm) const;
  /// Throws InputError that names the first invalid parameter of algorithm or policy `name`. Throws InputError if there
  /// is none of that name.
  void validate(std::string_view name) const;
  /// Sets the parameters that all flows of one network should share, for all algorithms. Does not change parameters
  /// that have been set before.
  void fit(const NetworkInfo& network);

 private:
  struct Block {
    std::string_view algorithm;
    alignas(std::max_align_t) std::array<std::byte, kMaxBytes> bytes{};
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
  Block& block_of(const ParameterTable& algorithm);

  std::vector<Block> blocks_;
};

namespace internal {

/// The parameter structure of an algorithm that has no parameters.
struct NoParameters {};
template <typename State>
struct ParametersOf {
  using type = NoParameters;
  static constexpr std::span<const Parameter> kAll{};
};
template <typename State>
requires requires { typename State::Parameters; }
struct ParametersOf<State> {
  using type = typename State::Parameters;
  static constexpr std::span<const Parameter> kAll{State::parameters};
};

/// Returns whether parameter names are valid and unique keys, and every parameter has a help text.
constexpr bool well_described(std::span<const Parameter> parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!is_name(parameters[i].name) || parameters[i].help.empty()) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (parameters[i].name == parameters[j].name) return false;
  }
  return true;
}

}  // namespace internal

/// Returns the parameter table of `State`, an algorithm or a policy.
template <typename State>
constexpr ParameterTable parameter_table() {
  using Held = internal::ParametersOf<State>;
  using Structure = typename Held::type;
  static_assert(is_name(State::name), "a name has lower-case letters, digits, '-' and '_', and begins with a letter");
  static_assert(internal::well_described(Held::kAll), "each parameter has a name of its own, of that kind, and a help");
  static_assert(std::is_trivially_copyable_v<Structure> && sizeof(Structure) <= Parameters::kMaxBytes);
  return {
      State::name,
      Held::kAll,
      [](void* structure) { new (structure) Structure(); },
      [](const void* structure) {
        if constexpr (requires(const Structure& s) { State::problem_of(s); })
          return State::problem_of(*static_cast<const Structure*>(structure));
        else
          return static_cast<void>(structure), ParameterProblem{};
      },
      [] {
        void (*fit)(void*, const NetworkInfo&) = nullptr;
        if constexpr (requires(Structure & s, const NetworkInfo& network) { State::fit(s, network); })
          fit = [](void* structure, const NetworkInfo& network) {
            State::fit(*static_cast<Structure*>(structure), network);
          };
        return fit;
      }(),
  };
}

/// Sets parameters from text in the syntax of files and `--vary`, separated by commas: "swift.base_target=40 us,
/// swift.beta=0.7". Ignores spaces and quotation marks around a value. If a parameter has several values, the last one
/// applies. Checks all parameters in `text`, no matter which algorithm runs. If it throws InputError "cause; cure", it
/// has changed nothing.
void set_from_text(Parameters& parameters, std::string_view text);

/// All parameters at their defaults.
inline const Parameters default_parameters;

/// Returns the range in words, such as "above 0 and at most 1", or "of 1 kB or more, or 0 for 2 ms of the job's rate";
/// empty if any value is valid.
std::string range_text(const Parameter& parameter);

}  // namespace mltcp::cc
