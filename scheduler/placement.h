// Places the workers of a job: tracks the free slots of hosts, and generates candidates for Cluster::rank().
//
// There are three kinds of placements (PlacementKind). Kind `locality` uses the fewest racks. Among racks that can hold
// all workers, it uses the fullest one (best fit, Johnson 1973), which leaves large gaps for large jobs. Kind
// `compatible` sorts the racks in descending order of the minimum pair score between the new job and the jobs whose
// traffic leaves the rack. Kind `random` chooses hosts by a seed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "mltcp/scheduler/cluster.h"

namespace mltcp::scheduler {

/// Tracks which worker slots (GPUs) of the hosts are in use.
class Occupancy {
 public:
  /// If `share_hosts` is true, several jobs may have workers on one host. Throws InputError if there are 0 hosts or 0
  /// slots.
  Occupancy(std::uint32_t hosts, std::uint32_t slots_per_host, bool share_hosts = true);

  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(used_.size()); }
  /// Returns the number of slots of `host` that a new job can use. The number is 0 if hosts are not shared and a job
  /// runs on `host`.
  [[nodiscard]] std::uint32_t free(Topology::Host host) const {
    return !share_hosts_ && used_[host] > 0 ? 0 : slots_per_host_ - used_[host];
  }
  [[nodiscard]] std::uint64_t free() const;  ///< returns the number of free slots on all hosts
  /// Returns how many workers can be placed if each worker needs `slots` slots and no two workers share a host.
  [[nodiscard]] std::uint32_t free_places(std::uint32_t slots) const;

  /// Allocates one slot for each worker of `job`. `workers` contains the host of each worker. Throws InputError if a
  /// host is unknown or has too few free slots, if the job already has slots, or if there are no workers; then nothing
  /// has changed.
  void take(const std::string& job, std::span<const Topology::Host> workers);
  /// Frees the slots of `job`. Throws InputError if the job has no slots.
  void release(const std::string& job);

 private:
  std::uint32_t slots_per_host_;
  bool share_hosts_;
  std::vector<std::uint32_t> used_;  ///< number of used slots of each host
  std::map<std::string, std::vector<Topology::Host>, std::less<>> jobs_;
};

enum class PlacementKind { locality, compatible, random };

/// The hosts of the workers of a job, in the order of its ring. Workers in one rack, and on one host, are adjacent.
struct WorkerPlacement {
  PlacementKind kind = PlacementKind::locality;
  std::vector<Topology::Host> workers;
};

struct GeneratorOptions {
  std::uint32_t candidates = 10;  ///< maximum number of placements, 1 to 1000000
  std::uint64_t seed = 1;         ///< seed of the random placements
  // The kinds of placements to generate; at least one must be true.
  bool locality = true;
  bool compatible = true;
  bool random = true;
  /// Number of slots of each worker. If it is 0, a worker needs one slot, and a host may have several workers of the
  /// job. If it is above 0, no two workers of the job share a host, and the fullest hosts of a rack are used first.
  std::uint32_t slots_per_worker = 0;
};

/// Returns distinct placements of a job with `workers` workers: first the best placement by locality, then placements
/// of the requested kinds in turn. Returns fewer than options.candidates if it finds no more. Throws InputError if
/// `workers` is 0, or if the workers do not fit on the free slots.
std::vector<WorkerPlacement> generate_placements(Cluster& cluster, const Occupancy& occupancy, const Demand& demand,
                                                 std::uint32_t workers, const GeneratorOptions& options = {});

}  // namespace mltcp::scheduler
