// Executes the iterations of a job, or of one of its ranks (see iteration_engine.h).
#include "mltcp/lab/experiment/engine/iteration_engine.h"

#include <algorithm>

namespace mltcp::experiment {

using workload::Operation;

namespace {

IterationEngine::Settings ending(IterationEngine::Settings settings, const workload::RankProgram& program) {
  if (program.communicates()) return settings;
  settings.stop_when_done = true;
  settings.iterations = std::max(settings.iterations, 1U);
  return settings;
}

}  // namespace

IterationEngine::IterationEngine(const workload::RankProgram& program, const workload::Job& job,
                                 const Settings& settings)
    : program_(program),
      settings_(ending(settings, program)),
      compute_varies_(job.compute_varies()),
      compute_times_(job, settings.seed, settings.stream) {
  const std::vector<Operation>& operations = program_.operations;
  first_dependent_.resize(operations.size() + 1);
  for (const std::uint32_t wait : program_.waits) ++first_dependent_[wait + 1];
  for (std::size_t i = 0; i < operations.size(); ++i) first_dependent_[i + 1] += first_dependent_[i];
  dependents_.resize(program_.waits.size());
  std::vector<std::uint32_t> next(first_dependent_.begin(), first_dependent_.end());
  for (std::uint32_t i = 0; i < operations.size(); ++i)
    for (std::uint32_t wait = 0; wait < operations[i].waits; ++wait)
      dependents_[next[program_.waits[operations[i].first_wait + wait]]++] = i;
  waits_.resize(operations.size());
  finished_.reserve(operations.size());
  to_compute_.reserve(operations.size());
  starts_.reserve(settings_.iterations);
  times_.reserve(settings_.iterations);
  if (compute_varies_) computes_.reserve(settings_.iterations);
  timeline_.resize(operations.size() * settings.timeline);
  later_.reserve(static_cast<std::size_t>(std::ranges::count_if(
      operations, [](const auto& operation) { return operation.kind == Operation::Kind::delay; })));
}

void IterationEngine::finish(std::uint32_t operation, Nanos now, Nanos at) {
  if (at <= now) {
    finished_.push_back(operation);
  } else if (first_dependent_[operation] < first_dependent_[operation + 1]) {
    later_.push_back({operation, at});
  } else {
    ++ending_;
    ending_until_ = std::max(ending_until_, at);
    if (OperationTimes* const times = times_of(operation); times != nullptr && !done()) times->end = at;
  }
}

Nanos IterationEngine::wake() const {
  if (!finished_.empty()) return Nanos(0);  // operations have finished since the last advance()
  Nanos next = wake_;
  for (const Later& later : later_) next = std::min(next, later.at);
  if (ending_ > 0 && ending_ == left_) next = std::min(next, ending_until_);
  return next;
}

IterationEngine::Step IterationEngine::advance(Nanos now, Carrier& carrier) {
  bool moved = false;
  if (state_ == State::between || (state_ == State::before && now >= wake_)) {
    if (state_ == State::between) ++iteration_;
    wake_ = Nanos::never();
    state_ = State::running;
    begin_iteration(now, carrier);
    moved = true;
  }
  while (state_ == State::running) {
    if (settle(now, carrier)) moved = true;
    if (wake_.is_never() && computed_ < to_compute_.size()) {
      const Nanos compute = compute_times_.of(program_.operations[to_compute_[computed_]].compute);
      compute_ += compute;
      wake_ = now + compute;
      if (OperationTimes* const times = times_of(to_compute_[computed_]); times != nullptr && !done())
        times->begin = now;
    }
    if (now >= wake_) {
      wake_ = Nanos::never();
      finished_.push_back(to_compute_[computed_++]);
      computed_at_ = now;
    } else if (left_ == 0) {
      return end_iteration(now);
    } else {
      break;
    }
    moved = true;
  }
  return moved ? Step::advanced : Step::waiting;
}

bool IterationEngine::settle(Nanos now, Carrier& carrier) {
  std::erase_if(later_, [&](const Later& later) {
    if (later.at > now) return false;
    finished_.push_back(later.operation);
    return true;
  });
  bool asked = false;
  while (!finished_.empty()) {
    const std::uint32_t done = finished_.back();
    finished_.pop_back();
    --left_;
    if (OperationTimes* const times = times_of(done); times != nullptr && !this->done()) times->end = now;
    for (std::uint32_t i = first_dependent_[done]; i < first_dependent_[done + 1]; ++i)
      if (--waits_[dependents_[i]] == 0) {
        begin(dependents_[i], now, carrier);
        asked = asked || program_.operations[dependents_[i]].communicates();
      }
  }
  if (ending_ == 0 || ending_ != left_ || now < ending_until_) return asked;
  left_ = ending_ = 0;
  ending_until_ = {};
  return asked;
}

void IterationEngine::begin(std::uint32_t operation, Nanos now, Carrier& carrier) {
  if (OperationTimes* const times = times_of(operation); times != nullptr && !done()) times->begin = now;
  switch (program_.operations[operation].kind) {
    case Operation::Kind::compute:
      to_compute_.push_back(operation);
      break;
    case Operation::Kind::delay:
      finish(operation, now, now + compute_times_.delay(program_.operations[operation].compute));
      break;
    case Operation::Kind::send:
    case Operation::Kind::receive:
      carrier.begin(operation, now);
      break;
  }
}

void IterationEngine::begin_iteration(Nanos now, Carrier& carrier) {
  iteration_start_ = now;
  computed_at_ = now;
  compute_ = {};
  if (!done()) starts_.push_back(now);
  left_ = static_cast<std::uint32_t>(program_.operations.size());
  to_compute_.clear();
  computed_ = 0;
  for (std::size_t i = 0; i < program_.operations.size(); ++i) waits_[i] = program_.operations[i].waits;
  compute_times_.begin_iteration();
  carrier.begin_iteration(now);
  for (std::uint32_t i = 0; i < program_.operations.size(); ++i)
    if (program_.operations[i].waits == 0) begin(i, now, carrier);
}

std::vector<OperationTimes> IterationEngine::timeline() const {
  std::vector<OperationTimes> result;
  if (timeline_.empty()) return result;
  const std::size_t kept = std::min<std::size_t>(times_.size(), settings_.timeline);
  const std::size_t each = program_.operations.size();
  for (std::size_t iteration = times_.size() - kept; iteration < times_.size(); ++iteration) {
    const auto first = timeline_.begin() + static_cast<std::ptrdiff_t>(iteration % settings_.timeline * each);
    result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(each));
  }
  return result;
}

IterationEngine::Step IterationEngine::end_iteration(Nanos now) {
  const bool record = !done();
  if (record) {
    times_.push_back(now - iteration_start_);
    if (compute_varies_) computes_.push_back(compute_);
  }
  state_ = settings_.stop_when_done && done() ? State::ended : State::between;
  return record ? Step::recorded : Step::unrecorded;
}

}  // namespace mltcp::experiment
