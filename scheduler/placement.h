// Placement of a job's workers: free slots of hosts, and a generator of candidates for Cluster::rank().
//
// There are three ways to choose hosts. Locality: the fewest racks; among racks that can hold all workers, the fullest
// (best fit, Johnson 1973, which keeps large gaps for large jobs). Compatible neighbours: racks in descending order of
// the minimum pair score between the new job and the jobs whose traffic already leaves the rack. Random: by the seed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "mltcp/scheduler/cluster.h"

namespace mltcp::scheduler {

/// Keeps account of the hosts' worker slots (GPUs) that are in use.
class Occupancy {
 public:
  /// With `share_hosts`, several jobs may have workers on one host. Throws InputError for 0 hosts or 0 slots.
  Occupancy(std::uint32_t hosts, std::uint32_t slots_per_host, bool share_hosts = true);

  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(used_.size()); }
  /// Slots of a host available to a new job: 0 if hosts are not shared and a job runs there.
  [[nodiscard]] std::uint32_t free(Topology::Host host) const {
    return !share_hosts_ && used_[host] > 0 ? 0 : slots_per_host_ - used_[host];
  }
  [[nodiscard]] std::uint64_t free() const;  ///< on all hosts
  /// Number of workers that find room, if each needs `slots` slots and a host of its own.
  [[nodiscard]] std::uint32_t rooms(std::uint32_t slots) const;

  /// Allocates slots; `workers` is the host of each. Throws InputError for an unknown host, a job that already has
  /// slots, no workers, or more workers than free slots on a host; then nothing has changed.
  void take(const std::string& job, std::span<const Topology::Host> workers);
  /// Frees the job's slots. Throws InputError if it has none.
  void release(const std::string& job);

 private:
  std::uint32_t slots_per_host_;
  bool share_hosts_;
  std::vector<std::uint32_t> used_;  ///< by host
  std::map<std::string, std::vector<Topology::Host>, std::less<>> jobs_;
};

enum class PlacementKind { locality, compatible, random };

/// Hosts of a job's workers in the order of its ring: rack by rack, host by host.
struct WorkerPlacement {
  PlacementKind kind = PlacementKind::locality;
  std::vector<Topology::Host> workers;
};

struct GeneratorOptions {
  std::uint32_t candidates = 10;  ///< maximum number of placements, 1 to 1000000
  std::uint64_t seed = 1;         ///< seed of the random placements
  bool locality = true;           ///< this and the next two: the kinds to generate, at least one
  bool compatible = true;
  bool random = true;
  /// 0: a worker takes one slot, and a host may hold several workers of the job. Above 0: a worker takes this many
  /// slots of a host that holds no other worker of the job; the fullest hosts of a rack come first.
  std::uint32_t slots_per_worker = 0;
};

/// Distinct placements of a job with `workers` workers: first the best by locality, then the kinds in turn. There are
/// fewer than requested if no more are found. Throws InputError for no workers, or for more than there is room for.
std::vector<WorkerPlacement> generate_placements(Cluster& cluster, const Occupancy& occupancy, const Demand& demand,
                                                 std::uint32_t workers, const GeneratorOptions& options = {});

}  // namespace mltcp::scheduler
