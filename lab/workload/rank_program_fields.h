// The fields of communication patterns (see base/fields.h).
#pragma once

#include "mltcp/base/fields.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload {

constexpr auto fields_of(const Pattern::Training* /*type*/) {
  using T = Pattern::Training;
  return list_of<T>(field("tensor", &T::tensor), field("pipeline", &T::pipeline),
                    field("micro_batches", &T::micro_batches), field("layers", &T::layers),
                    field("buckets", &T::buckets), field("overlap", &T::overlap), field("activations", &T::activations),
                    field("experts", &T::experts));
}

constexpr auto fields_of(const Pattern* /*type*/) {
  return list_of<Pattern>(field("kind", &Pattern::kind), field("ranks", &Pattern::ranks),
                          field("algorithm", &Pattern::algorithm), field("size", &Pattern::size),
                          field("chunk", &Pattern::chunk), field("compute", &Pattern::compute),
                          field("servers", &Pattern::servers), field("training", &Pattern::training));
}

/// Each function returns the highest value of its enumeration.
constexpr Pattern::Kind last_of(Pattern::Kind /*type*/) { return Pattern::Kind::training; }
constexpr Algorithm last_of(Algorithm /*type*/) { return Algorithm::halving_doubling; }

}  // namespace mltcp::workload
