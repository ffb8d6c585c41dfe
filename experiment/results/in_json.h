// What lists of fields (base/fields.h) say of a field that isn't simply there in a JSON file. Anything else with a
// function written() has its result written in place of the member.
#pragma once

namespace mltcp::experiment {

enum class Presence {
  required,  ///< written always, and refused without
  later,     ///< written always, but absent from files of earlier versions: then it is left at its default, or derived
  if_set,    ///< written unless it is at its default, or empty
};

struct InJson {
  Presence presence = Presence::required;
  double least = 0;  ///< bounds of a number that isn't whole
  double most = 0;
};
inline constexpr InJson kLater{.presence = Presence::later};
inline constexpr InJson kIfSet{.presence = Presence::if_set};

/// Written if another member is set; may be missing.
template <typename T, typename M>
struct WrittenWith {
  M T::*other;
};
template <typename T, typename M>
WrittenWith(M T::*) -> WrittenWith<T, M>;

/// Written unless another member is true; may be missing.
template <typename T>
struct WrittenUnless {
  bool T::*other;
};
template <typename T>
WrittenUnless(bool T::*) -> WrittenUnless<T>;

/// The fields of an optional struct stand among those of this one. The field's name is that of the first, which is
/// there if the struct is.
struct Spread {};

}  // namespace mltcp::experiment
