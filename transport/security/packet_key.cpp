// Seals of connections (see packet_key.h).
#include "mltcp/transport/security/packet_key.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/transport/security/aead.h"
#include "mltcp/transport/security/copy_watch.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::security {
namespace {

static_assert(Aead::kTagBytes == std::tuple_size_v<PacketSeal::Tag>);

class JobPacketKey final : public PacketKey {
 public:
  JobPacketKey(const JobKey& key, Protection protection, std::uint64_t packets_an_epoch)
      : key_(extracted_key(key.secret(), protection)),
        id_(key_id(key_)),
        protection_(protection),
        packets_an_epoch_(packets_an_epoch) {}

  [[nodiscard]] std::uint64_t id() const override { return id_; }
  [[nodiscard]] bool encrypts() const override { return protection_ == Protection::encrypt; }
  [[nodiscard]] std::unique_ptr<SealEngine> make_engine() const override;

  [[nodiscard]] const ExtractedKey& extracted() const { return key_; }
  [[nodiscard]] std::uint64_t packets_an_epoch() const { return packets_an_epoch_; }

 private:
  ExtractedKey key_;
  std::uint64_t id_;
  Protection protection_;
  std::uint64_t packets_an_epoch_;
};

/// State shared by the seals of a shard.
struct Shared {
  Aead aead;
  std::uint64_t keys_made = 0;
};

/// A traffic key, and the serial number by which the key's cipher context is found.
struct NumberedKey {
  TrafficKey key;
  std::uint64_t serial = 0;  ///< 0 if there is no key yet

  static NumberedKey of(const TrafficSecret& secret, Shared& shared) {
    return {traffic_key(secret), ++shared.keys_made};
  }
  [[nodiscard]] Aead::KeyUse use(std::size_t place) const { return {key, serial, place}; }
};

class JobSeal final : public PacketSeal {
 public:
  JobSeal(Shared& shared, const JobPacketKey& key, const EndRandom& client, bool is_client)
      : shared_(shared),
        key_(key.extracted()),
        key_id_(key.id()),
        encrypts_(key.encrypts()),
        client_(client),
        packets_an_epoch_(key.packets_an_epoch()),
        place_(shared.keys_made),
        is_client_(is_client) {}

  [[nodiscard]] const EndRandom& own() const override { return is_client_ ? client_ : server_; }
  [[nodiscard]] std::uint64_t key_id() const override { return key_id_; }
  [[nodiscard]] bool encrypts() const override { return encrypts_; }
  [[nodiscard]] Tag answer_of_restarted(const Tag& answered, std::uint32_t connection) const override {
    return restarted_answer(key_, answered, connection);
  }

  void meet(const EndRandom& server) override {
    server_ = server;
    const ConnectionSecrets secrets = connection_secrets(key_, client_, server);
    sending_secret_ = is_client_ ? secrets.client : secrets.server;
    receiving_secret_ = is_client_ ? secrets.server : secrets.client;
    sending_ = NumberedKey::of(sending_secret_, shared_);
    receiving_ = NumberedKey::of(receiving_secret_, shared_);
    epoch_ = received_epoch_ = 0;
    before_ = next_ = NumberedKey();
  }

  Epoch next_epoch(std::uint64_t number, std::uint64_t acked) override {
    bool overdue = number - epoch_began_ >= packets_an_epoch_;
    if (overdue && acked >= epoch_began_ && acked != ~std::uint64_t{0}) [[unlikely]] {
      sending_secret_ = security::next_epoch(sending_secret_);
      sending_ = NumberedKey::of(sending_secret_, shared_);
      ++epoch_;
      epoch_began_ = number;
      overdue = false;
    }
    return {.bit = (epoch_ & 1) != 0, .overdue = overdue};
  }

  Tag seal(const SealedPacket& packet, std::byte* out) override { return seal_with(sending_, packet, out); }

  Tag seal_greeting(const SealedPacket& packet) override { return seal_with(greeting(), packet, nullptr); }

  bool opens_greeting(std::uint64_t key_id, const EndRandom& client, const SealedPacket& packet,
                      const Tag& tag) override {
    return packet.clear && key_id == key_id_ && client == client_ && open_with(greeting(), packet, tag, nullptr);
  }

  bool open(const SealedPacket& packet, const Tag& tag, std::byte* out) override {
    if (receiving_.serial == 0) return false;
    if (packet.epoch == ((received_epoch_ & 1) != 0)) [[likely]] {
      return open_with(receiving_, packet, tag, out);
    }
    // The packet belongs to the next epoch, or is a late packet of the previous epoch.
    if (packet.number < received_epoch_began_) return before_.serial != 0 && open_with(before_, packet, tag, out);
    if (next_.serial == 0) {
      next_secret_ = security::next_epoch(receiving_secret_);
      next_ = NumberedKey::of(next_secret_, shared_);
    }
    if (!open_with(next_, packet, tag, out)) return false;
    before_ = receiving_;
    receiving_ = next_;
    receiving_secret_ = next_secret_;
    next_ = NumberedKey();
    ++received_epoch_;
    received_epoch_began_ = packet.number;
    return true;
  }

  static bool open_with(Aead& aead, const NumberedKey& key, std::size_t place, const SealedPacket& packet,
                        const Tag& tag, std::byte* out) {
    if (!packet.clear) return aead.open(key.use(place), packet.number, packet.header, packet.body, tag, out);
    return aead.open(key.use(place), packet.number, all_of(packet), {}, tag, nullptr);
  }

 private:
  static std::array<std::span<const std::byte>, 4> all_of(const SealedPacket& packet) {
    return {packet.header[0], packet.header[1], packet.body[0], packet.body[1]};
  }
  const NumberedKey& greeting() {
    if (greeting_.serial == 0) greeting_ = NumberedKey::of(greeting_secret(key_, client_), shared_);
    return greeting_;
  }
  Tag seal_with(const NumberedKey& key, const SealedPacket& packet, std::byte* out) {
    if (!packet.clear) return shared_.aead.seal(key.use(place_), packet.number, packet.header, packet.body, out);
    return shared_.aead.seal(key.use(place_), packet.number, all_of(packet), {}, nullptr);
  }
  bool open_with(const NumberedKey& key, const SealedPacket& packet, const Tag& tag, std::byte* out) {
    return open_with(shared_.aead, key, place_, packet, tag, out);
  }

  Shared& shared_;
  ExtractedKey key_;
  std::uint64_t key_id_;
  bool encrypts_;
  EndRandom client_;
  EndRandom server_{};
  std::uint64_t packets_an_epoch_;
  std::size_t place_;
  bool is_client_;

  TrafficSecret sending_secret_;
  NumberedKey sending_;
  std::uint64_t epoch_ = 0;
  std::uint64_t epoch_began_ = 0;  ///< first packet number of the current epoch

  TrafficSecret receiving_secret_;
  NumberedKey receiving_;
  NumberedKey before_;
  TrafficSecret next_secret_;
  NumberedKey next_;  ///< key of the next epoch, derived when a packet with its epoch bit arrives
  std::uint64_t received_epoch_ = 0;
  std::uint64_t received_epoch_began_ = 0;

  NumberedKey greeting_;  ///< key of CONNECT packets, derived at its first use
};

class JobSealEngine final : public SealEngine {
 public:
  [[nodiscard]] bool was_copied(Nanos now) override {
    if (now >= look_at_) {
      CopyWatch::look();
      look_at_ = now + kBetweenLooks;
    }
    return watch_.was_copied();
  }
  std::unique_ptr<PacketSeal> connect(const PacketKey& key, const EndRandom& client) override {
    return std::make_unique<JobSeal>(shared_, of(key), client, true);
  }
  std::unique_ptr<PacketSeal> accept(const PacketKey& key, const EndRandom& client, const EndRandom& server) override {
    auto made = std::make_unique<JobSeal>(shared_, of(key), client, false);
    made->meet(server);
    return made;
  }
  [[nodiscard]] PacketSeal::Tag answer_of_restarted(const PacketKey& key, const PacketSeal::Tag& answered,
                                                    std::uint32_t connection) const override {
    return restarted_answer(of(key).extracted(), answered, connection);
  }
  bool opens_greeting(const PacketKey& key, const EndRandom& client, const SealedPacket& packet,
                      const PacketSeal::Tag& tag) override {
    if (!packet.clear) return false;
    const NumberedKey greeting = NumberedKey::of(greeting_secret(of(key).extracted(), client), shared_);
    return JobSeal::open_with(shared_.aead, greeting, greeting.serial, packet, tag, nullptr);
  }

 private:
  // The cast is safe: all keys of a shard come from packet_key(), which makes only JobPacketKeys.
  static const JobPacketKey& of(const PacketKey& key) { return static_cast<const JobPacketKey&>(key); }

  static constexpr Nanos kBetweenLooks{1'000'000};

  Shared shared_;
  CopyWatch watch_;
  Nanos look_at_;
};

std::unique_ptr<SealEngine> JobPacketKey::make_engine() const { return std::make_unique<JobSealEngine>(); }

}  // namespace

std::shared_ptr<const PacketKey> packet_key(const JobKey& key, Protection protection, std::uint64_t packets_an_epoch) {
  constexpr std::uint64_t max = std::uint64_t{1} << 23;
  if (packets_an_epoch < 1 || packets_an_epoch > max)
    throw InputError(fmt::format("packets_an_epoch is {}; it has to be from 1 to {}", packets_an_epoch, max));
  return std::make_shared<JobPacketKey>(key, protection, packets_an_epoch);
}

}  // namespace mltcp::security
