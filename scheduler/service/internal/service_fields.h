// Lists the fields of the structs of the service (see base/fields.h) with their names in the HTTP interface and in the
// journal. This header is not installed.
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/base/json/in_json.h"
#include "mltcp/scheduler/service/journal.h"
#include "mltcp/scheduler/service/scheduler_service.h"

namespace mltcp::scheduler {

constexpr auto fields_of(const Burst* /*type*/) {
  using T = Burst;
  return list_of<T>(field("from_ns", &T::from), field("to_ns", &T::to), field("rate_bps", &T::rate));
}

constexpr auto fields_of(const Demand* /*type*/) {
  using T = Demand;
  return list_of<T>(field("period_ns", &T::period), field("bursts", &T::bursts));
}

}  // namespace mltcp::scheduler

namespace mltcp::service {

constexpr auto fields_of(const JobRequest* /*type*/) {
  using T = JobRequest;
  return list_of<T>(field("id", &T::id), field("name", &T::name), field("workers", &T::workers),
                    field("flows", &T::flows), field("demand", &T::demand, kLater), left_out(&T::allowed_hosts),
                    left_out(&T::max_per_host));
}

constexpr auto fields_of(const JobPlan* /*type*/) {
  using T = JobPlan;
  return list_of<T>(field("id", &T::id), field("number", &T::number), field("hosts", &T::hosts),
                    field("slots", &T::slots), field("slot_unix_ns", &T::slot_unix_ns),
                    field("slot_period_ns", &T::slot_period), field("time_shift_ns", &T::time_shift),
                    field("first_send_ns", &T::first_send), field("score", &T::score), field("revision", &T::revision),
                    field("reason", &T::reason, WrittenUnless{&T::slots}));
}

constexpr auto fields_of(const RunningJob* /*type*/) {
  using T = RunningJob;
  return list_of<T>(field("id", &T::request, Spread()), field("plan", &T::plan));
}

constexpr auto fields_of(const Arrival* /*type*/) {
  using T = Arrival;
  return list_of<T>(field("plan", &T::plan), field("moves", &T::moves), left_out(&T::known));
}

constexpr auto fields_of(const RankedPlacement::Worst* /*type*/) {
  using T = RankedPlacement::Worst;
  return list_of<T>(field("name", &T::name), field("score", &T::score));
}

constexpr auto fields_of(const RankedPlacement* /*type*/) {
  using T = RankedPlacement;
  return list_of<T>(field("hosts", &T::hosts), field("kind", &T::kind), field("score", &T::score),
                    field("upper_bound", &T::upper_bound), field("optimal", &T::optimal), field("excess", &T::excess),
                    field("stretch", &T::stretch), field("own_score", &T::own_score),
                    field("time_shift_ns", &T::time_shift), field("slot_period_ns", &T::slot_period),
                    field("moves", &T::moves), field("worst_link", &T::worst_link, kIfSet));
}

constexpr auto fields_of(const StoredJob* /*type*/) {
  using T = StoredJob;
  return list_of<T>(field("id", &T::request, Spread()), field("hosts", &T::hosts), field("number", &T::number),
                    field("slot_period_ns", &T::slot_period), field("time_shift_ns", &T::time_shift),
                    field("revision", &T::revision), field("slots", &T::slots, kIfSet),
                    field("reason", &T::reason, kIfSet));
}

constexpr auto fields_of(const ServiceState* /*type*/) {
  using T = ServiceState;
  return list_of<T>(field("epoch_unix_ns", &T::epoch_unix_ns), field("revision", &T::revision),
                    field("last_number", &T::last_number), left_out(&T::jobs));
}

constexpr auto fields_of(const JournalEvent::Change* /*type*/) {
  using T = JournalEvent::Change;
  return list_of<T>(field("id", &T::id), field("slot_period_ns", &T::slot_period),
                    field("time_shift_ns", &T::time_shift), field("slots", &T::slots, kIfSet),
                    field("reason", &T::reason, kIfSet));
}

constexpr auto fields_of(const JournalEvent* /*type*/) {
  using T = JournalEvent;
  return list_of<T>(field("revision", &T::revision), field("arrived", &T::arrived), field("departed", &T::departed),
                    field("changed", &T::changed));
}

}  // namespace mltcp::service
