// The networks of soak tests: a few hosts that reach each other, one network a round, in virtual or in real time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/lab/experiment/soak/soak.h"
#include "mltcp/lab/experiment/traffic/traffic.h"

namespace mltcp::experiment {

class SoakNetwork {
 public:
  virtual ~SoakNetwork() = default;

  [[nodiscard]] virtual std::vector<Traffic::Place> places() = 0;
  /// Has all hosts of `traffic` driven, until `stop`; it is asked often.
  virtual void run(Traffic& traffic, const std::function<bool()>& stop) = 0;
  /// Since the network was made.
  [[nodiscard]] virtual Nanos now() const = 0;
  /// What would keep the hosts from hearing each other, "cause; cure"; empty: nothing that is known.
  [[nodiscard]] virtual std::string why_silent() const { return {}; }
};

/// Makes a network for each round: of hosts, rates and queues at random, or always of the ports that there are.
class SoakNetworks {
 public:
  virtual ~SoakNetworks() = default;
  virtual std::unique_ptr<SoakNetwork> make(Random& random) = 0;
  [[nodiscard]] virtual bool real_time() const = 0;
  [[nodiscard]] virtual bool two_sides() const { return false; }
};

// Throw InputError for what can't be, RunError if this build, or the machine, has no such datapath.
std::unique_ptr<SoakNetworks> make_sim_networks();
std::unique_ptr<SoakNetworks> make_ring_networks(const std::string& cores);
std::unique_ptr<SoakNetworks> make_udp_networks();
std::unique_ptr<SoakNetworks> make_port_networks(const std::vector<SoakPort>& ports);

}  // namespace mltcp::experiment
