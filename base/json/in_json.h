// Options in lists of fields (base/fields.h) for JSON files. For any other option type with a function written(), its
// result is written in place of the member; one with a function read() reads it, and the field must be present.
#pragma once

namespace mltcp {

enum class Presence {
  required,  ///< always written; must be present when read
  later,     ///< always written, but absent from files of earlier versions: then left at its default, or derived
  if_set,    ///< written unless it is empty or at its default
};

struct InJson {
  Presence presence = Presence::required;
  double least = 0;  ///< bounds of a floating-point number
  double most = 0;
};
inline constexpr InJson kMeasure{.least = -1e18, .most = 1e18};  ///< any number that is a measurement
inline constexpr InJson kLater{.presence = Presence::later};
inline constexpr InJson kIfSet{.presence = Presence::if_set};

/// Written, but ignored when read.
struct WrittenOnly {
  template <typename M>
  static const M& written(const M& value) {
    return value;
  }
};

/// Written if another member is set; may be absent when read.
template <typename T, typename M>
struct WrittenWith {
  M T::*other;
};
template <typename T, typename M>
WrittenWith(M T::*) -> WrittenWith<T, M>;

/// Written unless another member is true; may be absent when read.
template <typename T>
struct WrittenUnless {
  bool T::*other;
};
template <typename T>
WrittenUnless(bool T::*) -> WrittenUnless<T>;

/// The fields of a struct are written among those of the enclosing one. If it is optional, the field's name is that of
/// the struct's first field, whose presence indicates the struct's.
struct Spread {};

}  // namespace mltcp
