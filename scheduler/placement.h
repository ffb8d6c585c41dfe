// Where the workers of a job could run: free slots of hosts, and a generator of candidates for Cluster::rank().
//
// Three ways to choose hosts. Locality: the fewest racks, and among those that hold all workers the fullest (best fit,
// Johnson 1973, which leaves large holes for large jobs). Compatible neighbours: racks in the order of the least pair
// score between the new job and those jobs whose traffic already leaves the rack. Random: from the seed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "mltcp/scheduler/cluster.h"

namespace mltcp::scheduler {

/// Which slots (GPUs, one worker each) of the hosts are taken.
class Occupancy {
 public:
  /// With `share_hosts` several jobs may have workers on one host. Throws InputError for no hosts or no slots.
  Occupancy(std::uint32_t hosts, std::uint32_t slots_per_host, bool share_hosts = true);

  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(used_.size()); }
  /// Slots of a host that a new job may take: none where a job runs on a host that isn't to be shared.
  [[nodiscard]] std::uint32_t free(Topology::Host host) const {
    return !share_hosts_ && used_[host] > 0 ? 0 : slots_per_host_ - used_[host];
  }
  [[nodiscard]] std::uint64_t free() const;  ///< of all hosts

  /// `workers`: the host of each. Throws InputError for an unknown host, a job that has slots already, no workers, or
  /// more workers on a host than it has room for, and then nothing has changed.
  void take(const std::string& job, std::span<const Topology::Host> workers);
  /// Throws InputError if the job has no slots.
  void release(const std::string& job);

 private:
  std::uint32_t slots_per_host_;
  bool share_hosts_;
  std::vector<std::uint32_t> used_;  ///< by host
  std::map<std::string, std::vector<Topology::Host>, std::less<>> jobs_;
};

enum class PlacementKind { locality, compatible, random };

/// Hosts for the workers of a job, in the order of its ring: rack by rack, host by host.
struct WorkerPlacement {
  PlacementKind kind = PlacementKind::locality;
  std::vector<Topology::Host> workers;
};

struct GeneratorOptions {
  std::uint32_t candidates = 10;  ///< at most so many, 1 to 1000000
  std::uint64_t seed = 1;         ///< of the random ones
  bool locality = true;           ///< which kinds, one at least
  bool compatible = true;
  bool random = true;
};

/// Distinct placements of a job with so many workers: the best by locality first, then the kinds in turn. Fewer than
/// asked for where there are no more. Throws InputError for no workers or more than there are free slots.
std::vector<WorkerPlacement> generate_placements(Cluster& cluster, const Occupancy& occupancy, const Demand& demand,
                                                 std::uint32_t workers, const GeneratorOptions& options = {});

}  // namespace mltcp::scheduler
