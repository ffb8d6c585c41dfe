// The messages between the coordinator of an experiment and the processes on its hosts: JSON objects with a "type",
// over a MessageStream. Structs are converted by their lists of fields (base/fields.h). Not installed.
//
//   host:         join {version, host?, device, address}     its port is open; ready {mtu} after welcome
//   coordinator:  refused {message} | welcome {host, ranks}
//   coordinator:  alive                                      every few seconds, so that hosts detect its failure
//   coordinator:  ping {id}                                  host: pong {id, time}, at once
//   coordinator:  program {run, job, rank, ...}, for each rank on that host of a job with programs; before setup
//   coordinator:  setup {run, policy, mltcp, jobs, parameters}  host: progress, five times a second and when it changes
//   coordinator:  start {at: [..], series?} | plan {job, serial, plan | null} | collect
//   host:         result {run, job, rank, ...}, one for each of its ranks; after collect
//   host:         link {run, since, lasted, why}             its port has no link (lasted: null), or has one again
//   coordinator:  stop                                       host: stopped {longest_gap, stalled, losses}; before it,
//   if
//                                                            series were requested: rows {..} and series {..}, the
//                                                            columns of one connection after the other, in pieces
//   coordinator:  end {failed, message}                      host: failed {message}, at any time
//
// Times are nanoseconds on the host's clock.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mltcp/base/fields.h"
#include "mltcp/base/json.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/lab/experiment/series/series.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment::protocol {

using Json = nlohmann::json;

inline constexpr int kVersion = 11;
/// Maximum length of a message in bytes.
inline constexpr std::size_t kLongest = std::size_t{128} << 20U;
/// Limits of any message: enough for lists of a million iterations and for phases. A value takes 16 bytes of memory.
inline constexpr JsonLimits kLimits{.depth = 16, .values = 8'000'000};

/// A job of a run, for the hosts of its ranks. The augmentation follows from the policy and MltcpSettings.
struct JobSetup {
  JobSpec spec;
  std::vector<Address> addresses;    ///< by rank
  std::vector<std::uint32_t> ports;  ///< by rank: its shard on its host
  std::vector<std::uint32_t> hosts;  ///< by rank
  bool programmed = false;           ///< its ranks' programs are sent (program_message.h)
  Nanos lead;                        ///< programmed: time_to_first_send() of the job
};
constexpr auto fields_of(const JobSetup* /*type*/) {
  return list_of<JobSetup>(field("spec", &JobSetup::spec), field("addresses", &JobSetup::addresses),
                           field("ports", &JobSetup::ports), field("hosts", &JobSetup::hosts),
                           field("programmed", &JobSetup::programmed), field("lead", &JobSetup::lead));
}
struct RunSetup {
  std::string policy;
  MltcpSettings mltcp;
  bool series = false;  ///< series are recorded; the start message has their settings
  std::vector<JobSetup> jobs;
};

Json to_json(const RunSetup& setup);
/// Also creates augmentations; the caller must add programs (JobSetup::programmed). Throws Json::exception or
/// InputError for an invalid set-up, RunError if this host does not know a job's congestion control.
RunSetup setup_from(const Json& json);

Json to_json(const RankResult& result);
/// Limits of a rank's result, on its host's clock.
struct RankLimits {
  std::size_t iterations = 0;
  Bytes bytes_per_iteration = 0;
  Nanos from;   ///< start time of the job
  Nanos until;  ///< now, plus the uncertainty of the clock
};
/// Throws Json::exception or InputError, also for impossible values.
RankResult result_from(const Json& json, const RankLimits& limits);

/// Maximum number of rows of a connection's series; more than any file has.
inline constexpr std::size_t kMaxSeriesRows = std::size_t{1} << 24U;

/// The settings with which hosts record series.
struct SeriesOrder {
  Nanos epoch;  ///< the run's time 0 on the host's clock
  Nanos interval;
  std::size_t rows = 0;  ///< maximum per connection, without the last row
};
Json to_json(const SeriesOrder& order);
SeriesOrder series_order_from(const Json& json);

/// Maximum number of rows in a piece of a connection's series.
inline constexpr std::size_t kSeriesPiece = 1024;

/// The times of all rows of a host, and the number of connections that follow.
Json rows_to_json(const RunSeries& series);
/// Limits of the series of a host.
struct SeriesLimits {
  std::size_t connections = 0;
  Nanos last;  ///< time since the epoch, plus the uncertainty of the clock
};
/// Sets the times of `series` and allocates its connections, whose names are still unknown. Throws Json::exception or
/// InputError, also for values that exceed `order` or `limits`.
void rows_from(const Json& json, const SeriesOrder& order, const SeriesLimits& limits, RunSeries& series);
/// Rows [first, first + kSeriesPiece) of a connection, or up to the last row.
Json piece_to_json(const RunSeries& series, std::size_t connection, std::size_t first);
/// Adds a piece to `series`, which must already contain the connection's earlier rows. Returns the piece's number of
/// rows. Throws Json::exception or InputError, also for impossible values and for totals that decrease.
std::size_t piece_from(const Json& json, std::size_t connection, std::size_t first, RunSeries& series);

/// Maximum length in bytes of a message from a host with `ranks` ranks that records `iterations`, and `series` if true.
std::size_t longest_of_host(std::size_t iterations, std::size_t ranks, bool series);

/// The field `key`, a text for people: one line, truncated after 2000 bytes. Throws Json::exception.
std::string words_from(const Json& json, const char* key);

/// The field `key`: a time on a host's clock. This and the next function throw Json::exception or InputError.
Nanos time_from(const Json& json, const char* key);
PlanState plan_state_from(const Json& json, const char* key);

Json to_json(const HostLosses& losses);
/// The caller must set HostLosses::host. Throws Json::exception or InputError.
HostLosses losses_from(const Json& json);

Json to_json(const PhasePlan& plan);
PhasePlan plan_from(const Json& json);

std::string to_hex(const Address& address);
Address address_from(const std::string& hex);

/// The next message, if one has arrived: an object with a type. Throws StreamError, also for other text.
std::optional<Json> receive(MessageStream& stream);
/// Parses the text of a message. Throws StreamError if it is not an object with a type.
Json message_from(const std::string& text);
inline void send(MessageStream& stream, const Json& message) {
  stream.send(message.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace mltcp::experiment::protocol
