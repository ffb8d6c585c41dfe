// One congestion controller of one path: any algorithm, chosen by name at run time, its state inline in a fixed,
// aligned buffer. One indirect call per event.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

/// The calls of an algorithm without its type.
struct AlgorithmTable {
  std::string_view name;
  Capabilities capabilities;
  void (*start)(void* state, const PathInfo&, Output&);
  void (*on_ack)(void* state, const AckSample&, Output&);
  void (*on_congestion)(void* state, const CongestionEvent&, Output&);
  void (*on_timeout)(void* state, Nanos now, Output&);
  void (*on_spurious_congestion)(void* state, Nanos now, Output&);
  void (*on_timer)(void* state, Nanos now, Output&);
  void (*on_idle_restart)(void* state, Nanos now, Output&);
};

class Controller {
 public:
  static constexpr std::size_t state_bytes = 192;
  static constexpr std::size_t state_align = 16;

  /// `table` outlives the controller (tables are static).
  Controller(const AlgorithmTable& table, const PathInfo& path) : table_(&table) {
    table_->start(state_.data(), path, output_);
  }

  [[nodiscard]] const AlgorithmTable& algorithm() const { return *table_; }
  [[nodiscard]] const Output& output() const { return output_; }

  void on_ack(const AckSample& sample) { table_->on_ack(state_.data(), sample, output_); }
  void on_congestion(const CongestionEvent& event) { table_->on_congestion(state_.data(), event, output_); }
  void on_timeout(Nanos now) { table_->on_timeout(state_.data(), now, output_); }
  void on_spurious_congestion(Nanos now) { table_->on_spurious_congestion(state_.data(), now, output_); }
  void on_timer(Nanos now) { table_->on_timer(state_.data(), now, output_); }
  void on_idle_restart(Nanos now) { table_->on_idle_restart(state_.data(), now, output_); }

 private:
  // What the transport reads comes first, so that it shares a cache line with the first words of the state.
  const AlgorithmTable* table_;
  Output output_;
  alignas(state_align) std::array<std::byte, state_bytes> state_{};
};

/// The table of algorithm `State`.
template <Algorithm State>
const AlgorithmTable& table_of() {
  static_assert(sizeof(State) <= Controller::state_bytes, "the state must fit the controller's buffer");
  static_assert(alignof(State) <= Controller::state_align);
  static constexpr auto self = [](void* p) -> State& { return *std::launder(static_cast<State*>(p)); };
  static constexpr AlgorithmTable table{
      State::name,
      State::capabilities,
      [](void* p, const PathInfo& path, Output& out) { (new (p) State())->start(path, out); },
      [](void* p, const AckSample& ack, Output& out) { self(p).on_ack(ack, out); },
      [](void* p, const CongestionEvent& event, Output& out) { self(p).on_congestion(event, out); },
      [](void* p, Nanos now, Output& out) { self(p).on_timeout(now, out); },
      [](void* p, Nanos now, Output& out) { self(p).on_spurious_congestion(now, out); },
      [](void* p, Nanos now, Output& out) { self(p).on_timer(now, out); },
      [](void* p, Nanos now, Output& out) { self(p).on_idle_restart(now, out); },
  };
  return table;
}

/// All algorithms of this build.
std::span<const AlgorithmTable* const> algorithms();

/// The algorithm called `name`; throws InputError that lists the names there are.
const AlgorithmTable& find_algorithm(std::string_view name);

}  // namespace mltcp::cc
