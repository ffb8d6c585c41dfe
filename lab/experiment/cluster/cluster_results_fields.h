// The fields of a cluster's results in the file "mltcp.cluster/1", in the file's order (see base/fields.h). The file
// also contains the summaries of schemes, before the runs.
#pragma once

#include <vector>

#include "mltcp/base/fields.h"
#include "mltcp/base/json/in_json.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/provenance_fields.h"
#include "mltcp/lab/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

/// Writes and reads the percentiles 0 to 100 of a list of values instead of the list, which would be too long.
struct InPercentiles {
  [[nodiscard]] static std::vector<double> written(const std::vector<float>& values);
  static void read(const JsonObject& json, const char* key, std::vector<float>& percentiles);
};

constexpr auto fields_of(const ClusterJobResult* /*type*/) {
  using T = ClusterJobResult;
  return list_of<T>(field("number", &T::number), field("type", &T::type), field("workers", &T::workers),
                    field("gpus", &T::gpus, WrittenOnly{}), field("batch", &T::batch, WrittenOnly{}),
                    field("iterations", &T::iterations), field("hosts", &T::hosts, WrittenOnly{}),
                    field("arrival_ns", &T::arrival), field("start_ns", &T::start), field("end_ns", &T::end),
                    field("isolated_ns", &T::isolated), field("mean_ns", &T::mean),
                    field("p50_ns", &T::p50, WrittenOnly{}), field("p99_ns", &T::p99, WrittenOnly{}),
                    field("marked_packets", &T::marked_packets, WrittenOnly{}),
                    field("retransmitted_packets", &T::retransmitted_packets, WrittenOnly{}),
                    field("corrections", &T::corrections, WrittenOnly{}),
                    field("plan_dropped", &T::plan_dropped, WrittenOnly{}), field("moves", &T::moves, WrittenOnly{}));
}

constexpr auto fields_of(const ClusterRun* /*type*/) {
  using T = ClusterRun;
  return list_of<T>(
      field("scheme", &T::scheme), field("seed", &T::seed), field("makespan_ns", &T::makespan, WrittenOnly{}),
      field("packets", &T::packets, WrittenOnly{}), field("ecn_marked_packets", &T::marked_packets, WrittenOnly{}),
      field("dropped_packets", &T::dropped_packets, WrittenOnly{}), field("contended", &T::contended, WrittenOnly{}),
      field("mean_score", &T::mean_score, WrittenOnly{}), field("competed_links", &T::competed_links, WrittenOnly{}),
      field("busy_hosts", &T::busy_hosts, WrittenOnly{}), field("slowdown_percentiles", &T::slowdowns, InPercentiles{}),
      field("jobs", &T::jobs));
}

constexpr auto fields_of(const ClusterResults::Unfinished* /*type*/) {
  using T = ClusterResults::Unfinished;
  return list_of<T>(field("scheme", &T::scheme), field("seed", &T::seed));
}

constexpr auto fields_of(const ClusterResults* /*type*/) {
  using T = ClusterResults;
  return list_of<T>(field("name", &T::name), field("level", &T::level), field("cc", &T::cc),
                    field("time_scale", &T::time_scale, kMeasure), field("rate_scale", &T::rate_scale, kMeasure),
                    field("hosts", &T::hosts), field("gpus_per_host", &T::gpus_per_host, WrittenOnly{}),
                    field("oversubscription", &T::oversubscription, kMeasure), field("runs", &T::runs, kLater),
                    field("unfinished", &T::unfinished, kIfSet), field("provenance", &T::provenance, kIfSet));
}

constexpr auto fields_of(const SchemeSummary* /*type*/) {
  using T = SchemeSummary;
  return list_of<T>(
      field("scheme", &T::scheme), field("jobs", &T::jobs), field("iterations", &T::iterations),
      field("completion_mean_s", &T::completion_mean, kMeasure),
      field("completion_p95_s", &T::completion_p95, kMeasure), field("completion_p99_s", &T::completion_p99, kMeasure),
      field("running_mean_s", &T::running_mean, WrittenOnly{}), field("slowdown_mean", &T::slowdown_mean, kMeasure),
      field("slowdown_p95", &T::slowdown_p95, kMeasure), field("slowdown_p99", &T::slowdown_p99, kMeasure),
      field("marks_per_iteration", &T::marks_per_iteration, kMeasure), field("contended", &T::contended, kMeasure),
      field("makespan_s", &T::makespan, kMeasure), field("score", &T::score, kMeasure),
      field("competed_links", &T::competed_links, kMeasure), field("busy_hosts", &T::busy_hosts, kMeasure),
      field("moves", &T::moves, kMeasure), field("corrections", &T::corrections, WrittenOnly{}));
}

}  // namespace mltcp::experiment
