// Accepted streams whose peers have not yet sent a message (see pending_streams.h).
#include "mltcp/lab/experiment/hosts/pending_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mltcp::experiment {

void BoundedLines::tell(const std::string& line, Nanos now) {
  update(now);
  if (shown_ == 0) until_ = now + kEvery;
  if (shown_ == kMax) {
    ++left_out_;
    return;
  }
  ++shown_;
  if (tell_) tell_(line);
}

void BoundedLines::update(Nanos now) {
  if (shown_ == 0 || now < until_) return;
  if (left_out_ > 0 && tell_) tell_(fmt::format("{} more lines like these are left out", left_out_));
  shown_ = 0;
  left_out_ = 0;
}

void PendingStreams::add_files(std::vector<int>& files) const {
  files.push_back(listener_.file());
  for (const Pending& pending : streams_) files.push_back(pending.stream->file());
}

std::optional<PendingStreams::First> PendingStreams::next() {
  const Nanos now = wall_now();
  lines_.update(now);
  accept(now);
  for (auto pending = streams_.begin(); pending != streams_.end();) {
    bool gone = now - pending->since > kLimit;
    try {
      if (auto message = pending->stream->receive()) {
        First first{std::move(pending->stream), std::move(*message)};
        streams_.erase(pending);
        return first;
      }
    } catch (const KeyMismatch& error) {
      tell(fmt::format("refused a {}{}: it {}", peer_, pending->address.empty() ? "" : " at " + pending->address,
                       error.what()));
      gone = true;
    } catch (const StreamError& error) {
      tell(fmt::format("a peer that is not a {} {}", peer_, error.what()));
      gone = true;
    }
    pending = gone ? streams_.erase(pending) : std::next(pending);
  }
  return std::nullopt;
}

void PendingStreams::accept(Nanos now) {
  // Accepts only a limited number of streams per call, so that the caller can continue its work.
  for (std::size_t i = 0; i < kMax; ++i) {
    auto stream = listener_.accept();
    if (stream == nullptr) return;
    std::string address = stream->peer();
    // If the new stream's address already has kMaxOfAddress streams, drops the oldest stream of this address. Otherwise
    // drops the oldest of all streams if there are kMax.
    const auto is_neighbour = [&](const Pending& pending) { return pending.address == address; };
    const auto same = std::ranges::count_if(streams_, is_neighbour);
    if (!address.empty() && static_cast<std::size_t>(same) >= kMaxOfAddress)
      streams_.erase(std::ranges::find_if(streams_, is_neighbour));
    else if (streams_.size() >= kMax)
      streams_.pop_front();
    streams_.push_back({std::move(stream), std::move(address), now});
  }
}

}  // namespace mltcp::experiment
