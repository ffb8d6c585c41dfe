// A network at flow level, in virtual time: no packets, but flows that share links as a fluid. At every moment each
// flow has its weighted max-min fair rate, as if congestion control settled at once (Bertsekas and Gallager, "Data
// Networks", section 6.5.2; with weights: Radunovic and Le Boudec, "A unified framework for max-min and min-max
// fairness with applications", IEEE/ACM Transactions on Networking 15(5), 2007). So its cost is one event per start,
// end and change of weight of a flow instead of several per packet.
//
// Weights. A flow's weight is the number of connections that it stands for times the gain of its group: the shares of
// flows on one bottleneck are in the ratio of their gains, as in cc/fluid_model.h. A group is what shares one gain and
// one progress through an iteration: the flows of one shard's job. Where the gain depends on progress x, it is taken as
// F in the middle of the step of x that the group is in, of `weight_steps` equal ones from 0 to 1. That is second
// order: errors fall with the square of the number of steps.
//
// Rates. Only links whose flows could together send more than they carry can hold a flow back. What changes at one
// instant is applied together, and rates are computed anew for what is connected with it through such links: by
// progressive filling, in order of rising rate per weight, from a heap.
//
// Order. Events at one instant are taken in the order of the flows' numbers, then of the groups'. Arithmetic is that of
// doubles in a fixed order, so the same calls give the same result. A flow ends at the first whole nanosecond at which
// its bytes have been sent; rounding neither stalls one nor lets it end before the one in front of it.
//
// What it has no notion of: loss, marks, queues, and time that a window takes to find its share.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/fabric/usage_meter.h"
#include "mltcp/sim/event_queue.h"

namespace mltcp::sim {

class FlowNetwork {
 public:
  using LinkId = std::uint32_t;
  using GroupId = std::uint32_t;
  using FlowId = std::uint32_t;

  struct Options {
    std::uint32_t weight_steps = 64;  ///< 1 to 65536
  };
  struct Hop {
    LinkId link = 0;
    /// What a byte of the application takes of the link, headers and acknowledgements included; above 0.
    double wire_bytes_per_byte = 1;
  };
  /// What send() was asked for has left the sender, at now().
  struct Finished {
    FlowId flow = 0;
    std::uint64_t tag = 0;
    Bytes bytes = 0;
  };
  /// What a link did until now(). It is contended while flows of several groups are on it that could together send more
  /// than it carries.
  struct LinkUse {
    double wire_bytes = 0;
    double contended_wire_bytes = 0;  ///< of those, while it was contended
    Nanos contended;                  ///< for how long it was
  };
  struct Counters {
    std::uint64_t events = 0;           ///< flows that began or ended to send, and changes of weight
    std::uint64_t allocations = 0;      ///< times that rates were computed
    std::uint64_t allocated_flows = 0;  ///< flows in those, all together
  };

  /// Throws InputError if `options` are out of range.
  FlowNetwork() : FlowNetwork(Options{}) {}
  explicit FlowNetwork(const Options& options);

  // Set-up, at any time. Each throws InputError for bad input. The numbers of what was removed are given again.

  /// A link of `rate`, above 0, in wire bytes.
  LinkId add_link(Rate rate);
  /// For what is sent from now() on.
  void set_rate(LinkId id, Rate rate);
  /// `job` is for meters. Its gain is `augmentation`'s, whose tracker isn't looked at.
  GroupId add_group(std::uint32_t job, const cc::Augmentation& augmentation);
  /// A flow that stands for `connections`, 1 or more, of the group on one path, at least one link, each once.
  FlowId add_flow(GroupId group, std::span<const Hop> path, std::uint32_t connections = 1);
  /// With its flows; what they had yet to send is forgotten.
  void remove_group(GroupId id);
  /// Counts what each job sends over `link` from now on. The meter is the caller's and outlives the network's use.
  void meter(LinkId link, fabric::UsageMeter* meter);

  // Traffic, at now().

  /// The group's next iteration begins and will send `bytes`, all its flows together; 0: not known, and its gain is 1.
  void begin_iteration(GroupId id, Bytes bytes);
  /// The flow sends `bytes`, above 0, after what it was asked for before; if that is nothing, not before `not_before`.
  void send(FlowId id, Bytes bytes, std::uint64_t tag, Nanos not_before = Nanos(0));
  /// It has nothing more to send.
  [[nodiscard]] bool idle(FlowId flow) const { return flows_[flow].queue.empty(); }

  // Time.

  [[nodiscard]] Nanos now() const { return now_; }
  /// When something will happen by itself; never() if nothing will.
  [[nodiscard]] Nanos next_event();
  /// Goes to `time`, not before now() and not after next_event(), and does what happens then.
  void advance(Nanos time);
  /// What the latest advance() finished; valid until the next.
  [[nodiscard]] std::span<const Finished> finished() const { return finished_; }

  // What there is to see.

  /// Bytes of the application per second; 0 if it isn't sending.
  [[nodiscard]] double bytes_per_second(FlowId flow);
  /// Of its latest iteration, from 0 to 1; 0 while not known.
  [[nodiscard]] double bytes_ratio(GroupId id);
  [[nodiscard]] LinkUse use(LinkId id);
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::size_t links() const { return links_.size(); }

 private:
  struct Member {  // a flow on a link
    FlowId flow = 0;
    std::uint32_t hop = 0;
  };
  struct Link {
    double capacity = 0;  // wire bytes per nanosecond
    std::int64_t rate = 0;
    std::int64_t demand = 0;  // what its flows could send, in bits per second: whole, so that sums don't drift
    std::vector<Member> members;
    bool tight = false;      // demand was above rate when rates were last computed
    bool contended = false;  // and flows of several groups were on it
    std::uint64_t visit = 0;
    // While rates are computed:
    double left = 0;
    double weight = 0;
    std::size_t unfrozen = 0;
    LinkUse use;
    Nanos contended_since;
    fabric::UsageMeter* meter = nullptr;
  };
  struct PathHop {
    LinkId link = 0;
    std::uint32_t place = 0;  // among the link's members
    double cost = 1;
    std::int64_t demand = 0;
    double metered = 0;  // fraction of a byte that its meter has yet to be told
  };
  struct Part {
    Bytes bytes = 0;
    std::uint64_t tag = 0;
  };
  enum class State : std::uint8_t { removed, idle, waiting, sending };
  struct Flow {
    State state = State::idle;
    bool frozen = false;
    bool contended = false;
    GroupId group = 0;
    std::uint32_t place = 0;  // among the group's senders
    double connections = 1;
    double weight = 1;
    double most = 0;  // bytes of the application per nanosecond that its path carries; like `rate`
    double rate = 0;
    double left = 0;  // bytes of the part in front
    Nanos settled;    // `left` is of this time
    std::uint64_t visit = 0;
    std::deque<Part> queue;
    std::vector<PathHop> path;
  };
  struct Group {
    bool removed = false;
    std::uint32_t job = 0;
    cc::Augmentation augmentation;
    Bytes bytes_per_iteration = 0;
    double sent = 0;
    std::uint32_t step = 0;
    double gain = 1;
    std::uint64_t visit = 0;
    std::vector<FlowId> flows;
    std::vector<FlowId> senders;
  };
  struct Level {
    double level = 0;  // rate per weight
    std::uint32_t source = 0;
  };

  void check_link(LinkId link) const;
  void set_most(Flow& flow);
  void enter(FlowId id);
  void leave(FlowId id);
  void settle(Flow& flow);
  void tell_meter(const Link& link, const Flow& flow, PathHop& hop, double wire_bytes) const;
  void settle(Group& group);
  void find_gain(Group& group);
  void touch(LinkId link) { changed_links_.push_back(link); }
  void update();
  void allocate();
  void visit(FlowId id);
  void visit_link(LinkId id);
  void judge(Link& link);
  void fill();
  void freeze(Flow& flow, double rate);
  void push(double level, std::uint32_t source);
  void schedule_gain(GroupId id);

  Options options_;
  Nanos now_;
  EventQueue events_;  // flows, then from EventQueue::second on groups
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<Group> groups_;
  std::vector<FlowId> free_flows_;
  std::vector<GroupId> free_groups_;
  std::vector<Finished> finished_;
  Counters counters_;
  // What has changed since rates were computed.
  std::vector<LinkId> changed_links_;
  std::vector<FlowId> changed_flows_;
  // While rates are computed.
  std::uint64_t visit_ = 0;
  std::vector<FlowId> component_;
  std::vector<LinkId> component_links_;
  std::vector<GroupId> component_groups_;
  std::vector<double> rates_before_;
  std::vector<Level> heap_;
};

}  // namespace mltcp::sim
