// The messages between the coordinator of an experiment and the processes on its hosts. A message is a JSON object with
// a "type" and is sent over a MessageStream. Structs are converted with their lists of fields (base/fields.h). Not
// installed.
//
// Messages from the coordinator:
//
//   refused {message}                    the host cannot join
//   welcome {version, host, ranks}       the host has joined
//   ping {id}                            requests the host's time
//   program {run, job, rank, ...}        for each rank on the host, if its job has programs
//   setup {run, policy, function, scale_decrease, learn_iterations, series, jobs, parameters}
//   start {at: [..], series?}            start time of each job
//   plan {job, serial, plan | null}      sets or removes a job's plan, at any time of a run
//   collect                              requests results
//   stop                                 ends the run
//   alive                                every few seconds, so that hosts detect a failure of the coordinator
//   end {failed, message}                ends the experiment, at any time
//
// Messages from a host:
//
//   join {version, host?, device, address}          after the host has opened its port
//   ready {mtu}                                     after welcome
//   pong {id, time}                                 the reply to ping
//   progress {run, ranks}                           five times a second, and when a rank is connected or done
//   link {run, since, lasted, why}                  the port has lost its link (lasted: null), or the link is back
//   result {run, job, rank, ...}                    for each rank on the host, after collect
//   rows {..}, series {..}                          after stop, if series were requested: the columns of
//                                                   each connection in turn, in pieces
//   stopped {longest_gap, stalled, losses}          the reply to stop, after all series
//   failed {message}                                at any time
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

inline constexpr int kVersion = 15;
/// Maximum length of a message in bytes.
inline constexpr std::size_t kLongest = std::size_t{128} << 20U;
/// Limits of any message. They suffice for phases and for lists with a million iterations. A JSON value needs 16 bytes
/// of memory.
inline constexpr JsonLimits kLimits{.depth = 16, .values = 8'000'000};

/// A job of a run, as sent to the hosts of its ranks. Each host derives the augmentation from the policy and
/// MltcpSettings.
struct JobSetup {
  JobSpec spec;
  std::vector<Address> addresses;    ///< address of each rank
  std::vector<std::uint32_t> ports;  ///< shard of each rank on its host
  std::vector<std::uint32_t> hosts;  ///< number of the host of each rank
  bool programmed = false;           ///< whether the coordinator sends the programs of the ranks (program_message.h)
  Nanos lead;                        ///< time_to_first_send() of the job; set only if `programmed`
};
constexpr auto fields_of(const JobSetup* /*type*/) {
  return list_of<JobSetup>(field("spec", &JobSetup::spec), field("addresses", &JobSetup::addresses),
                           field("ports", &JobSetup::ports), field("hosts", &JobSetup::hosts),
                           field("programmed", &JobSetup::programmed), field("lead", &JobSetup::lead));
}
struct RunSetup {
  std::string policy;
  MltcpSettings mltcp;
  bool series = false;  ///< whether hosts record series, with the settings in the start message
  std::vector<JobSetup> jobs;
};

Json to_json(const RunSetup& setup);
/// Reads a set-up and creates the augmentations of jobs. The caller must add programs (JobSetup::programmed). Throws
/// Json::exception or InputError for an invalid set-up, RunError if this host does not know a job's congestion control.
RunSetup setup_from(const Json& json);

Json to_json(const RankResult& result);
/// Limits of a rank's result. Times are on the clock of the rank's host.
struct RankLimits {
  std::size_t iterations = 0;
  Bytes bytes_per_iteration = 0;
  Nanos from;   ///< start time of the job
  Nanos until;  ///< current time plus the uncertainty of the clock
};
/// Reads a rank's result. Throws Json::exception or InputError if the result is invalid or contains impossible values.
RankResult result_from(const Json& json, const RankLimits& limits);

/// Maximum number of rows of a connection's series. Files of series have fewer.
inline constexpr std::size_t kMaxSeriesRows = std::size_t{1} << 24U;

/// The settings with which hosts record series.
struct SeriesOrder {
  Nanos epoch;  ///< time 0 of the run on the host's clock
  Nanos interval;
  std::size_t rows = 0;  ///< maximum number of rows per connection, not counting the last row
};
Json to_json(const SeriesOrder& order);
SeriesOrder series_order_from(const Json& json);

/// Maximum number of rows in a piece of a connection's series.
inline constexpr std::size_t kSeriesPiece = 1024;

/// Returns a message with the times of all rows of a host's series, and the number of connections.
Json rows_to_json(const RunSeries& series);
/// Limits of a host's series.
struct SeriesLimits {
  std::size_t connections = 0;
  Nanos last;  ///< maximum time of a row: current time since the epoch plus the uncertainty of the clock
};
/// Sets the times of `series` and allocates its connections. The names of the connections follow in the pieces. Throws
/// Json::exception or InputError if the message is invalid or exceeds `order` or `limits`.
void rows_from(const Json& json, const SeriesOrder& order, const SeriesLimits& limits, RunSeries& series);
/// Returns a message with rows [first, first + kSeriesPiece) of a connection, or fewer at the end of the series.
Json piece_to_json(const RunSeries& series, std::size_t connection, std::size_t first);
/// Adds a piece to `series`, which must already contain the connection's earlier rows. Returns the number of rows in
/// the piece. Throws Json::exception or InputError if the piece is invalid, contains impossible values, or contains
/// totals that decrease.
std::size_t piece_from(const Json& json, std::size_t connection, std::size_t first, RunSeries& series);

/// Returns the maximum length in bytes of a message from a host with `ranks` ranks. `iterations` is the maximum number
/// of iterations of a job. `series` states whether hosts record series.
std::size_t longest_of_host(std::size_t iterations, std::size_t ranks, bool series);

/// Returns the text in field `key` as one line for people, truncated after 2000 bytes. Throws Json::exception.
std::string words_from(const Json& json, const char* key);

/// Returns the time in field `key`, on a host's clock. time_from() and plan_state_from() throw Json::exception or
/// InputError.
Nanos time_from(const Json& json, const char* key);
PlanState plan_state_from(const Json& json, const char* key);

Json to_json(const HostLosses& losses);
/// Reads a host's losses. The caller must set HostLosses::host. Throws Json::exception or InputError.
HostLosses losses_from(const Json& json);

Json to_json(const PhasePlan& plan);
PhasePlan plan_from(const Json& json);

std::string to_hex(const Address& address);
Address address_from(const std::string& hex);

/// Returns the next message, or nullopt if none has arrived. Throws StreamError if the stream fails, or if the message
/// is not an object with a type.
std::optional<Json> receive(MessageStream& stream);
/// Parses the text of a message. Throws StreamError if it is not an object with a type.
Json message_from(const std::string& text);
inline void send(MessageStream& stream, const Json& message) {
  stream.send(message.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace mltcp::experiment::protocol
