// Turns calls in logs of NCCL into nodes of ranks that run collectives in groups. The logs name communicators by
// pointers or identifiers. Used by the readers of NCCL's debug logs and of its Inspector.
//
// An owner is a process with its GPU, which makes the calls. The owner's rank in the job is the rank that the log
// states. If the log states none, the owner's rank in its largest communicator is used. If some ranks remain unknown or
// two are equal, all owners are numbered by their position among the owners of the log. An owner's calls on one stream
// run one after the other; sends and receives of a group run at once.
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
  std::string_view name;    ///< name of the operation, e.g. "AllReduce"
  Bytes bytes = 0;          ///< bytes of one rank: count * size of the type, as passed to NCCL
  std::uint32_t root = 0;   ///< rank of the root in the communicator; rank of the peer for Send and Recv
  std::uint64_t order = 0;  ///< adjacent sends and receives with equal order run at once
  std::string_view stream;  ///< calls on one stream run one after the other
  Nanos start = Nanos::never();
  Nanos length;
};

class NcclCalls {
 public:
  explicit NcclCalls(GraphBuilder& builder) : builder_(builder) {}

  /// Returns the owner with this name. Adds the owner if it is new. Owners of unknown rank are sorted by `order`.
  std::uint32_t owner(std::string_view name, std::uint64_t order);
  /// Returns the communicator that the owner calls `name`. `ranks` is its size; 0 if unknown. Details may be added
  /// later.
  std::uint32_t communicator(std::uint32_t owner, std::string_view name, std::uint32_t ranks);
  /// Sets the owner's rank in a communicator, and the identifier, which is the same on all ranks. An empty `id` leaves
  /// the identifier as it is.
  void describe(std::uint32_t communicator, std::string_view id, std::uint32_t rank);
  /// Describes a communicator made by ncclCommSplit. `split` is the number of the split of `parent`. If `split` is
  /// empty, the owner's splits of `parent` are counted. Ranks with the same `color` are in one communicator.
  void describe_child(std::uint32_t communicator, std::uint32_t parent, std::optional<std::uint64_t> split,
                      std::string_view color);
  /// Forgets the communicator that the owner calls `name`, because the owner may use the name for another one.
  void forget(std::uint32_t owner, std::string_view name);
  /// Sets the rank of an owner in the job.
  void set_rank(std::uint32_t owner, std::uint32_t rank);

  /// Returns whether NCCL has an operation with this name.
  static bool known(std::string_view name);
  void call(std::uint32_t communicator, const NcclCall& call);

  [[nodiscard]] std::size_t calls() const { return calls_; }
  /// Pairs collectives of different ranks by NcclCall::order, because all ranks number the calls of a communicator
  /// alike. Has no effect on communicators that also carry messages.
  void number_collectives() { numbered_ = true; }
  /// Adds the nodes to the graph. If `timed` is true, the time between calls becomes computation.
  void finish(bool timed);
  [[nodiscard]] std::uint32_t world() const { return world_; }

 private:
  enum class Operation : std::uint8_t {
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    exchange,  ///< a gather or a scatter
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
    std::optional<std::uint32_t> stated;
    std::uint32_t rank = kUnknownRank;
    std::map<std::string, std::uint32_t, std::less<>> streams;
    std::vector<Call> calls;
  };
  struct Communicator {
    std::uint32_t owner = 0;
    std::uint32_t ranks = 0;
    std::string id;
    std::optional<std::uint32_t> rank;
    std::optional<std::uint64_t> split;  ///< number of the split that made this communicator from its parent
    std::uint64_t children = 0;
    std::uint32_t group = 0;
    /// The job's ranks, by rank in the communicator. Empty if not all of them are known.
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
  std::size_t unknown_ = 0;  ///< calls of an unsupported kind
  std::string first_unknown_;
  std::size_t exchanges_ = 0;
  std::size_t reduces_ = 0;   ///< reductions that are treated as broadcasts
  std::size_t peerless_ = 0;  ///< messages whose peer is unknown
  bool numbered_ = false;
};

}  // namespace mltcp::workload
