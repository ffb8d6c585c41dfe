// Options of fields for JSON, in lists of fields (base/fields.h). Code may add option types of two kinds. If an option
// has a function written(), the result of written() replaces the member in the file. If it has a function read(), that
// function reads the field, which must then be present.
#pragma once

namespace mltcp {

enum class Presence {
  required,  ///< always written; must be present in files
  later,     ///< always written, but may be missing in older files; the member then keeps its default, or is derived
  if_set,    ///< written unless the member is empty or has its default value; may be missing in files
};

struct InJson {
  Presence presence = Presence::required;
  double min = 0;  ///< minimum of a floating-point number; `max` is its maximum
  double max = 0;
};
inline constexpr InJson kMeasure{.min = -1e18, .max = 1e18};  ///< for numbers that are measurements
inline constexpr InJson kLater{.presence = Presence::later};
inline constexpr InJson kIfSet{.presence = Presence::if_set};

/// The field is written, but ignored when a file is read.
struct WrittenOnly {
  template <typename M>
  static const M& written(const M& value) {
    return value;
  }
};

/// The field is written if the member `other` is set. A file that is read may lack the field.
template <typename T, typename M>
struct WrittenWith {
  M T::*other;
};
template <typename T, typename M>
WrittenWith(M T::*) -> WrittenWith<T, M>;

/// The field is written unless the member `other` is true. A file that is read may lack the field.
template <typename T>
struct WrittenUnless {
  bool T::*other;
};
template <typename T>
WrittenUnless(bool T::*) -> WrittenUnless<T>;

/// The member is a struct. Its fields are written among the fields of the enclosing struct. An optional member is read
/// only if the file contains a field with this Field's name. So give the Field the name of the member's first field.
struct Spread {};

}  // namespace mltcp
