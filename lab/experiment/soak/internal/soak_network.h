// The networks of soak tests: a few connected hosts, one network per round, in virtual or real time.
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
  /// Drives all hosts of `traffic` until `stop` returns true. Calls `stop` often.
  virtual void run(Traffic& traffic, const std::function<bool()>& stop) = 0;
  /// Returns the time since the network was made.
  [[nodiscard]] virtual Nanos now() const = 0;
  /// Returns why the hosts may not receive each other's packets, "cause; remedy", or an empty text if no reason is
  /// known.
  [[nodiscard]] virtual std::string why_silent() const { return {}; }
};

/// Makes a network for each round, with random hosts, rates and queues, or always with the given ports.
class SoakNetworks {
 public:
  virtual ~SoakNetworks() = default;
  virtual std::unique_ptr<SoakNetwork> make(Random& random) = 0;
  [[nodiscard]] virtual bool real_time() const = 0;
  [[nodiscard]] virtual bool two_sides() const { return false; }
};

// These functions throw InputError for impossible settings, RunError if this build or machine does not have the
// datapath.
std::unique_ptr<SoakNetworks> make_sim_networks();
std::unique_ptr<SoakNetworks> make_ring_networks(const std::string& cores);
std::unique_ptr<SoakNetworks> make_udp_networks();
std::unique_ptr<SoakNetworks> make_port_networks(const std::vector<SoakPort>& ports);

}  // namespace mltcp::experiment
