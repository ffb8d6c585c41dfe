// The program of each rank of a job in an iteration: computations, sends and receives, each with the operations that it
// depends on. The communication pattern and the rank's number determine the program. So hosts that know the pattern
// need not exchange programs.
//
// The algorithms for n ranks and S bytes; a block is an n-th of S:
//
//   ring               Reduce-scatter and all-gather take n-1 steps each. An all-reduce is a reduce-scatter, then an
//                      all-gather. Each step sends what the previous step received (Patarasuk and Yuan, JPDC 2009).
//   halving-doubling   Reduce-scatter by recursive halving and all-gather by recursive doubling take log2 n steps each.
//                      An all-reduce is a reduce-scatter, then an all-gather. n must be a power of two (Thakur,
//                      Rabenseifner and Gropp, IJHPCA 2005, sections 4.1 and 4.5).
//   tree               All-reduce over two binary trees, each of which carries half of the bytes. Inner nodes of one
//                      tree are leaves of the other tree. Chunks are pipelined up and down the trees. Broadcast uses
//                      one of the trees (Sanders, Speck and Träff, Parallel Computing 2009).
//   all-to-all         Pairwise exchange in n-1 steps (Thakur et al., section 4.4).
//   broadcast          From rank 0. With algorithm ring, chunks are pipelined along a chain of ranks.
//   point-to-point     Each rank sends S to the next rank, and the last rank to the first.
//   parameter-server   The last ranks are servers, each with a share of the parameters. Workers compute and push
//                      gradients. When a server has the gradients of all workers, it sends its share of the parameters
//                      to each worker (Li et al., OSDI 2014, with synchronous consistency).
//
// Training combines these algorithms. Ranks are numbered as by Megatron-LM: tensor ranks are next to each other, then
// data-parallel ranks, then the stages of the pipeline (Narayanan et al., SC 2021). A rank computes its micro-batches
// in the order of 1F1B (PipeDream, SOSP 2019; PipeDream-Flush in the SC 2021 paper): some forward passes fill the
// pipeline, then forward and backward passes alternate. A forward pass takes a third of the compute time, because a
// backward pass computes two gradients.
//
// A stage consists of layers with two blocks each (attention and MLP). After each block of a forward or backward pass,
// tensor ranks all-reduce the activations and wait (Shoeybi et al., Megatron-LM, 2019). With experts, data-parallel
// ranks then exchange tokens by an all-to-all, for dispatch and combine (Lepikhin et al., GShard, 2021). Stages send
// activations to the next stage, and gradients of activations to the previous stage. Data-parallel ranks all-reduce
// gradients in buckets, either as soon as a bucket is ready in the backward pass of the last micro-batch, or after that
// pass (Li et al., VLDB 2020).
//
// Collectives of one group of ranks are serialised, as on one NCCL communicator.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::workload {

enum class Algorithm { ring, tree, halving_doubling };
std::string_view name(Algorithm algorithm);

struct Pattern {
  enum class Kind {
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    broadcast,
    point_to_point,
    parameter_server,
    training,
  };
  struct Training {
    std::uint32_t tensor = 1;  ///< size of a tensor-parallel group
    /// Number of pipeline stages; `ranks` / (`tensor` * `pipeline`) is the data-parallel factor.
    std::uint32_t pipeline = 1;
    std::uint32_t micro_batches = 1;
    std::uint32_t layers = 1;   ///< number of layers per stage
    std::uint32_t buckets = 1;  ///< number of gradient buckets, at most `layers`
    bool overlap = true;        ///< whether buckets are reduced during the backward pass
    /// Bytes of activations per micro-batch after a layer; above 0 with tensor or pipeline parallelism.
    Bytes activations = 0;
    Bytes experts = 0;  ///< bytes of tokens that a rank exchanges with experts after each block; 0: no experts
  };

  Kind kind = Kind::all_reduce;
  std::uint32_t ranks = 2;
  /// Algorithm of all-reduce, reduce-scatter, all-gather, broadcast and training.
  Algorithm algorithm = Algorithm::ring;
  /// Bytes that every rank holds: at the end for an all-gather, at the beginning for other collectives. For training:
  /// bytes of a rank's gradients, or 0 if no gradients are reduced.
  Bytes size = 0;
  /// Chunk size of pipelined algorithms (tree, broadcast) in bytes; 0: 256 KiB, or more if there would be more than
  /// 1024 chunks.
  Bytes chunk = 0;
  /// Compute time of each rank in an iteration. Parameter servers do not compute. Except in training, the computation
  /// precedes all communication.
  Nanos compute;
  std::uint32_t servers = 1;  ///< number of parameter servers
  Training training;

  [[nodiscard]] std::uint32_t data() const { return ranks / (training.tensor * training.pipeline); }
};
/// Returns a name such as "all-reduce".
std::string_view name(Pattern::Kind kind);
/// Returns the ratio of a collective's bus bandwidth to its algorithm bandwidth (S / duration), as defined by
/// nccl-tests in doc/PERFORMANCE.md. The ratio is 2(n-1)/n for an all-reduce, (n-1)/n for reduce-scatter, all-gather
/// and all-to-all, and 1 for broadcast and point-to-point. Returns 0 for training and parameter-server, which are not
/// single collectives.
double bus_factor(const Pattern& pattern);

inline constexpr std::uint32_t kMaxRanks = 1024;
inline constexpr std::uint32_t kMaxOperations = 1'000'000;  ///< maximum number of operations of a rank

struct Operation {
  enum class Kind : std::uint8_t {
    compute,  ///< takes the time `compute`; computations of a rank run one at a time
    send,
    receive,
    delay,  ///< takes the time `compute`, in parallel with computations, e.g. work elsewhere in the machine
  };
  Kind kind = Kind::compute;
  bool reduce = false;  ///< receive: whether the data is added to the data in the buffer
  /// Send, receive: whether the message only synchronises ranks and carries none of the job's bytes.
  bool barrier = false;
  std::uint32_t peer = 0;        ///< send, receive: number of the other rank
  std::uint32_t first_wait = 0;  ///< index of the operation's first wait in RankProgram::waits
  std::uint32_t waits = 0;
  Bytes bytes = 0;  ///< send, receive: size of the message, above 0
  /// Send, receive: offset in the collective's buffer. An all-to-all has separate buffers for sends and receives.
  Bytes offset = 0;
  /// Send, receive: identifies a message between two ranks within an iteration. Both ranks use the same tag.
  std::uint64_t tag = 0;
  Nanos compute;  ///< compute, delay: duration; above 0 in programs of patterns
  Rate rate;      ///< send: maximum sending rate of the rank from this operation on; 0: the job's rate

  [[nodiscard]] bool communicates() const { return kind == Kind::send || kind == Kind::receive; }
};

/// Operations depend only on earlier operations in the list. The sends from one rank to another are in the same order
/// as their receives. This order cannot cause a deadlock, because the lists of all ranks follow one global order of
/// operations.
struct RankProgram {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::vector<Operation> operations;
  /// For each operation in turn, the indices of the operations that it waits for, all in one array.
  std::vector<std::uint32_t> waits;

  /// Compute time, not counting delays, and the job's bytes, not counting barriers.
  struct Load {
    Nanos compute;
    Bytes sent = 0;
    Bytes received = 0;
  };
  [[nodiscard]] Load load() const;
  /// Returns whether the rank sends or receives anything, including barriers.
  [[nodiscard]] bool communicates() const;
};

/// The programs of all ranks of a job. Every send has a matching receive. The sends from one rank to another are in the
/// same order as their receives.
struct Programs {
  std::vector<RankProgram> ranks;
};

/// Throws InputError "cause; cure" if a pattern is invalid: too few or too many ranks, a number of ranks that the
/// algorithm does not support, groups that do not divide the ranks, or nothing to send.
void check(const Pattern& pattern);

/// Summary of the programs of all ranks of a pattern.
struct Outline {
  Nanos compute;                 ///< maximum compute time of any rank
  Bytes bytes = 0;               ///< maximum number of bytes that any rank sends or receives
  std::uint64_t operations = 0;  ///< number of operations of all ranks together
  std::uint64_t pairs = 0;       ///< number of pairs of ranks that exchange messages
};
/// Returns the summary of a pattern. Throws InputError if rank_program() does, or if all ranks together have more than
/// kMaxOperationsInAll operations.
Outline outline(const Pattern& pattern);
inline constexpr std::uint64_t kMaxOperationsInAll = 16'000'000;

/// Returns the program of rank `rank`, counted from 0. Throws InputError if check() does, or if the program exceeds
/// kMaxOperations.
RankProgram rank_program(const Pattern& pattern, std::uint32_t rank);

}  // namespace mltcp::workload
