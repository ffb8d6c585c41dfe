// AES-128-GCM by OpenSSL (see aead.h).
#include "mltcp/transport/security/aead.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp::security {
namespace {

struct FreeCipherContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

struct FreeCipher {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
};

const unsigned char* uchars(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* uchars(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

[[noreturn]] void fail() {
  throw RunError("OpenSSL's AES-128-GCM failed, probably for lack of memory; free some memory");
}
void must(int result) {
  if (result != 1) [[unlikely]]
    fail();
}

std::array<std::byte, 12> nonce_of(const TrafficKey& key, std::uint64_t number) {
  std::array<std::byte, 12> nonce{};
  std::memcpy(nonce.data(), key.iv.bytes().data(), nonce.size());
  std::uint64_t last = 0;
  std::memcpy(&last, nonce.data() + 4, sizeof last);
  last ^= __builtin_bswap64(number);
  std::memcpy(nonce.data() + 4, &last, sizeof last);
  return nonce;
}

}  // namespace

struct Aead::Contexts {
  struct Kept {
    std::unique_ptr<EVP_CIPHER_CTX, FreeCipherContext> context;
    std::uint64_t serial = 0;
    bool has_key = false;
  };

  std::unique_ptr<EVP_CIPHER, FreeCipher> cipher;
  std::vector<Kept> sealing;
  std::vector<Kept> opening;
};

Aead::Aead(std::size_t contexts) : contexts_(std::make_unique<Contexts>()) {
  contexts_->cipher.reset(EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr));
  if (contexts_->cipher == nullptr)
    throw RunError(
        "OpenSSL has no AES-128-GCM: its default provider is missing; activate it (openssl list -providers shows the "
        "active ones)");
  const std::size_t count = std::bit_ceil(std::clamp<std::size_t>(contexts, 1, 1U << 16));
  for (std::vector<Contexts::Kept>* const kept : {&contexts_->sealing, &contexts_->opening}) {
    kept->resize(count);
    for (Contexts::Kept& one : *kept) {
      one.context.reset(EVP_CIPHER_CTX_new());
      if (one.context == nullptr) throw std::bad_alloc();
    }
  }
}

Aead::~Aead() = default;

namespace {

/// Returns the context, prepared with the key of `use` for packet `number`. Increments `made` if the key had to be set.
template <typename Kept>
EVP_CIPHER_CTX* begin(Kept& kept, const EVP_CIPHER* cipher, const Aead::KeyUse& use, std::uint64_t number, bool seals,
                      std::uint64_t& made) {
  const std::array<std::byte, 12> nonce = nonce_of(use.key, number);
  EVP_CIPHER_CTX* const context = kept.context.get();
  if (kept.has_key && kept.serial == use.serial) [[likely]] {
    must(EVP_CipherInit_ex2(context, nullptr, nullptr, uchars(nonce.data()), seals ? 1 : 0, nullptr));
    return context;
  }
  kept.has_key = false;
  must(EVP_CipherInit_ex2(context, cipher, uchars(use.key.key.bytes().data()), uchars(nonce.data()), seals ? 1 : 0,
                          nullptr));
  kept.has_key = true;
  kept.serial = use.serial;
  ++made;
  return context;
}

void update(EVP_CIPHER_CTX* context, std::byte* out, std::span<const std::byte> in) {
  if (in.empty()) return;
  int written = 0;
  must(EVP_CipherUpdate(context, out == nullptr ? nullptr : uchars(out), &written, uchars(in.data()),
                        static_cast<int>(in.size())));
}

}  // namespace

Aead::Tag Aead::seal(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, std::byte* out) {
  Contexts::Kept& kept = contexts_->sealing[use.place & (contexts_->sealing.size() - 1)];
  EVP_CIPHER_CTX* const context = begin(kept, contexts_->cipher.get(), use, number, true, contexts_made_);
  for (const std::span<const std::byte> piece : bound) update(context, nullptr, piece);
  for (const std::span<const std::byte> piece : pieces) {
    update(context, out, piece);
    out += piece.size();
  }
  unsigned char none = 0;
  int written = 0;
  must(EVP_CipherFinal_ex(context, &none, &written));
  Tag tag;
  must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()));
  return tag;
}

bool Aead::open(const KeyUse& use, std::uint64_t number, Pieces bound, Pieces pieces, const Tag& tag, std::byte* out) {
  Contexts::Kept& kept = contexts_->opening[use.place & (contexts_->opening.size() - 1)];
  EVP_CIPHER_CTX* const context = begin(kept, contexts_->cipher.get(), use, number, false, contexts_made_);
  for (const std::span<const std::byte> piece : bound) update(context, nullptr, piece);
  for (const std::span<const std::byte> piece : pieces) {
    update(context, out, piece);
    out += piece.size();
  }
  Tag expected = tag;  // a copy, because OpenSSL takes a pointer to non-const
  must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data()));
  unsigned char none = 0;
  int written = 0;
  return EVP_CipherFinal_ex(context, &none, &written) == 1;
}

}  // namespace mltcp::security
