// What the coordinator of an experiment and the processes on its hosts say to each other: JSON objects with a "type",
// over a MessageStream. Structs travel by their lists of fields (base/fields.h). Not installed.
//
//   host:         join {version, host?, device, address}     its port is open; then, when it hears, ready {mtu}
//   coordinator:  refused {message} | welcome {host, ranks}
//   coordinator:  alive                                      every few seconds, so that its silence tells
//   coordinator:  ping {id}                                  host: pong {id, time}, at once
//   coordinator:  program {run, job, rank, ...}, of each rank there of a job with programs; before setup
//   coordinator:  setup {run, policy, mltcp, jobs, parameters}  host: progress, five times a second and when it changes
//   coordinator:  start {at: [..], series?} | plan {job, serial, plan | null} | collect
//   host:         result {run, job, rank, ...}, one for each of its ranks; after collect
//   host:         link {run, since, lasted, why}             its port has no link (lasted: null), or has one again
//   coordinator:  stop                                       host: stopped {longest_gap, stalled, losses}; where series
//                                                            were asked for, before: rows {..} and series {..}, the
//                                                            columns of its connections, one after the other, in pieces
//   coordinator:  end {failed, message}                      host: failed {message}, at any time
//
// Times are nanoseconds of the host's clock.
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
/// Of a message from the coordinator.
inline constexpr std::size_t kLongest = std::size_t{128} << 20U;
/// Of any: lists of a million iterations, 16 bytes a value as it is kept, and no deeper than phases of jobs.
inline constexpr JsonLimits kLimits{.depth = 16, .values = 8'000'000};

/// A job of a run, for the hosts of its ranks. The gain follows from policy and MltcpSettings.
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
  bool series = false;  ///< is recorded; "start" says how
  std::vector<JobSetup> jobs;
};

Json to_json(const RunSetup& setup);
/// Throws Json::exception or InputError for what is no set-up, and RunError if a job's congestion control is not known
/// here; augmentations are made. Programs of jobs have to be added (JobSetup::programmed).
RunSetup setup_from(const Json& json);

Json to_json(const RankResult& result);
/// What a rank can have done, by its host's clock.
struct RankLimits {
  std::size_t iterations = 0;
  Bytes bytes_per_iteration = 0;
  Nanos from;   ///< when it was told to start
  Nanos until;  ///< now, or a little later: clocks are only known so well
};
/// Throws Json::exception or InputError, for what can't have been, too.
RankResult result_from(const Json& json, const RankLimits& limits);

/// Of series, for each connection: what the least memory of a recorder has, and more than any file has.
inline constexpr std::size_t kMaxSeriesRows = std::size_t{1} << 24U;

/// Has hosts record series.
struct SeriesOrder {
  Nanos epoch;  ///< of the host's clock: time 0
  Nanos interval;
  std::size_t rows = 0;  ///< of each connection, at most, but for one at the end
};
Json to_json(const SeriesOrder& order);
SeriesOrder series_order_from(const Json& json);

/// A piece of a connection's series has so many rows at most.
inline constexpr std::size_t kSeriesPiece = 1024;

/// Times of all rows of a host, and how many connections follow.
Json rows_to_json(const RunSeries& series);
/// What the series of a host can have.
struct SeriesLimits {
  std::size_t connections = 0;
  Nanos last;  ///< how long the run has lasted, or a little longer: clocks are only known so well
};
/// Gives `series` its times, and room for connections, of which the names are still unknown. Throws Json::exception or
/// InputError for more than `order` and `limits` allow, like the next.
void rows_from(const Json& json, const SeriesOrder& order, const SeriesLimits& limits, RunSeries& series);
/// Rows [first, first + kSeriesPiece) of a connection, or up to the end.
Json piece_to_json(const RunSeries& series, std::size_t connection, std::size_t first);
/// Puts it into `series`, whose rows before have come. Returns how many rows it has. Throws for values that can't be,
/// and for totals that fall.
std::size_t piece_from(const Json& json, std::size_t connection, std::size_t first, RunSeries& series);

/// The longest message of a host with so many ranks that records so many iterations, and series or none.
std::size_t longest_of_host(std::size_t iterations, std::size_t ranks, bool series);

/// The field `key`, words for people: one line, its end left out where it is long. Throws Json::exception.
std::string words_from(const Json& json, const char* key);

/// The field `key`: a time of a host's clock. Throws Json::exception or InputError, like the next.
Nanos time_from(const Json& json, const char* key);
PlanState plan_state_from(const Json& json, const char* key);

Json to_json(const HostLosses& losses);
/// Their host is the reader's to know. Throws Json::exception or InputError.
HostLosses losses_from(const Json& json);

Json to_json(const PhasePlan& plan);
PhasePlan plan_from(const Json& json);

std::string to_hex(const Address& address);
Address address_from(const std::string& hex);

/// The next message, if there is one: an object with a type. Throws StreamError, for other text too.
std::optional<Json> receive(MessageStream& stream);
/// What a message says. Throws StreamError likewise.
Json message_from(const std::string& text);
inline void send(MessageStream& stream, const Json& message) {
  stream.send(message.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace mltcp::experiment::protocol
