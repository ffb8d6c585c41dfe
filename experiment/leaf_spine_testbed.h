// The testbed of a leaf-spine network in virtual time. Each end of a worker's traffic is a port of its host, with a UDP
// port that follows from the job's number: so a job has the same addresses, and its flows take the same paths, whether
// it runs alone or with others.
#pragma once

#include <memory>
#include <span>

#include "mltcp/experiment/testbed.h"

namespace mltcp::experiment {

/// The UDP ports of a job's ends.
constexpr std::uint16_t sender_port(std::uint32_t job) { return static_cast<std::uint16_t>(4793 + 2 * job); }
constexpr std::uint16_t receiver_port(std::uint32_t job) { return static_cast<std::uint16_t>(sender_port(job) + 1); }

/// `usage_bin` as in TestbedFactory::make(). Throws InputError for a configuration that can't be built.
std::unique_ptr<Testbed> make_leaf_spine_testbed(const sim::LeafSpineConfig& config,
                                                 std::span<const Placement> placements, bool virtual_payload,
                                                 Nanos usage_bin);

}  // namespace mltcp::experiment
