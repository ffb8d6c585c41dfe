// Finds the iterations of a training from the order and sizes of the collectives that Gloo asks a device for:
// DistributedDataParallel sends the same buckets in the same order in each step.
//
// A collective is described by the first send of a (group, slot): its kind, and the size of the buffer from which it
// sends. Collectives below 1/256 of the largest recent one are ignored: barriers, metrics, buffers of normalisation.
// The others form a sequence of symbols.
//
//   period     the distance to the previous position of the latest 8 symbols (found by a hash table, then compared
//              symbol by symbol). It holds while each symbol equals the one a period before
//   sure       when the period has held for two more periods and at least 12 symbols, and the silence before one of
//              its symbols is long enough to separate iterations (at least 1/8 of the fifth longest recent silence).
//              One more period is enough if the same period was sure before
//   phase      an iteration begins with the symbol after the longest silence, where the shorter silence of the last
//              two periods counts. It moves to another symbol if that one had a longer silence three times in a row.
//              The size is the number of bytes of the last whole period
//   failure    a symbol differs from the one a period before, or a size by more than 1/32: iterations are learned
//              from the traffic again, until all conditions hold anew
//
// The worker threads of a process group may start neighbouring collectives in either order. So symbols are compared in
// the order of their slots, one after the latest that has begun: an error is noticed at most one collective late. All
// state has a fixed size. The work per collective is constant, except when the sequence becomes sure: then it is that
// of two periods.
//
// If the same collective repeats over and over, each one is an iteration. If some silences are less than 1/8 of others,
// iterations are learned from the traffic instead; this takes up to five iterations to notice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gloo::transport::mltcp {

class CollectiveIterations {
 public:
  static constexpr std::size_t kMemory = 4096;  ///< symbols; at most a third of them form a period
  static constexpr std::size_t kGram = 8;
  static constexpr std::size_t kLeast = 12;

  struct Advice {
    enum class Kind : std::uint8_t {
      none,
      begin,  ///< an iteration begins with this send; it will send `bytes`
      learn,  ///< iterations are no longer known
    };
    Kind kind = Kind::none;
    std::uint64_t bytes = 0;
    bool ends = false;  ///< this send is the last of the iteration
  };

  /// Call before a send is posted: `bytes` from a buffer of `buffer` bytes, in group `group`, on `slot`. `now` in
  /// nanoseconds must not decrease, except by differences between threads.
  Advice on_send(std::int64_t now, std::uint32_t group, std::uint64_t slot, std::uint64_t buffer, std::uint64_t bytes);

  [[nodiscard]] bool sure() const { return sure_; }
  /// Number of collectives per iteration; 0: not sure.
  [[nodiscard]] std::size_t period() const { return sure_ ? period_ : 0; }

 private:
  struct Seen {
    std::uint64_t symbol = 0;
    std::uint64_t before = 0;  ///< bytes sent before it began
    std::int64_t silence = 0;  ///< before it
  };
  struct Held {
    Seen seen;
    std::uint32_t group = 0;
    std::uint32_t number = 0;
    bool there = false;
  };
  struct Place {
    std::uint64_t hash = 0;
    std::uint64_t at = 0;  ///< index plus 1; 0: none
  };

  [[nodiscard]] const Seen& at(std::uint64_t index) const { return seen_[index % kMemory]; }
  bool is_new(std::uint32_t group, std::uint64_t number);
  void commit(const Seen& seen);
  void follow(const Seen& seen, Advice& advice);
  void look_up();
  void try_to_be_sure();
  [[nodiscard]] std::int64_t separating_silence() const;
  void fail();

  std::array<Seen, kMemory> seen_{};
  std::array<Place, 1024> places_{};
  std::array<std::uint64_t, 16> open_{};  ///< recent collectives, by group and slot
  std::size_t next_open_ = 0;

  std::uint64_t count_ = 0;    ///< symbols compared
  std::uint64_t period_ = 0;   ///< 0: none
  std::uint64_t matched_ = 0;  ///< consecutive symbols equal to the one a period before
  std::uint64_t proven_ = 0;   ///< the latest period that was sure
  bool sure_ = false;

  Held held_;
  std::uint64_t largest_ = 0;
  std::uint64_t sent_ = 0;
  std::int64_t last_ = 0;  ///< time of the latest send

  // Valid while sure.
  bool in_iteration_ = false;
  bool ended_ = false;       ///< all of its bytes were sent
  std::uint64_t left_ = 0;   ///< outside an iteration: symbols until the next one begins
  std::uint64_t begun_ = 0;  ///< symbols of this iteration so far
  std::uint64_t start_ = 0;  ///< bytes sent before this iteration
  std::uint64_t size_ = 0;   ///< of an iteration
  std::int64_t longest_inside_ = 0;
  std::uint64_t longest_at_ = 0;
  std::uint64_t rival_ = 0;  ///< another place with the longest silence, and how many times in a row
  std::uint32_t rival_count_ = 0;
  std::uint32_t short_count_ = 0;
};

}  // namespace gloo::transport::mltcp
