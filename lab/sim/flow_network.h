// A flow-level network in virtual time: flows share links like fluids, without packets. At every moment each flow has
// its weighted max-min fair rate, as if congestion control converged instantly (Bertsekas and Gallager, "Data
// Networks", section 6.5.2; with weights: Radunovic and Le Boudec, "A unified framework for max-min and min-max
// fairness with applications", IEEE/ACM Transactions on Networking 15(5), 2007). The cost is one event for each start,
// end and weight change of a flow, instead of several for each packet.
//
// Weights. A flow's weight is its number of connections times the gain of its group: flows share a bottleneck in the
// ratio of their gains, as in cc/fluid_model.h. A group is a set of flows with common gain and common progress within
// an iteration: the flows of one shard's job. If the gain depends on progress x, it is F at the middle of the current
// one of `weight_steps` equal steps of x from 0 to 1. This is second order: errors decrease with the square of the
// number of steps.
//
// Rates. Only links whose flows could together exceed the capacity can limit a flow. All changes at one instant are
// applied together. Then rates are recomputed for the flows that are connected with the changes through such links: by
// progressive filling, in order of increasing rate per weight, with a heap.
//
// Order. Simultaneous events are processed by flow number, then by group number. Floating-point arithmetic is in a
// fixed order, so equal calls give equal results. A flow ends at the first whole nanosecond at which its bytes have
// been sent; rounding neither stalls flows nor changes their order.
//
// Not modelled: losses, ECN marks, queues, and the time that congestion control takes to converge.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/lab/fabric/usage_meter.h"
#include "mltcp/lab/sim/event_queue.h"

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
    /// Wire bytes per application byte on this link, headers and acknowledgements included; above 0.
    double wire_bytes_per_byte = 1;
  };
  /// A completed send(): its last byte left the sender at now().
  struct Finished {
    FlowId flow = 0;
    std::uint64_t tag = 0;
    Bytes bytes = 0;
  };
  /// The use of a link until now(). A link is contended while flows of several groups use it that could together exceed
  /// its capacity.
  struct LinkUse {
    double wire_bytes = 0;
    double contended_wire_bytes = 0;  ///< the part of wire_bytes carried while contended
    Nanos contended;                  ///< total time during which it was contended
  };
  struct Counters {
    std::uint64_t events = 0;           ///< starts and ends of flows, and weight changes
    std::uint64_t allocations = 0;      ///< number of rate computations
    std::uint64_t allocated_flows = 0;  ///< flows in these computations, in total
  };

  /// Throws InputError if `options` are out of range.
  FlowNetwork() : FlowNetwork(Options{}) {}
  explicit FlowNetwork(const Options& options);

  // Set-up. These functions may be called at any time, and throw InputError for invalid arguments. Numbers of removed
  // items are reused.

  /// Adds a link of `rate` wire bits per second, above 0.
  LinkId add_link(Rate rate);
  /// Changes the rate of a link for bytes that are sent from now() on.
  void set_rate(LinkId id, Rate rate);
  /// Adds a group. `job`: number for meters. The gain is that of `augmentation`, whose tracker is ignored.
  GroupId add_group(std::uint32_t job, const cc::Augmentation& augmentation);
  /// Adds a flow that represents `connections` (1 or more) connections of the group on one path of one or more distinct
  /// links.
  FlowId add_flow(GroupId group, std::span<const Hop> path, std::uint32_t connections = 1);
  /// Removes the group and its flows; unsent bytes are discarded.
  void remove_group(GroupId id);
  /// Counts each job's bytes over `link` from now on. The meter belongs to the caller and must outlive its use.
  void meter(LinkId link, fabric::UsageMeter* meter);

  // Traffic; takes effect at now().

  /// The group's next iteration begins and will send `bytes` over all its flows; 0: not known, and the gain is 1.
  void begin_iteration(GroupId id, Bytes bytes);
  /// Appends `bytes`, above 0, to the bytes that the flow has to send. An idle flow starts no earlier than
  /// `not_before`.
  void send(FlowId id, Bytes bytes, std::uint64_t tag, Nanos not_before = Nanos(0));
  /// Whether the flow has nothing more to send.
  [[nodiscard]] bool idle(FlowId flow) const { return flows_[flow].queue.empty(); }

  // Time.

  [[nodiscard]] Nanos now() const { return now_; }
  /// Time of the next event; never() if there is none.
  [[nodiscard]] Nanos next_event();
  /// Advances to `time`, from now() to next_event(), and processes the events there.
  void advance(Nanos time);
  /// Sends that the last advance() completed; valid until the next call.
  [[nodiscard]] std::span<const Finished> finished() const { return finished_; }

  // State.

  /// Current rate in application bytes per second; 0 if the flow is not sending.
  [[nodiscard]] double bytes_per_second(FlowId flow);
  /// Progress of the latest iteration, from 0 to 1; 0 while not known.
  [[nodiscard]] double bytes_ratio(GroupId id);
  [[nodiscard]] LinkUse use(LinkId id);
  // The same at `time`, from now() to next_event(), for observers: does not change the state, not even its rounding.
  // Call next_event() first.
  [[nodiscard]] double bytes_ratio_at(GroupId id, Nanos time) const;
  [[nodiscard]] double wire_bytes_at(LinkId id, Nanos time) const;
  /// Bytes of the current send() that have left the sender.
  [[nodiscard]] double sent_at(FlowId id, Nanos time) const;
  /// The group's current gain.
  [[nodiscard]] double gain(GroupId id) const { return groups_[id].gain; }
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
    // Maximum total rate of its flows in bits per second; an integer, so that sums do not drift.
    std::int64_t demand = 0;
    std::vector<Member> members;
    bool tight = false;      // demand exceeded the rate when rates were last computed
    bool contended = false;  // tight, and with flows of several groups
    std::uint64_t visit = 0;
    // Used while rates are computed:
    double left = 0;
    double weight = 0;
    std::size_t unfrozen = 0;
    LinkUse use;
    Nanos contended_since;
    fabric::UsageMeter* meter = nullptr;
  };
  struct PathHop {
    LinkId link = 0;
    std::uint32_t place = 0;  // index among the link's members
    double cost = 1;
    std::int64_t demand = 0;
    double metered = 0;  // fraction of a byte not yet reported to the meter
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
    std::uint32_t place = 0;  // index among the group's senders
    double connections = 1;
    double weight = 1;
    double most = 0;  // maximum rate of its path in application bytes per nanosecond, like `rate`
    double rate = 0;
    double left = 0;  // unsent bytes of the first part
    Nanos settled;    // time at which `left` was computed
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
  void set_max(Flow& flow);
  void enter(FlowId id);
  void leave(FlowId id);
  void settle(Flow& flow);
  void tell_meter(const Link& link, const Flow& flow, PathHop& hop, double wire_bytes) const;
  void settle(Group& group);
  [[nodiscard]] static double unsettled_at(const Flow& flow, Nanos time);
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
  EventQueue events_;  // flows, then groups from EventQueue::kSecond on
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<Group> groups_;
  std::vector<FlowId> free_flows_;
  std::vector<GroupId> free_groups_;
  std::vector<Finished> finished_;
  Counters counters_;
  // Changes since rates were last computed.
  std::vector<LinkId> changed_links_;
  std::vector<FlowId> changed_flows_;
  // Used while rates are computed.
  std::uint64_t visit_ = 0;
  std::vector<FlowId> component_;
  std::vector<LinkId> component_links_;
  std::vector<GroupId> component_groups_;
  std::vector<double> rates_before_;
  std::vector<Level> heap_;
};

}  // namespace mltcp::sim
