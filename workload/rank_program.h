// What each rank of a job does in an iteration: a program of computations, sends and receives, each with the operations
// that it waits for. A program follows from a pattern of communication and the rank's number alone, so that hosts which
// know the pattern need to tell each other nothing.
//
// The algorithms, for n ranks and S bytes, blocks being n-ths of S:
//
//   ring               reduce-scatter and all-gather in n-1 steps each, an all-reduce is one after the other; what step
//                      k sends is what step k-1 received (Patarasuk and Yuan, JPDC 2009)
//   halving-doubling   the same by recursive halving and recursive doubling, log2 n steps each, for powers of two
//                      (Thakur, Rabenseifner and Gropp, IJHPCA 2005, sections 4.1 and 4.5)
//   tree               all-reduce over two binary trees, each with half of the bytes, in whose one a rank is a leaf if
//   it
//                      isn't in the other; pipelined in chunks, up and down (Sanders, Speck and Träff, Parallel
//                      Computing 2009). Broadcast over one of them
//   all-to-all         pairwise exchange in n-1 steps (Thakur et al., section 4.4)
//   broadcast          from rank 0; ring: a chain, pipelined in chunks
//   point-to-point     each rank sends S to the next one, the last to the first
//   parameter-server   the last ranks are servers with a share of the parameters each: workers compute and push
//                      gradients, a server that has those of all workers sends them its share (Li et al., OSDI 2014,
//                      with synchronous consistency)
//
// Training combines them. Ranks are numbered as by Megatron-LM: tensor ranks next to each other, then data-parallel
// ranks, then the stages of the pipeline (Narayanan et al., SC 2021). A rank computes its micro-batches in the order of
// 1F1B (PipeDream, SOSP 2019; PipeDream-Flush in the SC 2021 paper): some forward passes to fill the pipeline, then one
// forward and one backward in turns. A forward pass is a third of the compute time, as a backward pass computes two
// gradients. A stage has layers of two blocks each (attention and MLP); after each block, forward and backward, tensor
// ranks all-reduce the activations and wait (Shoeybi et al., Megatron-LM, 2019), and experts' ranks, which are the
// data-parallel ones, exchange tokens by an all-to-all: dispatch and combine (Lepikhin et al., GShard, 2021). Stages
// send activations on and their gradients back. Gradients are all-reduced among data-parallel ranks in buckets, in the
// last micro-batch's backward pass as they become ready, or after it (Li et al., VLDB 2020).
//
// Collectives of one group of ranks follow one another, as on one communicator of NCCL.
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
    std::uint32_t tensor = 1;    ///< ranks of a tensor-parallel group
    std::uint32_t pipeline = 1;  ///< stages; the data-parallel ranks are what is left of `ranks`
    std::uint32_t micro_batches = 1;
    std::uint32_t layers = 1;   ///< of a stage
    std::uint32_t buckets = 1;  ///< of gradients, at most `layers`
    bool overlap = true;        ///< buckets are reduced while the backward pass goes on
    Bytes activations = 0;      ///< of a micro-batch behind a layer; above 0 with tensor or pipeline parallelism
    Bytes experts = 0;          ///< tokens of a micro-batch that a rank exchanges with experts; 0: there are none
  };

  Kind kind = Kind::all_reduce;
  std::uint32_t ranks = 2;
  Algorithm algorithm = Algorithm::ring;  ///< of all-reduce, reduce-scatter, all-gather, broadcast and training
  /// S: what every rank has in the end (all-gather), or in the beginning (the others). Training: the gradients of a
  /// rank; 0: none are reduced.
  Bytes size = 0;
  Bytes chunk = 0;            ///< of pipelined algorithms (tree, broadcast); 0: 256 KiB, more above 1024 chunks
  Nanos compute;              ///< of each rank (server excepted), all of an iteration; comes first but in training
  std::uint32_t servers = 1;  ///< of parameter_server
  Training training;

  [[nodiscard]] std::uint32_t data() const { return ranks / (training.tensor * training.pipeline); }
};
/// "all-reduce" and so on.
std::string_view name(Pattern::Kind kind);
/// A collective's bus bandwidth as a multiple of its algorithm bandwidth, which is S by the time that it takes, as
/// nccl-tests define both (doc/PERFORMANCE.md there): 2(n-1)/n for an all-reduce, (n-1)/n for reduce-scatter,
/// all-gather and all-to-all, 1 for broadcast and point-to-point. 0: the pattern isn't one collective (training,
/// parameter-server).
double bus_factor(const Pattern& pattern);

inline constexpr std::uint32_t kMostRanks = 1024;
inline constexpr std::uint32_t kMostOperations = 1'000'000;  ///< of a rank

struct Operation {
  enum class Kind : std::uint8_t { compute, send, receive };
  Kind kind = Kind::compute;
  bool reduce = false;           ///< receive: what arrives is added to what is there
  bool barrier = false;          ///< send, receive: tells of the ranks' progress, and carries none of the job's bytes
  std::uint32_t peer = 0;        ///< send, receive: the other rank
  std::uint32_t first_wait = 0;  ///< of RankProgram::waits
  std::uint32_t waits = 0;
  Bytes bytes = 0;        ///< send, receive: above 0
  Bytes offset = 0;       ///< send, receive: where they are in the collective's buffer (all-to-all has one at each end)
  std::uint64_t tag = 0;  ///< send, receive: the same at both ends; names a message between two ranks in one iteration
  Nanos compute;          ///< compute: how long; of a pattern above 0
  Rate rate;              ///< send: the most that the rank sends at from then on; 0: as the job says
};

/// Operations wait for earlier ones of the list only. Between two ranks, sends stand in the order of their receives; to
/// send them in that order blocks nobody for ever, as all ranks' lists follow one order of all operations.
struct RankProgram {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::vector<Operation> operations;
  std::vector<std::uint32_t> waits;  ///< indices of operations

  /// What the job itself computes, sends and receives: barriers don't count.
  struct Load {
    Nanos compute;
    Bytes sent = 0;
    Bytes received = 0;
  };
  [[nodiscard]] Load load() const;
};

/// Throws InputError "cause; cure" for a pattern that makes no sense: too few or too many ranks, powers of two that
/// aren't, groups that don't divide the ranks, nothing to send.
void check(const Pattern& pattern);

/// What all ranks of a pattern do.
struct Outline {
  Nanos compute;                 ///< the longest that one computes
  Bytes bytes = 0;               ///< the most that one sends or receives
  std::uint64_t operations = 0;  ///< of all
  std::uint64_t pairs = 0;       ///< of ranks that exchange data
};
/// Throws as rank_program() does, and for more than kMostOperationsInAll.
Outline outline(const Pattern& pattern);
inline constexpr std::uint64_t kMostOperationsInAll = 16'000'000;

/// Rank 0 is the first. Throws InputError as check() does, and for a program above kMostOperations.
RankProgram rank_program(const Pattern& pattern, std::uint32_t rank);

}  // namespace mltcp::workload
