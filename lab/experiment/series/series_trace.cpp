// Series as a trace in Chrome's trace event format, which the Perfetto UI opens: a process for each run, a thread for
// each job with its iterations as slices, and counter tracks. Counters are written only when they change.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string_view>

#include "mltcp/lab/experiment/series/internal/quoted.h"
#include "mltcp/lab/experiment/series/series_fields.h"
#include "mltcp/lab/experiment/series/series_file.h"

namespace mltcp::experiment {
namespace {

double number_of(Nanos value) { return static_cast<double>(value.count); }
double number_of(Rate value) { return static_cast<double>(value.bits_per_second); }
template <typename T>
double number_of(T value) {
  return static_cast<double>(value);
}

class TraceWriter {
 public:
  void meta(std::size_t process, std::size_t thread, std::string_view kind, const std::string& name) {
    event("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{\"name\":{}}}}}", process, thread, kind,
          quoted_in_json(name));
  }
  void slice(std::size_t process, std::size_t thread, std::size_t iteration, Nanos start, Nanos length,
             double slowdown) {
    event(
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"cat\":\"iteration\",\"name\":\"iteration {}\",\"ts\":{},\"dur\":{},"
        "\"args\":{{\"slowdown\":{}}}}}",
        process, thread, iteration, micros(start), micros(length), slowdown);
  }
  /// `name` must be a JSON string.
  void counter(std::size_t process, const std::string& name, Nanos at, std::string_view unit, double value) {
    event("{{\"ph\":\"C\",\"pid\":{},\"name\":{},\"ts\":{},\"args\":{{\"{}\":{}}}}}", process, name, micros(at), unit,
          value);
  }
  [[nodiscard]] std::string take() {
    out_ += "\n]}\n";
    return std::move(out_);
  }
  explicit TraceWriter(const std::string& experiment) {
    out_ += fmt::format(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"experiment\":{}}},\n"
        "\"traceEvents\":[",
        quoted_in_json(experiment));
  }

 private:
  /// Returns whole nanoseconds as microseconds, exactly.
  static std::string micros(Nanos time) { return fmt::format("{}.{:03}", time.count / 1000, time.count % 1000); }
  template <typename... Values>
  void event(fmt::format_string<Values...> format, Values&&... values) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    out_ += fmt::format(format, std::forward<Values>(values)...);
  }
  std::string out_;
  bool first_ = true;
};

/// Writes the counter tracks of a connection or link.
template <typename State>
void write_counters(TraceWriter& trace, std::size_t process, const RunSeries& run, const std::vector<State>& states,
                    std::size_t entities, std::size_t number, const std::string& name) {
  const auto track = [&](const std::string& column, std::string_view unit, const auto& value_at) {
    const std::string track_name = quoted_in_json(name + " " + column);
    double last = -1;
    for (std::size_t row = 0; row < run.times.size(); ++row) {
      const double value = value_at(row);
      // A counter keeps its value until its next event, so unchanged values are not written.
      if (row > 0 && value == last) continue;
      trace.counter(process, track_name, run.times[row], unit, value);
      last = value;
    }
  };
  // A rate covers the time before its row, but readers draw a counter from its row on. So each rate is written at the
  // row before its own.
  track("rate_bps", "bps", [&](std::size_t row) {
    return row + 1 < run.times.size() ? rate_in_row(states, entities, number, run.times, row + 1) : 0;
  });
  for_each_field<State>([&](const auto& field) {
    if (field.about.counter.empty() || (field.about.of_packets && !run.packets)) return;
    track(field.name, field.about.counter,
          [&](std::size_t row) { return number_of(states[row * entities + number].*field.member); });
  });
}

/// Returns a name for each connection: its job, such as "vgg19-a", and what distinguishes the connection from the other
/// connections of the job.
std::vector<std::string> names_of(const std::vector<SeriesConnection>& connections) {
  std::map<std::string_view, std::size_t> of_job;
  for (const SeriesConnection& connection : connections) ++of_job[connection.job];
  std::vector<std::string> names;
  for (const SeriesConnection& connection : connections) {
    std::string name = connection.job;
    if (of_job[connection.job] > 1)
      name += connection.worker == connection.peer
                  ? fmt::format(" {}.{}", connection.worker, connection.flow)
                  : fmt::format(" {} to {}.{}", connection.worker, connection.peer, connection.flow);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::string series_trace(const SeriesFile& series, const Results& results) {
  TraceWriter trace(series.experiment);
  for (std::size_t r = 0; r < series.runs.size(); ++r) {
    const RunSeries& run = series.runs[r];
    const std::size_t process = r + 1;
    trace.meta(process, 0, "process_name", fmt::format("{} ({}, seed {})", run.policy, run.cc, run.seed));
    if (r < results.runs.size()) {
      const std::vector<JobResult>& jobs = results.runs[r].jobs;
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        trace.meta(process, j + 1, "thread_name", jobs[j].name);
        for (std::size_t i = 0; i < jobs[j].iterations.size(); ++i)
          trace.slice(process, j + 1, i, jobs[j].starts[i], jobs[j].iterations[i],
                      jobs[j].isolated.count > 0 ? static_cast<double>(jobs[j].iterations[i].count) /
                                                       static_cast<double>(jobs[j].isolated.count)
                                                 : 0.0);
      }
    }
    const std::vector<std::string> connections = names_of(run.connections);
    for (std::size_t c = 0; c < connections.size(); ++c)
      write_counters(trace, process, run, run.connection_states, connections.size(), c, connections[c]);
    for (std::size_t l = 0; l < run.links.size(); ++l)
      write_counters(trace, process, run, run.link_states, run.links.size(), l, run.links[l].name);
  }
  return trace.take();
}

}  // namespace mltcp::experiment
