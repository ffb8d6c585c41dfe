// The congestion controller of one path. It runs any algorithm, chosen by name at run time, and stores the algorithm's
// state inline in a fixed, aligned buffer. Each event costs one indirect call.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

#include "mltcp/cc/algorithm.h"

namespace mltcp::cc {

/// An algorithm's functions, type-erased.
struct AlgorithmTable : ParameterTable {
  Capabilities capabilities;
  void (*start)(void* state, const PathInfo&, Output&);
  void (*on_ack)(void* state, const AckSample&, Output&);
  bool (*is_congestion)(void* state, const LossReport&);  ///< null if every loss is a sign of congestion
  void (*on_congestion)(void* state, const CongestionEvent&, Output&);
  void (*on_timeout)(void* state, Nanos now, Output&);
  void (*on_spurious_congestion)(void* state, Nanos now, Output&);
  void (*on_timer)(void* state, Nanos now, Output&);
  void (*on_idle_restart)(void* state, Nanos now, Output&);
  /// Null if the algorithm starts anew when packets become longer.
  void (*on_packet_size)(void* state, std::uint32_t max_packet_bytes, Output&);
};

class Controller {
 public:
  static constexpr std::size_t kStateBytes = 192;
  static constexpr std::size_t kStateAlign = 16;

  /// `table` must outlive the controller; all tables are static.
  Controller(const AlgorithmTable& table, const PathInfo& path) : table_(&table) {
    table_->start(state_.data(), path, output_);
  }

  [[nodiscard]] const AlgorithmTable& algorithm() const { return *table_; }
  [[nodiscard]] const Output& output() const { return output_; }

  void on_ack(const AckSample& sample) { table_->on_ack(state_.data(), sample, output_); }
  [[nodiscard]] bool is_congestion(const LossReport& losses) {
    return table_->is_congestion == nullptr || table_->is_congestion(state_.data(), losses);
  }
  void on_congestion(const CongestionEvent& event) { table_->on_congestion(state_.data(), event, output_); }
  void on_timeout(Nanos now) { table_->on_timeout(state_.data(), now, output_); }
  void on_spurious_congestion(Nanos now) { table_->on_spurious_congestion(state_.data(), now, output_); }
  void on_timer(Nanos now) { table_->on_timer(state_.data(), now, output_); }
  void on_idle_restart(Nanos now) { table_->on_idle_restart(state_.data(), now, output_); }
  /// Call when packets of this path have become longer.
  void on_packet_size(const PathInfo& path) {
    if (table_->on_packet_size != nullptr)
      table_->on_packet_size(state_.data(), path.max_packet_bytes, output_);
    else
      *this = Controller(*table_, path);
  }

 private:
  // The members that the transport reads come first, so that they share a cache line with the beginning of the state.
  const AlgorithmTable* table_;
  Output output_;
  alignas(kStateAlign) std::array<std::byte, kStateBytes> state_{};
};

/// Returns the table of algorithm `State`.
template <typename State>
const AlgorithmTable& table_of() {
  static_assert(Algorithm<State>, "State lacks what every algorithm has: see the concept in algorithm.h");
  static_assert(sizeof(State) <= Controller::kStateBytes, "the state must fit the controller's buffer");
  static_assert(alignof(State) <= Controller::kStateAlign);
  static constexpr auto kSelf = [](void* p) -> State& { return *std::launder(static_cast<State*>(p)); };
  static constexpr AlgorithmTable table{
      parameter_table<State>(),
      State::capabilities,
      [](void* p, const PathInfo& path, Output& out) { (new (p) State())->start(path, out); },
      [](void* p, const AckSample& ack, Output& out) { kSelf(p).on_ack(ack, out); },
      [] {
        bool (*is_congestion)(void*, const LossReport&) = nullptr;
        if constexpr (TellsLossesApart<State>)
          is_congestion = [](void* p, const LossReport& losses) { return kSelf(p).is_congestion(losses); };
        return is_congestion;
      }(),
      [](void* p, const CongestionEvent& event, Output& out) { kSelf(p).on_congestion(event, out); },
      [](void* p, Nanos now, Output& out) { kSelf(p).on_timeout(now, out); },
      [](void* p, Nanos now, Output& out) { kSelf(p).on_spurious_congestion(now, out); },
      [](void* p, Nanos now, Output& out) { kSelf(p).on_timer(now, out); },
      [](void* p, Nanos now, Output& out) { kSelf(p).on_idle_restart(now, out); },
      [] {
        void (*on_packet_size)(void*, std::uint32_t, Output&) = nullptr;
        if constexpr (ChangesPacketSize<State>)
          on_packet_size = [](void* p, std::uint32_t bytes, Output& out) { kSelf(p).on_packet_size(bytes, out); };
        return on_packet_size;
      }(),
  };
  return table;
}

}  // namespace mltcp::cc
