// Joins the parts of a job into one graph (join() of read_traces.h).
//
// Ranks without a trace are copied from a rank with a trace, if all ranks do the same. Usually the tensor, data and
// pipeline indices of a rank are the digits of its number (Narayanan et al., SC 2021). One digit varies within a group,
// so a group is an arithmetic progression. The corresponding group of another rank has the same stride. The digits that
// do not vary within this group are those of the other rank.
//
// The messages of a rank can be copied if it sends to rank + n what it receives from rank - n, as in a ring.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {
namespace {

using Kind = GraphNode::Kind;
using Ranks = std::vector<std::uint32_t>;

constexpr Bytes kMaxCollectiveBytes = std::uint64_t{1} << 60;  // maximum bytes of one collective
constexpr std::size_t kMaxMembers = 16'000'000;                // maximum number of members of all groups together
// One day; maximum time between the first starts of ranks on a common clock.
constexpr Nanos kMaxApart(86'400'000'000'000);

/// Formats ranks for messages: "rank 3", "ranks 1, 2, 5, 6 and 40 more".
std::string shown(const Ranks& ranks) {
  constexpr std::size_t max = 4;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(max, ranks.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > max) text += fmt::format(" and {} more", ranks.size() - max);
  return text;
}

/// What is known about the members of a group, from one part of the job.
struct Members {
  Ranks ranks;             ///< known members as recorded ranks, ascending
  std::uint32_t size = 0;  ///< number of members; 0 if the group is the whole job
};

class Join {
 public:
  Join(std::vector<PartialGraph> parts, const TraceOptions& options) : parts_(std::move(parts)), options_(options) {}

  ExecutionGraph run() {
    begin();
    number_ranks();
    find_members();
    find_world();
    complete_members();
    gather_shards();
    merge_steps();
    if (options_.as_recorded) {
      for (std::uint32_t rank = 0; rank < world_; ++rank) index_of_[rank] = rank;
      graph_.ranks.resize(world_);
      for (const auto& [rank, from] : present_) copy(from, rank, rank, true);
      return std::move(graph_);
    }
    if (present_.size() < world_ && options_.alike && fill_and_check()) return std::move(graph_);
    keep_present();
    agree();
    check(graph_);
    return std::move(graph_);
  }

 private:
  struct From {
    std::uint32_t part = 0;
    std::uint32_t position = 0;  ///< index in the part's list of ranks
  };

  [[nodiscard]] const std::string& source(const From& from) const { return parts_[from.part].graph.sources.front(); }
  [[nodiscard]] const std::string& source() const { return parts_.front().graph.sources.front(); }
  [[nodiscard]] const RankGraph& rank_at(const From& from) const {
    return parts_[from.part].graph.ranks[from.position];
  }
  void warn(std::string_view text) { graph_.warnings.push_back(fmt::format("{}: {}", source(), text)); }
  void warn(std::size_t count, std::string_view noun, std::string_view what) {
    if (count > 0) warn(fmt::format("{} {}", plural(count, noun), what));
  }
  [[noreturn]] static void fail(std::string_view at, std::string_view cause, std::string_view cure) {
    throw InputError(fmt::format("{}: {}; {}", at, cause, cure));
  }

  void begin() {
    graph_.format = parts_.front().graph.format;
    Nanos earliest = Nanos::never();
    Nanos latest(0);
    std::size_t nodes = 0;
    for (PartialGraph& part : parts_) {
      for (const RankGraph& rank : part.graph.ranks) nodes += rank.nodes.size();
      if (part.graph.steps.empty()) part.graph.steps.push_back({"", Nanos::never(), Nanos(0)});
      part.groups.resize(part.graph.groups.size());
      for (auto& group : part.graph.groups) {
        std::ranges::sort(group);
        group.erase(std::unique(group.begin(), group.end()), group.end());
      }
      graph_.sources.insert(graph_.sources.end(), part.graph.sources.begin(), part.graph.sources.end());
      if (!part.common_clock) continue;
      earliest = std::min(earliest, first_start(part));
      if (const Nanos first = first_start(part); !first.is_never()) latest = std::max(latest, first);
    }
    if (nodes == 0)
      fail(source(), "no rank computes or communicates in it", "record it longer, or on the ranks that do");
    take_warnings();
    const bool apart = !earliest.is_never() && latest - earliest > kMaxApart;
    if (apart)
      warn(fmt::format("its ranks begin {:.0f} days apart, so their clocks differ: each one's times are from its first",
                       days(latest - earliest)));
    // Times of all inputs with a common clock count from the earliest start of these inputs. Times of any other input
    // count from the first start of that input.
    for (PartialGraph& part : parts_) {
      const Nanos beginning = part.common_clock && !apart ? earliest : first_start(part);
      if (beginning.is_never()) continue;
      const auto shift = [&](Nanos& start) {
        if (start.is_never()) return;
        start -= beginning;
        if (start > kLongestTrace)
          fail(part.graph.sources.front(), fmt::format("its starts are {:.0f} days apart", days(start)),
               "its times are damaged; record it again");
      };
      for (RankGraph& rank : part.graph.ranks)
        for (GraphNode& node : rank.nodes) shift(node.start);
      for (auto& step : part.graph.steps) shift(step.start);
    }
  }

  // Merges equal warnings of several files.
  void take_warnings() {
    struct Said {
      std::string source;
      std::size_t more = 0;
    };
    std::map<std::string, Said> by_text;
    std::vector<const std::string*> order;
    for (const PartialGraph& part : parts_)
      for (const std::string& warning : part.graph.warnings) {
        const std::string& own = part.graph.sources.front();
        const bool begins = warning.starts_with(own + ": ");
        const auto [at, added] = by_text.try_emplace(begins ? warning.substr(own.size()) : warning);
        if (added) {
          order.push_back(&at->first);
          at->second.source = begins ? own : "";
        } else {
          ++at->second.more;
        }
      }
    for (const std::string* text : order) {
      const Said& said = by_text.at(*text);
      const std::string more = said.more > 0 && !said.source.empty() ? fmt::format(" and {} more", said.more) : "";
      graph_.warnings.push_back(said.source + more + *text);
    }
  }

  static double days(Nanos time) { return time.seconds() / 86'400; }

  static Nanos first_start(const PartialGraph& part) {
    Nanos first = Nanos::never();
    for (const RankGraph& rank : part.graph.ranks)
      for (const GraphNode& node : rank.nodes) first = std::min(first, node.start);
    for (const auto& step : part.graph.steps) first = std::min(first, step.start);
    return first;
  }

  // Returns whether the numbers of ranks matter. They matter for messages, broadcasts, and groups that list their
  // ranks.
  [[nodiscard]] bool depends_on_numbers() const {
    const auto numbered = [](const GraphNode& node) {
      return node.kind == Kind::send || node.kind == Kind::receive || node.collective == Collective::broadcast;
    };
    return std::ranges::any_of(parts_, [&](const PartialGraph& part) {
      const auto& groups = part.graph.groups;
      return std::ranges::any_of(groups, [](const Ranks& group) { return !group.empty(); }) ||
             std::ranges::any_of(part.graph.ranks,
                                 [&](const RankGraph& rank) { return std::ranges::any_of(rank.nodes, numbered); });
    });
  }

  void number_ranks() {
    std::vector<From> unnumbered;
    for (std::uint32_t part = 0; part < parts_.size(); ++part)
      for (std::uint32_t position = 0; position < parts_[part].rank_of.size(); ++position) {
        const std::uint32_t rank = parts_[part].rank_of[position];
        const From from{part, position};
        if (rank == kUnknownRank) {
          unnumbered.push_back(from);
          continue;
        }
        const auto [at, added] = present_.emplace(rank, from);
        if (!added)
          fail(source(from), fmt::format("rank {} is also in {}", rank, source(at->second)),
               "give one trace of each rank, of one job");
      }
    const bool guessed = unnumbered.size() > 1 && depends_on_numbers();
    std::uint32_t next = 0;
    for (const From& from : unnumbered) {
      while (present_.contains(next)) ++next;
      if (guessed && &from == &unnumbered.front())
        graph_.warnings.push_back(
            fmt::format("{}: {} do not state their rank; they are numbered in the given order, from {} on; end their "
                        "names with the rank, e.g. trace.{}.json",
                        source(from), plural(unnumbered.size(), "trace"), next, next));
      present_.emplace(next, from);
      parts_[from.part].rank_of[from.position] = next;
    }
    if (present_.empty()) fail(source(), "it holds no ranks", "give a trace with at least one");
  }

  // Finds the members of all groups. Groups with the same identifier in several inputs are one group. Its members are
  // all ranks that run collectives with this identifier.
  void find_members() {
    std::map<std::string, std::set<std::uint32_t>> by_id;
    std::map<std::string, std::uint32_t> sizes;
    members_.resize(parts_.size());
    std::vector<std::vector<std::set<std::uint32_t>>> users(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const PartialGraph& part = parts_[p];
      users[p].resize(part.graph.groups.size());
      for (std::size_t position = 0; position < part.graph.ranks.size(); ++position)
        for (const GraphNode& node : part.graph.ranks[position].nodes)
          if (node.kind == Kind::collective) users[p][node.group].insert(part.rank_of[position]);
      for (std::size_t g = 0; g < part.graph.groups.size(); ++g) {
        const auto& what = part.groups[g];
        users[p][g].insert(part.graph.groups[g].begin(), part.graph.groups[g].end());
        if (what.id.empty() || (what.size == 0 && !part.graph.groups[g].empty())) continue;
        by_id[what.id].insert(users[p][g].begin(), users[p][g].end());
        std::uint32_t& size = sizes[what.id];
        if (size != 0 && what.size != 0 && size != what.size)
          warn(fmt::format("group {} has {} ranks in one trace and {} in another; {} is taken", in_quotes(what.id),
                           size, what.size, std::max(size, what.size)));
        size = std::max(size, what.size);
      }
    }
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const PartialGraph& part = parts_[p];
      for (std::size_t g = 0; g < part.graph.groups.size(); ++g) {
        const auto& what = part.groups[g];
        Members members;
        const bool by_users = what.size == 0 && !what.id.empty() && part.graph.groups[g].empty();
        if (by_users && (by_id[what.id].size() > 1 || sizes[what.id] > 0)) {
          members.ranks.assign(by_id[what.id].begin(), by_id[what.id].end());
          members.size = std::max(sizes[what.id], static_cast<std::uint32_t>(members.ranks.size()));
        } else if (what.size == 0) {  // all ranks are listed, or the group is the whole job
          members.ranks = part.graph.groups[g];
          members.size = static_cast<std::uint32_t>(members.ranks.size());
        } else {
          const auto& known = what.id.empty() ? users[p][g] : by_id[what.id];
          members.ranks.assign(known.begin(), known.end());
          members.size =
              std::max(what.id.empty() ? what.size : sizes[what.id], static_cast<std::uint32_t>(members.ranks.size()));
        }
        members_[p].push_back(std::move(members));
      }
    }
  }

  void find_world() {
    std::uint32_t stated = 0;
    std::uint32_t min = present_.rbegin()->first + 1;
    bool talks = false;
    bool whole = false;  // whether anything depends on the number of ranks
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const PartialGraph& part = parts_[p];
      if (stated != 0 && part.world != 0 && part.world != stated)
        graph_.warnings.push_back(fmt::format("{}: the job has {} ranks here and {} in another trace; {} is taken",
                                              part.graph.sources.front(), part.world, stated,
                                              std::max(part.world, stated)));
      stated = std::max(stated, part.world);
      for (const Members& members : members_[p]) {
        whole = whole || members.size == 0;
        min = std::max(min, members.size);
        if (!members.ranks.empty()) min = std::max(min, members.ranks.back() + 1);
      }
      for (const RankGraph& rank : part.graph.ranks)
        for (const GraphNode& node : rank.nodes) {
          if (node.kind == Kind::collective) talks = true;
          if (node.kind == Kind::send || node.kind == Kind::receive) whole = true;
          if (node.kind == Kind::send || node.kind == Kind::receive || node.collective == Collective::broadcast)
            min = std::max(min, node.peer + 1);
        }
    }
    if (stated == 0 && options_.ranks != 0) {
      if (options_.ranks < min)
        fail(source(), fmt::format("it needs {} ranks, but {} are given", min, options_.ranks),
             "give at least as many");
      stated = options_.ranks;
    } else if (options_.ranks != 0 && options_.ranks != stated) {
      warn(fmt::format("the trace states that the job has {} ranks; ignoring the given {}", stated, options_.ranks));
    }
    world_ = std::max(stated, min);
    if (world_ == 1 && talks && stated == 0) world_ = 2;
    if (stated == 0 && whole && world_ > present_.size())
      warn(fmt::format("the trace does not state the job's number of ranks; assuming {}, the smallest number that fits",
                       world_));
    if (world_ > options_.max_ranks)
      fail(source(), fmt::format("it has {} ranks, more than {}", world_, options_.max_ranks), "give a trace of fewer");
  }

  void complete_members() {
    std::set<std::string> warned;
    std::size_t count = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p)
      for (std::size_t g = 0; g < members_[p].size(); ++g) {
        Members& members = members_[p][g];
        if (members.size == 0) members.size = world_;
        if ((count += members.size) > kMaxMembers)
          fail(parts_[p].graph.sources.front(), "its groups are too large in all", "give a trace of fewer ranks");
        if (members.ranks.size() == members.size) continue;
        Ranks known = std::exchange(members.ranks, {});
        std::uint32_t first = 0;
        if (members.size < world_) {
          // Assumes adjacent ranks, as in tensor parallelism.
          const std::uint32_t one = known.empty() ? parts_[p].rank_of.front() : known.front();
          first = std::min(one / members.size * members.size, world_ - members.size);
          if (warned.insert(parts_[p].groups[g].id + fmt::format(" {}", members.size)).second)
            graph_.warnings.push_back(
                fmt::format("{}: the trace does not state which {} ranks are in a group; assuming neighbours",
                            parts_[p].graph.sources.front(), members.size));
        }
        // Adds the lowest missing ranks, from `first` on, until the group is complete. The lists `known` and `all` are
        // ascending.
        Ranks& all = members.ranks;
        std::size_t lacking = members.size - known.size();
        auto next = known.begin();
        for (; next != known.end() && *next < first; ++next) all.push_back(*next);
        for (std::uint32_t rank = first; next != known.end() || lacking > 0; ++rank) {
          const bool is_known = next != known.end() && *next == rank;
          if (is_known) ++next;
          if (is_known || lacking > 0) all.push_back(rank);
          if (!is_known && lacking > 0) --lacking;
        }
      }
  }

  void gather_shards() {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (!parts_[p].gather_shards) continue;
      for (RankGraph& rank : parts_[p].graph.ranks)
        for (GraphNode& node : rank.nodes) {
          if (node.kind != Kind::collective || node.collective != Collective::all_gather) continue;
          const Bytes ranks = members_[p][node.group].size;
          if (node.bytes > kMaxCollectiveBytes / ranks)
            fail(parts_[p].graph.sources.front(),
                 fmt::format("an all-gather of {} bytes by each of {} ranks is out of range", node.bytes, ranks),
                 "record it again");
          node.bytes *= ranks;
        }
    }
  }

  // Merges the steps of all parts. Equal names identify a step. If a part has unnamed or duplicate steps, equal indices
  // identify a step.
  void merge_steps() {
    bool named = true;
    for (const PartialGraph& part : parts_) {
      std::set<std::string> names;
      for (const auto& step : part.graph.steps) named = named && !step.name.empty() && names.insert(step.name).second;
    }
    std::map<std::string, std::size_t> by_name;
    struct Merged {
      std::string name;
      Nanos start = Nanos::never();
      Nanos end;
      Nanos longest;
      std::size_t order = 0;
    };
    std::vector<Merged> merged;
    std::vector<std::vector<std::size_t>> at(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto& steps = parts_[p].graph.steps;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        std::size_t index = i;
        if (named) index = by_name.emplace(steps[i].name, merged.size()).first->second;
        if (index == merged.size()) merged.push_back({steps[i].name, Nanos::never(), Nanos(0), Nanos(0), index});
        Merged& one = merged[index];
        one.longest = std::max(one.longest, steps[i].length);
        if (!steps[i].start.is_never()) {
          one.start = std::min(one.start, steps[i].start);
          one.end = std::max(one.end, steps[i].start + steps[i].length);
        }
        at[p].push_back(index);
      }
    }
    // Sorts by start, because a rank of a later part may have begun before the ranks of the first part.
    std::vector<std::size_t> order(merged.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const bool timed = std::ranges::none_of(merged, [](const Merged& m) { return m.start.is_never(); });
    if (named && timed)
      std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return merged[a].start < merged[b].start; });
    std::vector<std::uint32_t> place(merged.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Merged& one = merged[order[i]];
      place[order[i]] = static_cast<std::uint32_t>(i);
      const Nanos length = one.start.is_never() ? one.longest : one.end - one.start;
      graph_.steps.push_back({one.name, one.start, length});
    }
    steps_.resize(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p)
      for (const std::size_t index : at[p]) steps_[p].push_back(place[index]);
    for (std::size_t p = 0; p < parts_.size(); ++p)
      if (!std::ranges::is_sorted(steps_[p]))
        fail(parts_[p].graph.sources.front(), "its steps are in another order than those of other ranks",
             "give traces of one run");
  }

  // Returns the stride of `group`, a group of rank `from`. Returns 0 if the job cannot be divided into groups with
  // equal strides and sizes.
  [[nodiscard]] std::uint32_t stride_of(const Ranks& group, std::uint32_t from) const {
    const auto size = static_cast<std::uint32_t>(group.size());
    const std::uint32_t stride = size < 2 ? 1 : group[1] - group[0];
    for (std::uint32_t i = 1; i < size; ++i)
      if (group[i] - group[i - 1] != stride) return 0;
    const std::uint64_t span = std::uint64_t{stride} * size;
    if (group.front() != first_for(from, stride, size) || world_ % span != 0) return 0;
    return stride;
  }
  static std::uint32_t first_for(std::uint32_t rank, std::uint32_t stride, std::uint32_t size) {
    return rank - rank / stride % size * stride;
  }

  // Returns the first rank of the group that contains `rank` and corresponds to `group`.
  [[nodiscard]] static std::uint32_t first_of(const Ranks& group, std::uint32_t stride, std::uint32_t rank) {
    if (std::ranges::binary_search(group, rank)) return group.front();
    return first_for(rank, stride, static_cast<std::uint32_t>(group.size()));
  }

  // Bytes of messages in the order of the nodes, by distance to the peer and by tag. messages() returns sent messages
  // first and received messages second.
  using Messages = std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Bytes>>;
  [[nodiscard]] std::pair<Messages, Messages> messages(std::uint32_t rank, const From& from) const {
    std::pair<Messages, Messages> result;
    for (const GraphNode& node : rank_at(from).nodes) {
      if (node.kind == Kind::send) result.first[{(node.peer + world_ - rank) % world_, node.tag}].push_back(node.bytes);
      if (node.kind == Kind::receive)
        result.second[{(rank + world_ - node.peer) % world_, node.tag}].push_back(node.bytes);
    }
    return result;
  }

  // Creates the missing ranks. Returns false if that is impossible, or if the job could not end with the created ranks.
  // For example, the middle stage of a pipeline passes messages on in one direction. It looks like a rank of a ring,
  // but in a ring of such ranks each one would wait for its predecessor.
  bool fill_and_check() {
    const std::vector<std::string> warnings = graph_.warnings;
    if (!fill()) return false;
    try {
      agree();
      check(graph_);
      return true;
    } catch (const InputError&) {
      const auto& all = rank_at(present_.begin()->second).nodes;
      if (std::ranges::none_of(all, [](const GraphNode& node) { return node.kind == Kind::send; })) throw;
    }
    // Restores the state before fill().
    graph_.warnings = warnings;
    warn(
        fmt::format("if ranks without a trace were like rank {}, the job could not end; it is not used for any of them",
                    present_.begin()->first));
    graph_.ranks.clear();
    graph_.groups.clear();
    graph_.names.clear();
    graph_.lanes.clear();
    name_ = {};
    lane_ = {};
    index_of_.clear();
    group_.clear();
    copied_.clear();
    left_out_ = messages_out_ = smaller_ = roots_ = 0;
    return false;
  }

  bool fill() {
    Ranks missing;
    for (std::uint32_t rank = 0; rank < world_; ++rank)
      if (!present_.contains(rank)) missing.push_back(rank);
    std::optional<std::pair<Messages, Messages>> first;
    for (const auto& [rank, from] : present_) {
      auto sent = messages(rank, from);
      if (sent.first != sent.second || (first && *first != sent)) return false;
      if (!first) first = std::move(sent);
    }
    const auto& [model, from] = *present_.begin();
    const auto& groups = members_[from.part];
    const std::set<std::uint32_t> used = groups_used(from);
    strides_.assign(groups.size(), 0);
    for (const std::uint32_t group : used) {
      const Ranks& ranks = groups[group].ranks;
      strides_[group] = stride_of(ranks, model);
      if (strides_[group] == 0 && !std::includes(ranks.begin(), ranks.end(), missing.begin(), missing.end()))
        return false;
    }
    const RankGraph& copied = rank_at(from);
    const std::size_t nodes = copied.nodes.size();
    if (nodes != 0 && (world_ > kMaxRanksMade || world_ > kMaxGraphNodes / nodes ||
                       world_ > kMaxMade / (nodes + copied.waits.size() + groups.size())))
      fail(source(from),
           fmt::format("it is one rank of {}, of {} nodes that wait for {} others each: too much in all", world_, nodes,
                       copied.waits.size()),
           "give a trace of fewer steps, or say that ranks are not alike");
    for (std::uint32_t rank = 0; rank < world_; ++rank) index_of_[rank] = rank;
    graph_.ranks.resize(world_);
    for (const auto& [rank, own] : present_) copy(own, rank, rank);
    for (const std::uint32_t rank : missing) copy(from, model, rank);
    graph_.warnings.push_back(fmt::format("{}: rank {} is used for {} of {}, which have no trace", source(from), model,
                                          shown(missing), world_));
    return true;
  }
  static constexpr std::uint32_t kMaxRanksMade = 65'536;
  static constexpr std::size_t kMaxMade = 32'000'000;  // maximum sum of the nodes and their waits, over all ranks made

  [[nodiscard]] std::set<std::uint32_t> groups_used(const From& from) const {
    std::set<std::uint32_t> used;
    for (const GraphNode& node : rank_at(from).nodes)
      if (node.kind == Kind::collective) used.insert(node.group);
    return used;
  }

  void keep_present() {
    Ranks missing;
    for (std::uint32_t rank = 0; rank < world_ && missing.size() < kMaxRanksMade; ++rank)
      if (!present_.contains(rank)) missing.push_back(rank);
    std::uint32_t place = 0;
    bool numbered = true;
    for (const auto& [rank, from] : present_) {
      numbered = numbered && rank == place;
      index_of_[rank] = place++;
      graph_.recorded_ranks.push_back(rank);
    }
    if (numbered) graph_.recorded_ranks.clear();
    graph_.ranks.resize(present_.size());
    for (const auto& [rank, from] : present_) copy(from, rank, rank, true);
    if (missing.empty()) return;
    if (left_out_ + smaller_ == 0) return;
    warn(
        fmt::format("there is no trace of {} of {} (kept without them: {}; left out: {}, {}); give the traces of all "
                    "ranks",
                    shown(missing), world_, plural(smaller_, "collective"),
                    plural(left_out_ - messages_out_, "collective"), plural(messages_out_, "message")));
  }

  struct CopiedGroup {
    /// Index in graph_.groups; kUnknownRank if fewer than two ranks of the group are present.
    std::uint32_t index = kUnknownRank;
    bool cut = false;  ///< whether some ranks of the group are missing
  };

  // Copies the nodes of rank `model` to rank `rank`. If `last` is true, moves the nodes instead, because the part may
  // take most of the memory and is not needed afterwards.
  void copy(const From& from, std::uint32_t model, std::uint32_t rank, bool last = false) {
    PartialGraph& part = parts_[from.part];
    const std::set<std::uint32_t> used = groups_used(from);
    RankGraph& to = graph_.ranks[index_of_.at(rank)];
    if (last)
      to = std::move(part.graph.ranks[from.position]);
    else
      to = rank_at(from);
    // Handles only the groups in use, because there may be many others. These vectors are data members so that the
    // copies of many ranks reuse their memory.
    std::vector<CopiedGroup>& groups = copied_of_;
    std::vector<std::int64_t>& moved = moved_;
    groups.resize(std::max(groups.size(), members_[from.part].size()));
    moved.resize(groups.size());
    for (const std::uint32_t group : used) {
      const Ranks& all = members_[from.part][group].ranks;
      const std::uint32_t first = model == rank ? all.front() : first_of(all, strides_[group], rank);
      moved[group] = static_cast<std::int64_t>(first) - all.front();
      const auto [known, added] = copied_.try_emplace({from.part, group, first});
      if (added) {
        Ranks places;
        for (const std::uint32_t member : all) {
          const auto at = index_of_.find(static_cast<std::uint32_t>(member + moved[group]));
          if (at != index_of_.end()) places.push_back(at->second);
        }
        known->second.cut = places.size() < all.size();
        if (places.size() > 1 || all.size() == 1) known->second.index = group_index(std::move(places));
      }
      groups[group] = known->second;
    }
    for (GraphNode& node : to.nodes) {
      node.name = name_.at(from.part, node.name, part.graph.names, graph_.names);
      node.lane = lane_.at(from.part, node.lane, part.graph.lanes, graph_.lanes);
      node.step = steps_[from.part][node.step];
      if (node.kind == Kind::compute) continue;
      const bool collective = node.kind == Kind::collective;
      const std::uint32_t peer = model == rank ? node.peer : (node.peer + world_ - model + rank) % world_;
      if (collective) {
        if (options_.as_recorded) node.tag = 0;  // without as_recorded, agree() clears the tag
        const std::uint32_t group = node.group;
        if (groups[group].index == kUnknownRank) {
          leave_out(node);
          continue;
        }
        node.group = groups[group].index;
        if (groups[group].cut) ++smaller_;
        if (node.collective == Collective::broadcast) {
          // If the root is missing, the first member of the group becomes the root.
          const auto at = index_of_.find(static_cast<std::uint32_t>(node.peer + moved[group]));
          const Ranks& members = graph_.groups[node.group];
          node.peer =
              at != index_of_.end() && std::ranges::binary_search(members, at->second) ? at->second : members.front();
        } else {
          node.peer = 0;
        }
        continue;
      }
      const auto at = index_of_.find(peer);
      if (at == index_of_.end()) {
        ++messages_out_;
        leave_out(node);
      } else {
        node.peer = at->second;
      }
    }
  }

  // Replaces a communication that cannot run by an empty computation, which preserves the dependencies.
  void leave_out(GraphNode& node) {
    ++left_out_;
    node.kind = Kind::compute;
    node.collective = Collective::none;
    node.length = Nanos(0);
    node.bytes = 0;
    node.tag = 0;
    node.group = 0;
    node.peer = 0;
  }

  std::uint32_t group_index(Ranks ranks) {
    const auto [at, added] = group_.emplace(ranks, static_cast<std::uint32_t>(graph_.groups.size()));
    if (added) graph_.groups.push_back(std::move(ranks));
    return at->second;
  }

  // Sets the bytes of each communication to the largest number that any of its ranks states. Leaves out communications
  // that some of their ranks lack.
  void agree() {
    agree_on_collectives();
    agree_on_messages();
  }

  struct Lists {
    std::map<std::uint32_t, std::vector<std::uint32_t>> of;  ///< indices of nodes, by rank
  };

  // Leaves out collectives that some ranks of the group lack. Without this, all later collectives would be paired
  // wrongly. Kind and number (the tag) identify a collective. If the numbers of the ranks are not consistent, leaves
  // out nothing, so that collectives are paired in order.
  void leave_out_unpaired(const Ranks& group, Lists& lists, std::size_t& lacking) {
    using Key = std::pair<Collective, std::uint64_t>;
    std::map<Key, std::size_t> having;  // ranks
    const auto key = [&](std::uint32_t rank, std::uint32_t index) {
      const GraphNode& node = graph_.ranks[rank].nodes[index];
      return Key(node.collective, node.tag);
    };
    bool usable = lists.of.size() == group.size();
    for (const auto& [rank, list] : lists.of) {
      std::set<Key> own;
      for (const std::uint32_t index : list) {
        const Key one = key(rank, index);
        usable = usable && one.second != 0 && own.insert(one).second;
      }
      if (!usable) break;
      for (const Key& one : own) ++having[one];
    }
    std::optional<std::vector<Key>> common;
    for (const auto& [rank, list] : lists.of) {
      if (!usable) break;
      std::vector<Key> own;
      for (const std::uint32_t index : list)
        if (having[key(rank, index)] == group.size()) own.push_back(key(rank, index));
      usable = !own.empty() && (!common || *common == own);
      common = std::move(own);
    }
    for (auto& [rank, list] : lists.of) {
      std::vector<std::uint32_t> kept;
      for (const std::uint32_t index : list) {
        GraphNode& node = graph_.ranks[rank].nodes[index];
        if (usable && having[key(rank, index)] < group.size()) {
          leave_out(node);
          ++lacking;
          continue;
        }
        node.tag = 0;
        kept.push_back(index);
      }
      list = std::move(kept);
    }
  }

  void agree_on_collectives() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Lists> all;  // collectives, by group and step
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank)
      for (std::uint32_t i = 0; i < graph_.ranks[rank].nodes.size(); ++i) {
        const GraphNode& node = graph_.ranks[rank].nodes[i];
        if (node.kind == Kind::collective) all[{node.group, node.step}].of[rank].push_back(i);
      }
    std::size_t lacking = 0;
    std::size_t uneven = 0;
    for (auto& [where, lists] : all) {
      leave_out_unpaired(graph_.groups[where.first], lists, lacking);
      std::size_t min = lists.of.begin()->second.size();
      for (const std::uint32_t rank : graph_.groups[where.first]) min = std::min(min, lists.of[rank].size());
      for (auto& [rank, list] : lists.of)
        for (; list.size() > min; list.pop_back(), ++lacking) leave_out(graph_.ranks[rank].nodes[list.back()]);
      for (std::size_t i = 0; i < min; ++i)
        if (!agree_on(lists, i)) ++uneven;
    }
    warn(lacking, "collective", "that other ranks of the group do not run in that step: left out");
    warn(roots_, "broadcast", "whose ranks state different roots: using those of the lowest rank");
    warn(uneven, "collective", "whose ranks state different bytes: using the largest number");
  }

  // Sets the bytes and the root of the i-th collective on all ranks. Returns false if ranks stated different bytes.
  bool agree_on(const Lists& lists, std::size_t i) {
    const auto node_of = [&](const auto& entry) -> GraphNode& {
      return graph_.ranks[entry.first].nodes[entry.second[i]];
    };
    const auto& leader = *lists.of.begin();
    const GraphNode& first = node_of(leader);
    Bytes max = 0;
    bool even = true;
    bool one_root = true;
    for (const auto& entry : lists.of) {
      GraphNode& node = node_of(entry);
      if (node.collective != first.collective)
        fail(source(),
             fmt::format("rank {} runs {} ({}) where rank {} runs {} ({})", recorded(entry.first),
                         name(node.collective), in_quotes(graph_.names[node.name]), recorded(leader.first),
                         name(first.collective), in_quotes(graph_.names[first.name])),
             "give traces of one run");
      max = std::max(max, node.bytes);
      even = even && node.bytes == first.bytes;
      one_root = one_root && node.peer == first.peer;
      node.peer = first.peer;
    }
    if (!one_root) ++roots_;
    for (const auto& entry : lists.of) node_of(entry).bytes = max;
    return even;
  }

  void agree_on_messages() {
    using Channel = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // sender, receiver, tag
    std::map<Channel, std::pair<Ranks, Ranks>> channels;
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank)
      for (std::uint32_t i = 0; i < graph_.ranks[rank].nodes.size(); ++i) {
        const GraphNode& node = graph_.ranks[rank].nodes[i];
        if (node.kind == Kind::send) channels[{rank, node.peer, node.tag}].first.push_back(i);
        if (node.kind == Kind::receive) channels[{node.peer, rank, node.tag}].second.push_back(i);
      }
    std::size_t lacking = 0;
    std::size_t uneven = 0;
    for (auto& [channel, ends] : channels) {
      const auto [from, to, tag] = channel;
      auto& [sends, receives] = ends;
      for (; sends.size() > receives.size(); sends.pop_back(), ++lacking)
        leave_out(graph_.ranks[from].nodes[sends.back()]);
      for (; receives.size() > sends.size(); receives.pop_back(), ++lacking)
        leave_out(graph_.ranks[to].nodes[receives.back()]);
      for (std::size_t i = 0; i < sends.size(); ++i) {
        GraphNode& send = graph_.ranks[from].nodes[sends[i]];
        GraphNode& receive = graph_.ranks[to].nodes[receives[i]];
        if (send.bytes != receive.bytes) ++uneven;
        send.bytes = receive.bytes = std::max(send.bytes, receive.bytes);
      }
    }
    warn(lacking, "message", "without the other end of it: left out");
    warn(uneven, "message", "of different bytes at both ends: using the larger number");
  }

  [[nodiscard]] std::uint32_t recorded(std::uint32_t rank) const {
    return graph_.recorded_ranks.empty() ? rank : graph_.recorded_ranks[rank];
  }

  /// Maps the indices of a part's texts to indices of the graph's texts.
  class Texts {
   public:
    std::uint32_t at(std::uint32_t part, std::uint32_t index, const std::vector<std::string>& from,
                     std::vector<std::string>& to) {
      if (part >= of_part_.size()) of_part_.resize(part + 1);
      auto& known = of_part_[part];
      if (known.empty()) known.resize(from.size(), kUnknownRank);
      if (known[index] == kUnknownRank) {
        const auto [found, added] = found_.emplace(from[index], static_cast<std::uint32_t>(to.size()));
        if (added) to.push_back(from[index]);
        known[index] = found->second;
      }
      return known[index];
    }

   private:
    std::vector<std::vector<std::uint32_t>> of_part_;
    std::unordered_map<std::string, std::uint32_t> found_;
  };

  std::vector<PartialGraph> parts_;
  TraceOptions options_;
  ExecutionGraph graph_;
  std::map<std::uint32_t, From> present_;            ///< ranks with a trace, by recorded rank
  std::vector<std::vector<Members>> members_;        ///< members of each group, by part and group
  std::vector<std::vector<std::uint32_t>> steps_;    ///< index in graph_.steps, by part and step
  std::map<std::uint32_t, std::uint32_t> index_of_;  ///< index in graph_.ranks, by recorded rank
  std::map<Ranks, std::uint32_t> group_;
  /// Stride of each group of the part from which missing ranks are copied; 0 if the group has no stride.
  std::vector<std::uint32_t> strides_;
  /// Copied groups, by part, group and first rank.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, CopiedGroup> copied_;
  std::vector<CopiedGroup> copied_of_;  ///< copied groups, by group of the rank that copy() copies
  std::vector<std::int64_t> moved_;
  Texts name_;
  Texts lane_;
  std::uint32_t world_ = 0;
  std::size_t left_out_ = 0;
  std::size_t messages_out_ = 0;
  std::size_t smaller_ = 0;
  std::size_t roots_ = 0;  ///< number of broadcasts whose ranks state different roots
};

}  // namespace

ExecutionGraph join(std::vector<PartialGraph> parts, const TraceOptions& options) {
  if (parts.empty()) throw InputError("a trace: it holds nothing; give the path of one");
  return Join(std::move(parts), options).run();
}

}  // namespace mltcp::workload
