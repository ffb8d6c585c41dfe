// The packet size of connections (see path_mtu.h): when a path is suspected of dropping long packets, how the path is
// tested, and how a connection continues with another packet size.
#include <algorithm>

#include "mltcp/transport/internal/connection.h"

namespace mltcp::transport {

// Consecutive probe timeouts also have other causes: outages, and many senders that share a short queue. So the packet
// size is suspected only if the timeouts last for some time.
bool Connection::suspects_size(Nanos now) {
  if (!may_send_messages() || !is_proven_) return false;
  if (!mtu_.is_suspect()) {
    if (sent_.probe_timeouts() < kSuspiciousTimeouts || sent_.silence(now) < patience_with_size()) return false;
    if (sent_.longest_in_flight() <= wire::kSmallestPacket) return false;
  }
  return suspect_size();
}

// Many long packets have been lost in a row while short packets arrive. A full queue that has room only for short
// packets has the same effect, but not for long.
void Connection::check_size(Nanos now) {
  if (mtu_.is_suspect() || !may_send_messages() || !is_proven_) return;
  if (!sent_.long_lost_noted()) {
    sent_.note_long_lost();
    long_lost_since_ = now;
  } else if (now - long_lost_since_ >= patience_with_size()) {
    suspect_size();
  }
}

Nanos Connection::patience_with_size() const { return std::min(kSuspiciousSilence, config_->give_up_after / 4); }

bool Connection::suspect_size() {
  // Packets that arrived before the suspicion do not show what the path carries now.
  if (!mtu_.is_suspect()) sent_.set_longest_acked(0);
  const bool suspects = mtu_.suspect();
  on_size_verdict(PathMtu::Verdict::nothing);
  return suspects;
}

void Connection::on_size_verdict(PathMtu::Verdict verdict) {
  if (verdict == PathMtu::Verdict::healthy) sent_.set_longest_acked(mtu_.size());
  size_changed_ = mtu_.size() != max_packet_;
  size_probe_due_ = mtu_.next_probe() != 0;
  may_raise_size_ = mtu_.waits_to_raise();
}

bool Connection::change_size(const SentPackets::Losses& losses) {
  const bool shorter = mtu_.size() < max_packet_;
  max_packet_ = mtu_.size();
  if (ForwardDelay* const forward = forward_delay(); forward != nullptr) forward->reset();
  size_changed_ = false;
  if (shorter) {
    ++links_->stats->black_holes;
    sent_.forgive_losses(max_packet_, losses, [this](const Chunk& chunk) { requeue(chunk); });
    // The controller's state does not fit the new size. It comes from another path, or from a window of packets that
    // were all lost.
    controller_ = cc::Controller(controller_.algorithm(), path());
    ack_ratio_flags_ = 0;
    if (starts_at_min_window_) start_at_min_window(heard_);
  } else {
    controller_.on_packet_size(path());
  }
  update_pacing();
  return shorter;
}

bool Connection::build_size_probe(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet) {
  if (sent_.full(*config_)) sent_.make_room([&](const Chunk& chunk) { on_lost_chunk(chunk, now); });
  const std::uint32_t size = mtu_.next_probe();
  if (size == 0) return false;  // the record that make_room() removed was the last probe needed
  if (sent_.skip_is_due()) sent_.skip_number(*links_->random);
  Draft draft{.writer = wire::Writer(buffer.first(size))};
  draft.writer.padding(static_cast<std::uint16_t>(draft.writer.free_bytes() - wire::kPaddingFrameBytes));
  carry(draft, {.offset = mtu_.round(), .length = static_cast<std::uint16_t>(size), .kind = ChunkKind::size_probe});
  mtu_.on_probe_sent();
  size_probe_due_ = mtu_.next_probe() != 0;
  ++links_->stats->size_probes_sent;
  wire::Header header = next_header();
  header.flags |= wire::ack_now;
  // The size probe counts as one of the packets that a probe timeout requires.
  if (sent_.probing()) sent_.on_probe_sent();
  sent_.on_sent(0, draft.chunks, 0, now);
  header.span = sent_.span();
  bytes_sent_ += size;
  finish(draft, header, buffer, packet, false);
  packet.ecn = config_->ecn && ecn_.is_used() ? Ecn::ect0 : Ecn::not_ect;
  return true;
}

}  // namespace mltcp::transport
