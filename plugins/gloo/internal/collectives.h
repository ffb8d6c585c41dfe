// Finds the iterations of a training in the collectives that a device is asked for, whose order and sizes Gloo tells:
// DistributedDataParallel sends the same buckets in the same order in each step.
//
// A collective is what the first send of a (group, slot) tells: its kind, and the size of the buffer that it sends
// from. Those of less than 1/256 of the largest of late are left out: barriers, metrics, buffers of normalisation. What
// is left is a sequence of symbols.
//
//   period     the distance to the last place where the latest 8 symbols stood (by a hash table; the symbols themselves
//              are compared). It holds while each symbol is that of a period before
//   sure       once two periods more have held, 12 symbols at least, and the silence before one of the period's
//              symbols is of the kind that separates iterations (an eighth of the fifth longest of late, or more). A
//              period that was sure before is, after one
//   phase      an iteration begins with the symbol that has the longest silence before it, the shorter one of the last
//              two periods counting; with another one once that has had a longer one three times in a row. Its size is
//              what the last whole period sent
//   failure    another symbol than that of a period before, or a size that is more than 1/32 off: the traffic's learner
//              is asked again, until all that holds anew
//
// The worker threads of a process group start neighbours in either order, so symbols are compared in the order of their
// slots, one behind what has begun: an error is noticed at most one collective after it has begun. All that is kept is
// of fixed size. The work per collective is constant, but once for each time that it becomes sure, where it is that of
// two periods.
//
// One and the same collective over and over is an iteration each time. Where some silences are less than an eighth of
// others it is left to the traffic, but for the first five iterations, until the longer ones have come to be seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gloo::transport::mltcp {

class CollectiveIterations {
 public:
  static constexpr std::size_t kMemory = 4096;  ///< symbols; a period has at most a third of them
  static constexpr std::size_t kGram = 8;
  static constexpr std::size_t kLeast = 12;

  struct Advice {
    enum class Kind : std::uint8_t {
      none,
      begin,  ///< an iteration begins with this send; it will send `bytes`
      learn,  ///< it is not known any more
    };
    Kind kind = Kind::none;
    std::uint64_t bytes = 0;
    bool ends = false;  ///< this send is the last of the iteration
  };

  /// A send is about to be posted: of `bytes` from a buffer of `buffer` bytes, of group `group`, on `slot`. `now`, in
  /// nanoseconds, does not decrease but by what threads differ.
  Advice on_send(std::int64_t now, std::uint32_t group, std::uint64_t slot, std::uint64_t buffer, std::uint64_t bytes);

  [[nodiscard]] bool sure() const { return sure_; }
  /// Collectives of an iteration; 0: not sure.
  [[nodiscard]] std::size_t period() const { return sure_ ? period_ : 0; }

 private:
  struct Seen {
    std::uint64_t symbol = 0;
    std::uint64_t before = 0;  ///< bytes that were sent until it began
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
    std::uint64_t at = 0;  ///< 0: none; else one more than the index
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
  std::array<std::uint64_t, 16> open_{};  ///< collectives of late, by group and slot
  std::size_t next_open_ = 0;

  std::uint64_t count_ = 0;    ///< symbols compared
  std::uint64_t period_ = 0;   ///< 0: none
  std::uint64_t matched_ = 0;  ///< symbols that were those of a period before
  std::uint64_t proven_ = 0;   ///< the period that was sure last
  bool sure_ = false;

  Held held_;
  std::uint64_t largest_ = 0;
  std::uint64_t sent_ = 0;
  std::int64_t last_ = 0;  ///< the latest send

  // While sure.
  bool in_iteration_ = false;
  bool ended_ = false;       ///< all of it was sent
  std::uint64_t left_ = 0;   ///< not in an iteration: symbols until one begins
  std::uint64_t begun_ = 0;  ///< symbols of this iteration that have begun
  std::uint64_t start_ = 0;  ///< bytes that were sent until it began
  std::uint64_t size_ = 0;   ///< of an iteration
  std::int64_t longest_inside_ = 0;
  std::uint64_t longest_at_ = 0;
  std::uint64_t rival_ = 0;  ///< where the longest silence was instead, and how many times in a row
  std::uint32_t rival_count_ = 0;
  std::uint32_t short_count_ = 0;
};

}  // namespace gloo::transport::mltcp
