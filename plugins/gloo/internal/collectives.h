// Finds the iterations of a training run from the order and sizes of the collectives that Gloo requests from a device.
// This works because DistributedDataParallel sends the same buckets in the same order in each step.
//
// A collective is described by the first send of a (group, slot): by its kind, and by the size of the buffer from which
// it sends. Collectives below 1/256 of the largest recent one are ignored: barriers, metrics, buffers of normalisation.
// The others form a sequence of symbols.
//
//   period     The distance from the latest 8 symbols to their previous position. A hash table finds this position;
//              then the symbols are compared one by one. The period holds while each symbol equals the symbol one
//              period before.
//   sure       The iterations are known when the period has held for two more periods and at least 12 symbols, and the
//              silence before one of its symbols is long enough to separate iterations: at least 1/8 of the fifth
//              longest recent silence. One more period instead of two is enough if the same period was sure before.
//   phase      An iteration begins with the symbol after the longest silence. Each position counts with the shorter of
//              its silences in the last two periods. The beginning moves to another symbol if the silence before that
//              symbol was longer in three iterations in a row. The size is the number of bytes of the last whole
//              period.
//   failure    A symbol differs from the symbol one period before, or a size differs by more than 1/32. Iterations are
//              then learned from the traffic, until all conditions hold again.
//
// The worker threads of a process group may start neighbouring collectives in either order. So symbols are compared in
// the order of their slots, one symbol after the latest that has begun. An error is noticed at most one collective
// late. All state has a fixed size. The work per collective is constant, except when the sequence becomes sure: then it
// is proportional to two periods.
//
// If the same collective repeats over and over, each collective is an iteration. If some silences are less than 1/8 of
// other silences, iterations are learned from the traffic. It takes up to five iterations to notice these silences.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gloo::transport::mltcp {

class CollectiveIterations {
 public:
  static constexpr std::size_t kMemory = 4096;  ///< maximum stored symbols; a period has at most a third of them
  static constexpr std::size_t kGram = 8;
  static constexpr std::size_t kMinMatched = 12;

  struct Advice {
    enum class Kind : std::uint8_t {
      none,
      begin,  ///< an iteration begins with this send; the job will send `bytes` in it
      learn,  ///< the iterations are no longer known and must be learned from the traffic
    };
    Kind kind = Kind::none;
    std::uint64_t bytes = 0;
    bool ends = false;  ///< this send is the last of the iteration
  };

  /// Called before a send of `bytes` is posted, from a buffer of `buffer` bytes, in group `group`, on `slot`. `now` is
  /// in nanoseconds and must not decrease, except by small differences between threads. Returns what the caller should
  /// do.
  Advice on_send(std::int64_t now, std::uint32_t group, std::uint64_t slot, std::uint64_t buffer, std::uint64_t bytes);

  [[nodiscard]] bool sure() const { return sure_; }
  /// Returns the number of collectives per iteration, or 0 while the iterations are not known.
  [[nodiscard]] std::size_t period() const { return sure_ ? period_ : 0; }

 private:
  struct Seen {
    std::uint64_t symbol = 0;
    std::uint64_t before = 0;  ///< bytes that were sent before this collective began
    std::int64_t silence = 0;  ///< time without a send before this collective, in nanoseconds
  };
  struct Held {
    Seen seen;
    std::uint32_t group = 0;
    std::uint32_t number = 0;
    bool there = false;
  };
  struct Place {
    std::uint64_t hash = 0;
    std::uint64_t at = 0;  ///< index of the symbol plus 1; 0 if the entry is empty
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

  std::uint64_t count_ = 0;    ///< number of symbols compared so far
  std::uint64_t period_ = 0;   ///< number of symbols in the period; 0 if there is none
  std::uint64_t matched_ = 0;  ///< number of consecutive symbols that equal the symbol one period before
  std::uint64_t proven_ = 0;   ///< latest period that was known to be the iteration
  bool sure_ = false;

  Held held_;
  std::uint64_t largest_ = 0;
  std::uint64_t sent_ = 0;
  std::int64_t last_ = 0;  ///< time of the latest send, in nanoseconds

  // Valid while `sure_` is true.
  bool in_iteration_ = false;
  bool ended_ = false;       ///< all bytes of the iteration were sent
  std::uint64_t left_ = 0;   ///< outside an iteration: number of symbols until the next iteration begins
  std::uint64_t begun_ = 0;  ///< number of symbols of this iteration so far
  std::uint64_t start_ = 0;  ///< bytes that were sent before this iteration
  std::uint64_t size_ = 0;   ///< bytes of an iteration
  std::int64_t longest_inside_ = 0;
  std::uint64_t longest_at_ = 0;
  /// Position of the longest silence, if this is not the beginning. `rival_count_` is the number of iterations in a row
  /// in which the longest silence was at this position.
  std::uint64_t rival_ = 0;
  std::uint32_t rival_count_ = 0;
  std::uint32_t short_count_ = 0;
};

}  // namespace gloo::transport::mltcp
