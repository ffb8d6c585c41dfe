// The program of each rank of a job in an iteration: computations, sends and receives, each with the operations that it
// depends on. The communication pattern and the rank's number determine it, so hosts that know the pattern need not
// exchange programs.
//
// The algorithms, for n ranks and S bytes, blocks being n-ths of S:
//
//   ring               reduce-scatter and all-gather in n-1 steps each, an all-reduce is one after the other; what step
//                      k sends is what step k-1 received (Patarasuk and Yuan, JPDC 2009)
//   halving-doubling   the same by recursive halving and recursive doubling, log2 n steps each, for powers of two
//                      (Thakur, Rabenseifner and Gropp, IJHPCA 2005, sections 4.1 and 4.5)
//   tree               all-reduce over two binary trees with half of the bytes each, where inner nodes of one are
//                      leaves of the other; pipelined in chunks, up and down (Sanders, Speck and Träff, Parallel
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
    std::uint32_t tensor = 1;    ///< size of a tensor-parallel group
    std::uint32_t pipeline = 1;  ///< number of stages; the remaining factor of `ranks` is data-parallel
    std::uint32_t micro_batches = 1;
    std::uint32_t layers = 1;   ///< per stage
    std::uint32_t buckets = 1;  ///< number of gradient buckets, at most `layers`
    bool overlap = true;        ///< buckets are reduced during the backward pass
    Bytes activations = 0;      ///< bytes of a micro-batch after a layer; above 0 with tensor or pipeline parallelism
    Bytes experts = 0;          ///< bytes of tokens per micro-batch that a rank exchanges with experts; 0: no experts
  };

  Kind kind = Kind::all_reduce;
  std::uint32_t ranks = 2;
  Algorithm algorithm = Algorithm::ring;  ///< of all-reduce, reduce-scatter, all-gather, broadcast and training
  /// S: bytes that every rank holds at the end (all-gather) or at the beginning (others). Training: gradients of a
  /// rank, or 0 if none are reduced.
  Bytes size = 0;
  Bytes chunk = 0;  ///< of pipelined algorithms (tree, broadcast); 0: 256 KiB, or larger so that there are at most 1024
  Nanos compute;    ///< per iteration of each rank except servers; precedes communication except in training
  std::uint32_t servers = 1;  ///< number of parameter servers
  Training training;

  [[nodiscard]] std::uint32_t data() const { return ranks / (training.tensor * training.pipeline); }
};
/// "all-reduce" and so on.
std::string_view name(Pattern::Kind kind);
/// Ratio of a collective's bus bandwidth to its algorithm bandwidth (S / duration), as defined by nccl-tests
/// (doc/PERFORMANCE.md there): 2(n-1)/n for an all-reduce, (n-1)/n for reduce-scatter, all-gather and all-to-all, 1 for
/// broadcast and point-to-point. 0 if the pattern is not a single collective (training, parameter-server).
double bus_factor(const Pattern& pattern);

inline constexpr std::uint32_t kMaxRanks = 1024;
inline constexpr std::uint32_t kMaxOperations = 1'000'000;  ///< per rank

struct Operation {
  enum class Kind : std::uint8_t {
    compute,  ///< one at a time in a rank
    send,
    receive,
    delay,  ///< takes time in parallel with computations: work elsewhere in the machine
  };
  Kind kind = Kind::compute;
  bool reduce = false;           ///< receive: the data is added to what is there
  bool barrier = false;          ///< send, receive: synchronisation only, carries none of the job's bytes
  std::uint32_t peer = 0;        ///< send, receive: the other rank
  std::uint32_t first_wait = 0;  ///< index in RankProgram::waits
  std::uint32_t waits = 0;
  Bytes bytes = 0;  ///< send, receive: above 0
  /// Send, receive: offset in the collective's buffer (all-to-all has separate send and receive buffers).
  Bytes offset = 0;
  /// Send, receive: equal at both ends; identifies a message between two ranks within an iteration.
  std::uint64_t tag = 0;
  Nanos compute;  ///< compute, delay: duration; a pattern's are above 0
  Rate rate;      ///< send: maximum rate of the rank from then on; 0: the job's rate

  [[nodiscard]] bool communicates() const { return kind == Kind::send || kind == Kind::receive; }
};

/// Operations depend on earlier ones in the list only. Between two ranks, sends are in the order of the receives;
/// sending in that order cannot deadlock, as all ranks' lists follow one global order of operations.
struct RankProgram {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::vector<Operation> operations;
  std::vector<std::uint32_t> waits;  ///< indices of operations depended on

  /// Compute time, without delays, and bytes of the job itself, without barriers.
  struct Load {
    Nanos compute;
    Bytes sent = 0;
    Bytes received = 0;
  };
  [[nodiscard]] Load load() const;
  /// Whether it sends or receives anything, barriers included.
  [[nodiscard]] bool communicates() const;
};

/// The programs of all ranks of a job. They match: every send has a receive, in the same order.
struct Programs {
  std::vector<RankProgram> ranks;
};

/// Throws InputError "cause; cure" for an invalid pattern: too few or too many ranks, not a power of two where
/// required, groups that do not divide the ranks, nothing to send.
void check(const Pattern& pattern);

/// Summary of all ranks of a pattern.
struct Outline {
  Nanos compute;                 ///< maximum of any rank
  Bytes bytes = 0;               ///< maximum that any rank sends or receives
  std::uint64_t operations = 0;  ///< of all ranks
  std::uint64_t pairs = 0;       ///< pairs of ranks that exchange data
};
/// Throws like rank_program(), and for more than kMaxOperationsInAll operations.
Outline outline(const Pattern& pattern);
inline constexpr std::uint64_t kMaxOperationsInAll = 16'000'000;

/// Ranks count from 0. Throws InputError like check(), and for a program above kMaxOperations.
RankProgram rank_program(const Pattern& pattern, std::uint32_t rank);

}  // namespace mltcp::workload
