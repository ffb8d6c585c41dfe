// Derivation of keys (see key_schedule.h).
#include "mltcp/transport/security/key_schedule.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "mltcp/base/error.h"

namespace mltcp::security {
namespace {

constexpr std::string_view kSalt = "mltcp 3";
constexpr std::string_view kSaltOfAuthenticated = "mltcp 3 authenticate";

struct FreeContext {
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

OSSL_PARAM octets(const char* name, std::span<const std::byte> bytes) {
  // OpenSSL takes pointers to non-const even if it only reads.
  return OSSL_PARAM_construct_octet_string(name, const_cast<std::byte*>(bytes.data()), bytes.size());  // NOLINT
}

void hkdf(int mode, std::span<const std::byte> key, const char* other_name, std::span<const std::byte> other,
          std::span<std::byte> out) {
  // Fetched once, because fetching HKDF takes longer than deriving a key.
  static EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  if (kdf == nullptr)
    throw RunError(
        "OpenSSL has no HKDF: its default provider is missing; activate it (openssl list -providers shows the active "
        "ones)");
  const std::unique_ptr<EVP_KDF_CTX, FreeContext> context(EVP_KDF_CTX_new(kdf));
  if (context == nullptr) throw std::bad_alloc();
  char digest[] = "SHA256";
  const std::array params{OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                          OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode), octets(OSSL_KDF_PARAM_KEY, key),
                          octets(other_name, other), OSSL_PARAM_construct_end()};
  if (EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), out.size(), params.data()) != 1)
    throw RunError("OpenSSL derives no key by HKDF with SHA-256 (see openssl list -kdf-algorithms)");
}

/// Derives a secret with an `info` that consists of `label`, `first` and `second`. Labels have different lengths or
/// first letters, and the other parts have fixed lengths, so that no two derivations have the same `info`.
template <std::size_t Size>
Secret<Size> expand(const Secret<32>& secret, std::string_view label, std::span<const std::byte> first = {},
                    std::span<const std::byte> second = {}) {
  std::array<std::byte, 64> info{};
  std::size_t used = 0;
  for (const std::span<const std::byte> part : {bytes_of(label), first, second}) {
    if (!part.empty()) std::memcpy(info.data() + used, part.data(), part.size());
    used += part.size();
  }
  Secret<Size> out;
  hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, secret.bytes(), OSSL_KDF_PARAM_INFO, std::span(info).first(used), out.bytes());
  return out;
}

}  // namespace

ExtractedKey extracted_key(const JobSecret& job_key, Protection protection) {
  ExtractedKey key;
  hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, job_key.bytes(), OSSL_KDF_PARAM_SALT,
       bytes_of(protection == Protection::encrypt ? kSalt : kSaltOfAuthenticated), key.secret.bytes());
  return key;
}

std::uint64_t key_id(const ExtractedKey& key) {
  const Secret<8> id = expand<8>(key.secret, "id");
  std::uint64_t number = 0;
  std::memcpy(&number, id.bytes().data(), sizeof number);
  return number;
}

TrafficSecret greeting_secret(const ExtractedKey& key, const EndRandom& client) {
  return expand<32>(key.secret, "greeting", client);
}

ConnectionSecrets connection_secrets(const ExtractedKey& key, const EndRandom& client, const EndRandom& server) {
  return {expand<32>(key.secret, "client", client, server), expand<32>(key.secret, "server", client, server)};
}

ConnectionSecrets control_secrets(const JobSecret& job_key, const EndRandom& client, const EndRandom& server) {
  const ExtractedKey key = extracted_key(job_key);
  return {expand<32>(key.secret, "control client", client, server),
          expand<32>(key.secret, "control server", client, server)};
}

PacketSeal::Tag restarted_answer(const ExtractedKey& key, const PacketSeal::Tag& answered, std::uint32_t connection) {
  PacketSeal::Tag answer{};
  const Secret<12> derived = expand<12>(key.secret, "restarted", answered, std::as_bytes(std::span(&connection, 1)));
  std::memcpy(answer.data(), derived.bytes().data(), answer.size());
  return answer;
}

TrafficSecret next_epoch(const TrafficSecret& secret) { return expand<32>(secret, "epoch"); }

TrafficKey traffic_key(const TrafficSecret& secret) { return {expand<16>(secret, "key"), expand<12>(secret, "iv")}; }

}  // namespace mltcp::security
