// Lists of a struct's fields. One list, next to the struct, serves all text formats of the struct. A list is a function
// found by argument-dependent lookup:
//
//   constexpr auto fields_of(const Pause* /*type*/) {
//     return list_of<Pause>(field("iteration", &Pause::iteration), field("time", &Pause::time));
//   }
//
// A list must name every member of its struct once, or it does not compile: a new member needs a name in files and
// messages, or must be excluded by left_out(). Members are counted by the number of initialisers that the struct
// accepts, so lists require aggregates without C arrays. If a struct has a base, list_of<T, Base>() also contains the
// members of the base.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace mltcp {

/// The options of a field that has only a name.
struct Plain {};

/// A member of T with its name in text formats.
template <typename T, typename M, typename About = Plain>
struct Field {
  using Member = M;
  const char* name;
  M T::*member;
  About about;  ///< options of a text format, such as bounds or when to write the field
};
template <typename T, typename M>
constexpr Field<T, M> field(const char* name, M T::*member) {
  return {name, member, {}};
}
template <typename T, typename M, typename About>
constexpr Field<T, M, About> field(const char* name, M T::*member, About about) {
  return {name, member, about};
}

/// A member of T that appears in no text format.
template <typename T, typename M>
struct LeftOut {
  M T::*member;
};
template <typename T, typename M>
constexpr LeftOut<T, M> left_out(M T::*member) {
  return {member};
}

namespace internal {

struct AnyValue {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): never called; must convert implicitly to any member
};

template <typename T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...> /*values*/) {
  return requires { T{(static_cast<void>(I), AnyValue{})...}; };
}

template <typename T>
inline constexpr bool kIsLeftOut = false;
template <typename T, typename M>
inline constexpr bool kIsLeftOut<LeftOut<T, M>> = true;

template <typename A, typename B>
constexpr bool clash(const A& a, const B& b) {
  if constexpr (!kIsLeftOut<A> && !kIsLeftOut<B>)
    if (std::string_view(a.name) == b.name) return true;
  if constexpr (std::is_same_v<decltype(a.member), decltype(b.member)>) return a.member == b.member;
  return false;
}

constexpr bool each_once() { return true; }
template <typename First, typename... Others>
constexpr bool each_once(const First& first, const Others&... others) {
  return !(clash(first, others) || ...) && each_once(others...);
}

}  // namespace internal

/// Number of members of an aggregate.
template <typename T, std::size_t N = 0>
constexpr std::size_t count_members() {
  static_assert(std::is_aggregate_v<T>, "members can be counted only in aggregates");
  if constexpr (internal::takes<T>(std::make_index_sequence<N + 1>()))
    return count_members<T, N + 1>();
  else
    return N;
}

/// Returns the list of T's fields, in the order in which files contain them.
template <typename T, typename Base = T, typename... Entries>
consteval auto list_of(Entries... entries) {
  // A base counts as one initialiser. count_members<T>() is not used here, because it would take the compiler too long.
  constexpr std::size_t members = sizeof...(Entries) - (std::is_same_v<T, Base> ? 0 : count_members<Base>() - 1);
  static_assert(!internal::takes<T>(std::make_index_sequence<members + 1>()),
                "this struct has a member that its list of fields lacks: add it as field(), or as left_out()");
  static_assert(internal::takes<T>(std::make_index_sequence<members>()),
                "this list of fields is longer than its struct");
  if (!internal::each_once(entries...)) throw "a member or a name appears twice in this list of fields";
  return std::tuple<Entries...>(entries...);
}

template <typename T>
concept HasFields = requires(const T* type) {
  fields_of(type);
};

/// Calls `visit` with each Field of T, in the order of the list. Skips members in left_out().
template <HasFields T, typename Visit>
constexpr void for_each_field(Visit&& visit) {
  constexpr auto list = fields_of(static_cast<const T*>(nullptr));
  const auto unless_left_out = [&](const auto& entry) {
    if constexpr (!internal::kIsLeftOut<std::remove_cvref_t<decltype(entry)>>) visit(entry);
  };
  [&]<std::size_t... I>(std::index_sequence<I...> /*entries*/) { (unless_left_out(std::get<I>(list)), ...); }
  (std::make_index_sequence<std::tuple_size_v<decltype(list)>>());
}

}  // namespace mltcp
