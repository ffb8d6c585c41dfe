// Runs the programs of all ranks as drivers do, in a random order that depends on a seed. Messages between two ranks
// are sent in the sender's order and received in the receiver's order. An operation begins after the operations that it
// waits for.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload {

class ProgramRunner {
 public:
  using At = std::pair<std::uint32_t, std::uint32_t>;  ///< rank and index of an operation
  using Buffer = std::vector<std::uint64_t>;

  explicit ProgramRunner(const std::vector<RankProgram>& programs) : programs_(programs) {
    for (std::uint32_t rank = 0; rank < programs.size(); ++rank)
      for (std::uint32_t i = 0; i < programs[rank].operations.size(); ++i) {
        const Operation& operation = programs[rank].operations[i];
        left_.emplace_back(rank, i);
        if (operation.communicates()) lines_[{rank, operation.kind, operation.peer}].push_back(i);
      }
  }
  virtual ~ProgramRunner() = default;
  ProgramRunner(const ProgramRunner&) = delete;
  ProgramRunner& operator=(const ProgramRunner&) = delete;

  /// Runs all operations. Returns them in the order in which they ended. A send ends when its message is received.
  std::vector<At> run(std::uint64_t seed) {
    Random random = Random::stream(seed, 1);
    for (bool moved = true; moved && !left_.empty();) {
      moved = false;
      for (std::size_t i = left_.size(); i-- > 1;) std::swap(left_[i], left_[random.below(i + 1)]);
      std::erase_if(left_, [&](const At& at) {
        const bool begins = step(at);
        moved |= begins;
        return begins;
      });
    }
    EXPECT_TRUE(left_.empty()) << "ranks wait for each other";
    for (const auto& [ends, wire] : wires_)
      EXPECT_TRUE(wire.empty()) << "rank " << ends.second << " does not receive all that rank " << ends.first
                                << " sends";
    return order_;
  }

 protected:
  /// sent() returns the content of a message, and received() processes it at the receiver.
  virtual Buffer sent(std::uint32_t /*rank*/, const Operation& /*operation*/) { return {}; }
  virtual void received(std::uint32_t /*rank*/, const Operation& /*operation*/, const Buffer& /*bytes*/) {}

 private:
  struct Message {
    At sender;
    const Operation* operation;
    Buffer bytes;
  };

  /// Tries to begin an operation. Returns whether it could begin.
  bool step(const At& at) {
    const auto& [rank, number] = at;
    const RankProgram& program = programs_[rank];
    const Operation& operation = program.operations[number];
    for (std::uint32_t i = 0; i < operation.waits; ++i) {
      const std::uint32_t before = program.waits[operation.first_wait + i];
      EXPECT_LT(before, number);  // dependencies refer to earlier operations, so a rank has no cycles
      if (!done_.contains({rank, before})) return false;
    }
    if (operation.communicates()) {
      std::deque<std::uint32_t>& line = lines_[{rank, operation.kind, operation.peer}];
      std::deque<Message>& wire =
          wires_[operation.kind == Operation::Kind::send ? At(rank, operation.peer) : At(operation.peer, rank)];
      if (line.front() != number) return false;
      if (operation.kind == Operation::Kind::send) {
        EXPECT_TRUE(names_.insert({rank, operation.peer, operation.tag}).second) << "two messages of one name";
        wire.push_back({at, &operation, sent(rank, operation)});
      } else {
        if (wire.empty()) return false;
        EXPECT_EQ(wire.front().operation->tag, operation.tag);
        EXPECT_EQ(wire.front().operation->bytes, operation.bytes);
        EXPECT_EQ(wire.front().operation->barrier, operation.barrier);
        received(rank, operation, wire.front().bytes);
        finish(wire.front().sender);
        wire.pop_front();
      }
      line.pop_front();
    }
    if (operation.kind != Operation::Kind::send) finish(at);
    return true;
  }
  void finish(const At& at) {
    done_.insert(at);
    order_.push_back(at);
  }

  const std::vector<RankProgram>& programs_;
  std::vector<At> left_;  ///< operations that have not begun
  std::set<At> done_;
  std::vector<At> order_;  ///< operations in the order in which they ended
  std::map<std::tuple<std::uint32_t, Operation::Kind, std::uint32_t>, std::deque<std::uint32_t>> lines_;
  std::map<At, std::deque<Message>> wires_;  ///< messages in flight, by sender and receiver
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> names_;
};

}  // namespace mltcp::workload
