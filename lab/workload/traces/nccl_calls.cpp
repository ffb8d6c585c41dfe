// See nccl_calls.h.
#include "mltcp/lab/workload/traces/nccl_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

constexpr std::size_t kMaxWaits = 8;           // if a message has more predecessors, one node waits for all of them
constexpr std::string_view kChild = "split ";  // prefix of identifiers that this reader makes up

}  // namespace

NcclCalls::Operation NcclCalls::operation(std::string_view name) {
  if (name == "AllReduce") return Operation::all_reduce;
  if (name == "AllGather") return Operation::all_gather;
  if (name == "ReduceScatter") return Operation::reduce_scatter;
  if (name == "AlltoAll" || name == "AllToAll") return Operation::all_to_all;
  if (name == "Gather" || name == "Scatter") return Operation::exchange;
  if (name == "Broadcast" || name == "Bcast") return Operation::broadcast;
  if (name == "Reduce") return Operation::reduce;
  if (name == "Send") return Operation::send;
  if (name == "Recv") return Operation::receive;
  return Operation::other;
}

bool NcclCalls::known(std::string_view name) { return operation(name) != Operation::other; }

std::uint32_t NcclCalls::owner(std::string_view name, std::uint64_t order) {
  if (const auto found = owner_of_.find(name); found != owner_of_.end()) return found->second;
  const auto index = static_cast<std::uint32_t>(owners_.size());
  builder_.hold(sizeof(Owner) + kPlace + 2 * (sizeof(std::string) + name.size()));
  owner_of_.emplace(name, index);
  Owner owner;
  owner.name = name;
  owner.order = order;
  owners_.push_back(std::move(owner));
  return index;
}

std::uint32_t NcclCalls::communicator(std::uint32_t owner, std::string_view name, std::uint32_t ranks) {
  const auto index = static_cast<std::uint32_t>(communicators_.size());
  const auto [found, is_new] = communicator_of_.try_emplace({owner, std::string(name)}, index);
  if (is_new) {
    builder_.hold(sizeof(Communicator) + sizeof(*found) + kPlace + name.size());
    communicators_.emplace_back();
    communicators_.back().owner = owner;
  }
  Communicator& one = communicators_[found->second];
  // NCCL may reuse a pointer after the communicator was destroyed. A different number of ranks reveals the reuse.
  if (one.ranks != 0 && ranks != 0 && one.ranks != ranks) {
    builder_.hold(sizeof(Communicator) + kPlace);
    found->second = index;
    communicators_.emplace_back();
    communicators_.back().owner = owner;
    communicators_.back().ranks = ranks;
    return index;
  }
  if (ranks != 0) one.ranks = ranks;
  return found->second;
}

void NcclCalls::describe(std::uint32_t communicator, std::string_view id, std::uint32_t rank) {
  Communicator& one = communicators_[communicator];
  one.rank = rank;
  if (id.empty()) return;
  if (id.size() > one.id.size()) builder_.hold(id.size() - one.id.size());
  one.id = id;
}

void NcclCalls::describe_child(std::uint32_t communicator, std::uint32_t parent, std::optional<std::uint64_t> split,
                               std::string_view color) {
  Communicator& one = communicators_[communicator];
  Communicator& from = communicators_[parent];
  if (!one.split) one.split = from.children++;
  if (split) one.split = split;
  // The parent's identifier is unknown if the creation of the parent is not in the log.
  if (from.id.empty() || !one.rank) return;
  if (!one.id.empty() && !one.id.starts_with(kChild)) return;
  const std::string place = fmt::format("{} {} {}", *one.split, color, from.id);
  describe(communicator, fmt::format("{}{:x}", kChild, std::hash<std::string>()(place)), *one.rank);
}

void NcclCalls::forget(std::uint32_t owner, std::string_view name) {
  communicator_of_.erase({owner, std::string(name)});
}

void NcclCalls::set_rank(std::uint32_t owner, std::uint32_t rank) { owners_[owner].stated = rank; }

void NcclCalls::call(std::uint32_t communicator, const NcclCall& call) {
  Owner& owner = owners_[communicators_[communicator].owner];
  const Operation operation = NcclCalls::operation(call.name);
  if (operation == Operation::other) {
    if (unknown_++ == 0) first_unknown_ = call.name;
    return;
  }
  ++calls_;
  builder_.hold(sizeof(Call));
  const auto [stream, is_new] =
      owner.streams.try_emplace(std::string(call.stream), static_cast<std::uint32_t>(owner.streams.size()));
  if (is_new) builder_.hold(sizeof(*stream) + kPlace + call.stream.size());
  owner.calls.push_back({communicator, operation, builder_.name(call.name), stream->second, call.root, call.bytes,
                         call.order, call.start, call.length});
}

void NcclCalls::find_ranks() {
  world_ = 0;
  for (const Communicator& one : communicators_) world_ = std::max(world_, one.ranks);
  // If the log does not state an owner's rank, uses its rank in its largest communicator.
  std::vector<std::uint32_t> largest(owners_.size(), 0);
  for (const Communicator& one : communicators_) {
    Owner& owner = owners_[one.owner];
    if (owner.stated) owner.rank = *owner.stated;
    if (owner.stated || !one.rank || one.ranks <= largest[one.owner]) continue;
    largest[one.owner] = one.ranks;
    owner.rank = *one.rank;
  }
  std::vector<std::uint32_t> taken;
  bool clash = false;
  bool all = true;
  for (const Owner& owner : owners_) {
    all = all && owner.rank != kUnknownRank;
    if (owner.rank != kUnknownRank) taken.push_back(owner.rank);
  }
  std::ranges::sort(taken);
  clash = std::ranges::adjacent_find(taken) != taken.end();
  if (all && !clash) return;
  std::vector<Owner*> order;
  for (Owner& owner : owners_) order.push_back(&owner);
  if (order.size() == 1) {
    order[0]->rank = kUnknownRank;
    return;
  }
  std::ranges::stable_sort(order, [](const Owner* a, const Owner* b) { return a->order < b->order; });
  for (std::size_t i = 0; i < order.size(); ++i) order[i]->rank = static_cast<std::uint32_t>(i);
  builder_.warn(
      fmt::format("the log does not name all ranks: its {} processes are numbered in order of appearance, by GPU on "
                  "each host (to log ranks: NCCL_DEBUG_SUBSYS=INIT,COLL)",
                  owners_.size()));
}

void NcclCalls::find_groups() {
  // Matches communicators by identifier and size, because a pointer may be reused for a communicator of another size.
  // Each list of members is stored once.
  std::map<std::pair<std::string, std::uint32_t>, std::vector<Communicator*>> same;
  for (Communicator& one : communicators_) same[{one.id, one.ranks}].push_back(&one);
  for (const auto& [what, all] : same) {
    const auto& [id, ranks] = what;
    std::map<std::uint32_t, std::uint32_t> found;
    for (const Communicator* one : all)
      if (!id.empty() && one->rank && *one->rank < ranks && owners_[one->owner].rank != kUnknownRank)
        found[*one->rank] = owners_[one->owner].rank;
    auto members = std::make_shared<std::vector<std::uint32_t>>();
    if (found.size() == ranks) {
      builder_.hold(found.size() * sizeof(ranks));
      for (const auto& [rank, member] : found) members->push_back(member);
    }
    const std::uint32_t group = !members->empty() ? builder_.group(*members)
                                : ranks == world_ ? builder_.group({})
                                                  : builder_.group({}, {ranks, id});
    for (Communicator* one : all) {
      one->group = group;
      one->members = members;
    }
  }
}

void NcclCalls::finish(bool timed) {
  find_ranks();
  if (world_ < 2)
    builder_.fail("all communicators have one rank, so nothing crosses a network",
                  "give the trace of a job with several ranks");
  find_groups();
  std::vector<Owner*> order;
  for (Owner& owner : owners_)
    if (!owner.calls.empty()) order.push_back(&owner);
  std::ranges::stable_sort(order, [](const Owner* a, const Owner* b) { return a->rank < b->rank; });
  for (Owner* owner : order) {
    write(builder_.rank(owner->rank), *owner, timed);
    builder_.let_go(owner->calls.size() * sizeof(Call));
    owner->calls = {};
  }
  if (unknown_ > 0)
    builder_.warn(
        fmt::format("{} of an unknown kind ({}): left out", plural(unknown_, "call"), in_quotes(first_unknown_)));
  if (exchanges_ > 0)
    builder_.warn(
        fmt::format("{}: taken as all-to-all, by the busiest rank",
                    exchanges_ == 1 ? "1 gather or scatter" : fmt::format("{} gathers or scatters", exchanges_)));
  builder_.warn(reduces_, "reduction", "to one rank: taken as broadcasts from it");
  builder_.warn(peerless_, "message", "to or from ranks that are not known: left out");
}

void NcclCalls::write(std::uint32_t position, Owner& owner, bool timed) {
  struct Stream {
    std::vector<std::uint32_t> last;    ///< nodes of the current group of messages, or the last node
    std::vector<std::uint32_t> before;  ///< nodes for which the current group waits
    std::uint32_t communicator = 0;
    std::uint64_t order = 0;
    bool group = false;
  };
  // Numbers the collectives of a communicator. Several calls of a group may have the same number. Then their order
  // distinguishes them.
  struct Numbers {
    bool usable = true;
    std::uint64_t order = 0;
    std::map<Operation, std::uint64_t> equal;

    std::uint64_t next(Operation operation, std::uint64_t number) {
      constexpr unsigned bits = 12;
      if (!usable || number >> (64U - bits - 1) != 0) return 0;
      if (std::exchange(order, number) != number) equal.clear();
      const std::uint64_t place = std::min<std::uint64_t>(equal[operation]++, (1U << bits) - 1);
      return (number << bits | place) + 1;
    }
  };
  std::map<std::uint32_t, Numbers> numbers;  // by communicator: state of the numbering
  // Messages are numbered, too, but each rank numbers them differently. So the numbers of a communicator with messages
  // are not usable.
  for (const Call& call : owner.calls)
    if (call.operation == Operation::send || call.operation == Operation::receive)
      numbers[call.communicator].usable = false;
  std::vector<Stream> streams(owner.streams.size());
  std::vector<std::string> lanes(owner.streams.size());
  for (const auto& [name, index] : owner.streams) lanes[index] = fmt::format("stream {}", index);
  Nanos ended = Nanos::never();
  std::optional<std::uint32_t> computed;
  std::vector<std::uint32_t> since;  // calls since the last computation
  for (const Call& call : owner.calls) {
    const Communicator& communicator = communicators_[call.communicator];
    GraphNode node;
    node.name = call.name;
    node.lane = builder_.lane(lanes[call.stream]);
    node.start = call.start;
    node.length = call.length;
    node.group = communicator.group;
    Uint128 bytes = call.bytes;
    const bool message = call.operation == Operation::send || call.operation == Operation::receive;
    std::uint32_t other = kUnknownRank;  // root or peer of the call, as a rank of the job
    if (call.root < communicator.members->size())
      other = (*communicator.members)[call.root];
    else if (communicator.members->empty() && communicator.ranks == world_ && call.root < world_)
      other = call.root;
    switch (call.operation) {
      case Operation::all_reduce:
        node.collective = Collective::all_reduce;
        break;
      case Operation::all_gather:
        node.collective = Collective::all_gather;
        bytes *= communicator.ranks;
        break;
      case Operation::reduce_scatter:
        node.collective = Collective::reduce_scatter;
        bytes *= communicator.ranks;
        break;
      case Operation::exchange:
        ++exchanges_;
        [[fallthrough]];
      case Operation::all_to_all:
        node.collective = Collective::all_to_all;
        bytes *= communicator.ranks;
        break;
      case Operation::reduce:
        ++reduces_;
        [[fallthrough]];
      case Operation::broadcast:
        node.collective = Collective::broadcast;
        break;
      case Operation::send:
      case Operation::receive:
      case Operation::other:
        break;
    }
    node.bytes = static_cast<Bytes>(std::min<Uint128>(bytes, kMaxCallBytes));
    if (message) {
      node.kind = call.operation == Operation::send ? GraphNode::Kind::send : GraphNode::Kind::receive;
      if (other == kUnknownRank) ++peerless_;
      // Messages of a rank to itself do not cross the network.
      if (other == kUnknownRank || node.bytes == 0 || other == owner.rank) continue;
      node.peer = other;
    } else {
      if (communicator.ranks < 2) continue;
      node.kind = GraphNode::Kind::collective;
      if (numbered_) node.tag = numbers[call.communicator].next(call.operation, call.order);
      // If the ranks of the group are unknown, the first rank is assumed to be the root.
      node.peer = other == kUnknownRank ? 0 : other;
    }
    if (timed && !call.start.is_never()) {
      if (!ended.is_never() && call.start > ended) {
        GraphNode gap;
        gap.name = builder_.name("compute");
        gap.lane = builder_.lane("between calls");
        gap.start = ended;
        gap.length = call.start - ended;
        if (computed) since.insert(since.begin(), *computed);
        computed = builder_.add(position, gap, since);
        since.clear();
      }
      ended = ended.is_never() ? call.start + call.length : std::max(ended, call.start + call.length);
    }
    Stream& stream = streams[call.stream];
    const bool joins =
        message && stream.group && stream.communicator == call.communicator && stream.order == call.order;
    if (!joins) {
      stream.before = std::exchange(stream.last, {});
      // If many nodes precede a group of messages, one node waits for all of them, and each message waits for that
      // node.
      if (message && stream.before.size() > kMaxWaits) {
        GraphNode joint;
        joint.name = builder_.name("group ends");
        joint.lane = node.lane;
        joint.start = Nanos::never();
        stream.before = {builder_.add(position, joint, stream.before)};
      }
    }
    stream.group = message;
    stream.communicator = call.communicator;
    stream.order = call.order;
    std::vector<std::uint32_t> waits = stream.before;
    if (computed) waits.push_back(*computed);
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    const std::uint32_t index = builder_.add(position, node, waits);
    stream.last.push_back(index);
    since.push_back(index);
    if (!timed) since.clear();
  }
}

}  // namespace mltcp::workload
