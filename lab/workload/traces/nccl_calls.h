// What logs of NCCL tell, put together: calls that name communicators by pointers or by identifiers, made into nodes of
// ranks that run collectives in groups. For the readers of NCCL's debug logs and of its Inspector.
//
// Who calls is an owner: a process with its GPU. Its rank in the job is what the log tells, or else its rank in the
// largest communicator, or else its place among all owners of the log. The calls of an owner on a stream follow each
// other; sends and receives of a group run at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/workload/traces/graph_builder.h"

namespace mltcp::workload {

struct NcclCall {
  std::string_view name;    ///< "AllReduce"
  Bytes bytes = 0;          ///< count and type: what NCCL is called with, of one rank
  std::uint32_t root = 0;   ///< in the communicator; of Send and Recv: the other rank
  std::uint64_t order = 0;  ///< sends and receives in a row with equal ones run at once
  std::string_view stream;  ///< calls on one follow each other
  Nanos start = Nanos::never();
  Nanos length;
};

class NcclCalls {
 public:
  explicit NcclCalls(GraphBuilder& builder) : builder_(builder) {}

  /// The owner of that name; `order` numbers owners whose ranks nothing tells.
  std::uint32_t owner(std::string_view name, std::uint64_t order);
  /// The communicator of an owner, by what the owner calls it. What is known of it may be told later.
  std::uint32_t communicator(std::uint32_t owner, std::string_view name, std::uint32_t ranks);
  /// Its identifier, which is the same in all ranks, and the owner's rank in it. An empty one leaves what is known.
  void describe(std::uint32_t communicator, std::string_view id, std::uint32_t rank);
  /// Of one that ncclCommSplit made: `split` numbers the splits of `parent`, if that is told; else it is the owner's
  /// how manieth. Ranks that gave the same `color` are together.
  void describe_child(std::uint32_t communicator, std::uint32_t parent, std::optional<std::uint64_t> split,
                      std::string_view color);
  /// What the owner calls by that name from here on is another communicator.
  void forget(std::uint32_t owner, std::string_view name);
  /// The rank of an owner in the job.
  void set_rank(std::uint32_t owner, std::uint32_t rank);

  /// What NCCL calls `name`; nothing if it is unknown.
  static bool known(std::string_view name);
  void call(std::uint32_t communicator, const NcclCall& call);

  [[nodiscard]] std::size_t calls() const { return calls_; }
  /// The order of collectives is a number that counts calls of a communicator on each rank alike, so that ranks are
  /// paired by it; not on communicators that carry messages, too.
  void number_collectives() { numbered_ = true; }
  /// Makes the nodes. `timed`: computation fills the time between calls.
  void finish(bool timed);
  [[nodiscard]] std::uint32_t world() const { return world_; }

 private:
  enum class Operation : std::uint8_t {
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    exchange,  ///< gather or scatter
    broadcast,
    reduce,
    send,
    receive,
    other,
  };
  struct Call {
    std::uint32_t communicator = 0;
    Operation operation = Operation::other;
    std::uint32_t name = 0;
    std::uint32_t stream = 0;
    std::uint32_t root = 0;
    Bytes bytes = 0;
    std::uint64_t order = 0;
    Nanos start;
    Nanos length;
  };
  struct Owner {
    std::string name;
    std::uint64_t order = 0;
    std::optional<std::uint32_t> told;
    std::uint32_t rank = kUnknownRank;
    std::map<std::string, std::uint32_t, std::less<>> streams;
    std::vector<Call> calls;
  };
  struct Communicator {
    std::uint32_t owner = 0;
    std::uint32_t ranks = 0;
    std::string id;
    std::optional<std::uint32_t> rank;
    std::optional<std::uint64_t> split;  ///< of its parent
    std::uint64_t children = 0;
    std::uint32_t group = 0;
    /// Ranks of the job by rank in it; empty if not all are known.
    std::shared_ptr<const std::vector<std::uint32_t>> members;
  };

  static Operation operation(std::string_view name);
  void find_ranks();
  void find_groups();
  void write(std::uint32_t position, Owner& owner, bool timed);

  GraphBuilder& builder_;
  std::map<std::string, std::uint32_t, std::less<>> owner_of_;
  std::vector<Owner> owners_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> communicator_of_;
  std::vector<Communicator> communicators_;
  std::size_t calls_ = 0;
  std::uint32_t world_ = 0;
  std::size_t unknown_ = 0;  ///< calls of a kind that there is none of here
  std::string first_unknown_;
  std::size_t exchanges_ = 0;
  std::size_t reduces_ = 0;   ///< taken for broadcasts
  std::size_t peerless_ = 0;  ///< messages to a rank that is not known
  bool numbered_ = false;
};

}  // namespace mltcp::workload
