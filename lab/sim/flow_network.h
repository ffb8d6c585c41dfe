// A flow-level network in virtual time: flows share links like fluids, without packets. At every moment each flow has
// its weighted max-min fair rate, as if congestion control converged instantly (Bertsekas and Gallager, "Data
// Networks", section 6.5.2; with weights: Radunovic and Le Boudec, "A unified framework for max-min and min-max
// fairness with applications", IEEE/ACM Transactions on Networking 15(5), 2007). The cost is one event for each start,
// end and weight change of a flow, instead of several events for each packet.
//
// Weights. The weight of a flow is its number of connections times the gain of its group. So flows share a bottleneck
// in the ratio of their gains, as in cc/fluid_model.h. A group is a set of flows, e.g. all flows of a job in one shard.
// The flows of a group share one gain and one progress within the iteration. If the gain depends on the progress x, the
// range of x from 0 to 1 is divided into `weight_steps` equal steps. In each step the gain is constant: F, the
// aggressiveness function, at the middle of the step. The error decreases with the square of the number of steps.
//
// Rates. A link can limit flows only if its flows together could exceed its capacity; it is then called tight. The
// network applies all changes at one instant together. Then it recomputes the rates of the changed flows and of all
// flows that tight links connect with the changes. It uses progressive filling, in order of increasing rate per weight,
// with a heap.
//
// Order. Simultaneous events are processed by flow number, then by group number. Floating-point operations have a fixed
// order, so equal calls give equal results. A flow ends at the first whole nanosecond at which all its bytes have been
// sent. Rounding neither stalls flows nor changes their order.
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
    std::uint32_t weight_steps = 64;  ///< number of steps of progress, each with a constant gain; 1 to 65536
  };
  struct Hop {
    LinkId link = 0;
    /// Wire bytes per application byte on this link, headers and acknowledgements included; above 0.
    double wire_bytes_per_byte = 1;
  };
  /// A completed send(). Its last byte left the sender at now().
  struct Finished {
    FlowId flow = 0;
    std::uint64_t tag = 0;
    Bytes bytes = 0;
  };
  /// The use of a link until now(). A link is contended while it has flows of several groups and its flows together
  /// could exceed its capacity.
  struct LinkUse {
    double wire_bytes = 0;
    double contended_wire_bytes = 0;  ///< the part of wire_bytes that was sent while the link was contended
    Nanos contended;                  ///< total time for which the link was contended
  };
  struct Counters {
    std::uint64_t events = 0;           ///< number of starts, ends and weight changes of flows
    std::uint64_t allocations = 0;      ///< number of rate computations
    std::uint64_t allocated_flows = 0;  ///< total number of flows over all rate computations
  };

  /// Throws InputError if `options` are out of range.
  FlowNetwork() : FlowNetwork(Options{}) {}
  explicit FlowNetwork(const Options& options);

  // Set-up. These functions may be called at any time. They throw InputError for invalid arguments. New groups and
  // flows reuse the numbers of removed ones.

  /// Adds a link of `rate` wire bits per second, above 0.
  LinkId add_link(Rate rate);
  /// Changes the rate of a link for bytes that are sent from now() on.
  void set_rate(LinkId id, Rate rate);
  /// Adds a group. Meters count its bytes under number `job`. `augmentation` determines its gain; the tracker of
  /// `augmentation` is ignored.
  GroupId add_group(std::uint32_t job, const cc::Augmentation& augmentation);
  /// Adds a flow that represents one or more connections of the group on one path. The path consists of one or more
  /// distinct links.
  FlowId add_flow(GroupId group, std::span<const Hop> path, std::uint32_t connections = 1);
  /// Removes the group and its flows, and discards their unsent bytes.
  void remove_group(GroupId id);
  /// From now() on, counts the bytes of each job over `link` in `meter`. The caller owns the meter, which must stay
  /// valid while the network uses it.
  void meter(LinkId link, fabric::UsageMeter* meter);

  // Traffic. These functions take effect at now().

  /// Begins the group's next iteration, in which the group's flows together send `bytes`. `bytes` is 0 if this number
  /// is unknown. The progress is then unknown, too, and a gain that depends on progress is 1.
  void begin_iteration(GroupId id, Bytes bytes);
  /// Appends `bytes`, above 0, to the bytes that the flow has to send. An idle flow starts to send at `not_before` or,
  /// if that has passed, at now().
  void send(FlowId id, Bytes bytes, std::uint64_t tag, Nanos not_before = Nanos(0));
  /// Returns whether the flow has nothing more to send.
  [[nodiscard]] bool idle(FlowId flow) const { return flows_[flow].queue.empty(); }

  // Time.

  [[nodiscard]] Nanos now() const { return now_; }
  /// Returns the time of the next event; never() if there is none.
  [[nodiscard]] Nanos next_event();
  /// Advances to `time`, which is from now() to next_event(), and processes the events at `time`.
  void advance(Nanos time);
  /// Returns the sends that the last advance() completed. Valid until the next advance().
  [[nodiscard]] std::span<const Finished> finished() const { return finished_; }

  // State.

  /// Returns the current rate in application bytes per second; 0 if the flow is not sending.
  [[nodiscard]] double bytes_per_second(FlowId flow);
  /// Returns the progress of the group's latest iteration, from 0 to 1; 0 if the size of the iteration is unknown.
  [[nodiscard]] double bytes_ratio(GroupId id);
  [[nodiscard]] LinkUse use(LinkId id);
  // Values at `time`, which is from now() to next_event(), for observers. These functions do not change the state. So
  // an observer changes no result, not even by rounding. Call next_event() first.
  [[nodiscard]] double bytes_ratio_at(GroupId id, Nanos time) const;
  [[nodiscard]] double wire_bytes_at(LinkId id, Nanos time) const;
  /// Returns how many bytes of the flow's current send() have left the sender at `time`.
  [[nodiscard]] double sent_at(FlowId id, Nanos time) const;
  /// Returns the group's current gain.
  [[nodiscard]] double gain(GroupId id) const { return groups_[id].gain; }
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::size_t links() const { return links_.size(); }

 private:
  struct Member {  // a flow that uses a link
    FlowId flow = 0;
    std::uint32_t hop = 0;
  };
  struct Link {
    double capacity = 0;  // capacity in wire bytes per nanosecond
    std::int64_t rate = 0;
    // Sum of the maximum rates of the link's flows in bits per second. It is an integer, so that additions and
    // subtractions cause no rounding errors.
    std::int64_t demand = 0;
    std::vector<Member> members;
    bool tight = false;      // the demand exceeded the link's rate when rates were last computed
    bool contended = false;  // the link is tight, and flows of several groups use it
    std::uint64_t visit = 0;
    // The next three members hold values only during a computation of rates.
    double left = 0;
    double weight = 0;
    std::size_t unfrozen = 0;
    LinkUse use;
    Nanos contended_since;
    fabric::UsageMeter* meter = nullptr;
  };
  struct PathHop {
    LinkId link = 0;
    std::uint32_t place = 0;  // index of the flow among the link's members
    double cost = 1;
    std::int64_t demand = 0;
    double metered = 0;  // fraction of a wire byte that was sent but is not yet counted in the link's meter
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
    std::uint32_t place = 0;  // index of the flow among the group's senders
    double connections = 1;
    double weight = 1;
    double max = 0;  // maximum rate of the path in application bytes per nanosecond
    double rate = 0;
    double left = 0;  // unsent bytes of the first element of `queue`
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
    double level = 0;  // rate divided by weight
    std::uint32_t source = 0;
  };

  void check_link(LinkId link) const;
  void set_max(Flow& flow);
  void enter(FlowId id);
  void leave(FlowId id);
  void settle(Flow& flow);
  void update_meter(const Link& link, const Flow& flow, PathHop& hop, double wire_bytes) const;
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
  EventQueue events_;  // event sources: flows by number, groups from EventQueue::kSecond on
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<Group> groups_;
  std::vector<FlowId> free_flows_;
  std::vector<GroupId> free_groups_;
  std::vector<Finished> finished_;
  Counters counters_;
  // Links and flows that have changed since rates were last computed.
  std::vector<LinkId> changed_links_;
  std::vector<FlowId> changed_flows_;
  // The members below are used only while rates are computed.
  std::uint64_t visit_ = 0;
  std::vector<FlowId> component_;
  std::vector<LinkId> component_links_;
  std::vector<GroupId> component_groups_;
  std::vector<double> rates_before_;
  std::vector<Level> heap_;
};

}  // namespace mltcp::sim
