// Measures sealing and opening of packets (transport/security/aead.h). Compares them with OpenSSL's AES-128-GCM on the
// same number of bytes, with one context, and a nonce and a tag per message, as in `openssl speed -aead -evp
// aes-128-gcm`. The counter bytes_per_second counts encrypted bytes. The argument "keys" is the number of connections
// that are used in turn. There are cipher contexts for 256 connections.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/transport/security/aead.h"

namespace {

using namespace mltcp::security;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kBound = 24;  // bytes of a packet's header

std::vector<std::byte> message(const benchmark::State& state) {
  return std::vector<std::byte>(static_cast<std::size_t>(state.range(0)), std::byte{7});
}

void count(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.SetItemsProcessed(state.iterations());
}

void openssl_seal(benchmark::State& state) {
  const std::vector<std::byte> plain = message(state);
  std::vector<unsigned char> out(plain.size());
  const std::array<unsigned char, 16> key{1};
  std::array<unsigned char, 12> nonce{};
  std::array<unsigned char, kBound> bound{};
  std::array<unsigned char, 16> tag{};
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(EVP_CIPHER_CTX_new(),
                                                                                EVP_CIPHER_CTX_free);
  EVP_EncryptInit_ex(context.get(), EVP_aes_128_gcm(), nullptr, key.data(), nonce.data());
  std::uint64_t number = 0;
  for (auto _ : state) {
    ++number;
    std::memcpy(nonce.data(), &number, sizeof number);
    int written = 0;
    EVP_EncryptInit_ex(context.get(), nullptr, nullptr, nullptr, nonce.data());
    EVP_EncryptUpdate(context.get(), nullptr, &written, bound.data(), kBound);
    EVP_EncryptUpdate(context.get(), out.data(), &written, reinterpret_cast<const unsigned char*>(plain.data()),
                      static_cast<int>(plain.size()));
    EVP_EncryptFinal_ex(context.get(), out.data(), &written);
    EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data());
    benchmark::DoNotOptimize(tag);
  }
  count(state);
}

std::vector<TrafficKey> keys(std::size_t count) {
  std::vector<TrafficKey> made(count);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(made[i].key.bytes().data(), &i, sizeof i);
  return made;
}

void seal(benchmark::State& state) {
  const auto count_of_keys = static_cast<std::size_t>(state.range(1));
  const std::vector<TrafficKey> all = keys(count_of_keys);
  const std::vector<std::byte> plain = message(state);
  const std::array<std::byte, kBound> header{};
  const std::array<std::span<const std::byte>, 1> bound{header};
  std::vector<std::byte> out(plain.size());
  Aead aead;
  std::uint64_t number = 0;
  const std::array<std::span<const std::byte>, 2> pieces{std::span(plain).first(12), std::span(plain).subspan(12)};
  for (auto _ : state) {
    const std::size_t key = ++number % count_of_keys;
    benchmark::DoNotOptimize(aead.seal({all[key], key + 1, key}, number, bound, pieces, out.data()));
  }
  count(state);
}

void open(benchmark::State& state) {
  const auto count_of_keys = static_cast<std::size_t>(state.range(1));
  const std::vector<TrafficKey> all = keys(count_of_keys);
  const std::vector<std::byte> plain = message(state);
  const std::array<std::byte, kBound> header{};
  const std::array<std::span<const std::byte>, 1> bound{header};
  std::vector<std::byte> out(plain.size());
  std::vector<std::vector<std::byte>> sealed(count_of_keys, std::vector<std::byte>(plain.size()));
  std::vector<Aead::Tag> tags(count_of_keys);
  Aead aead;
  const std::array<std::span<const std::byte>, 1> whole{plain};
  for (std::size_t key = 0; key < count_of_keys; ++key)
    tags[key] = aead.seal({all[key], key + 1, key}, 5, bound, whole, sealed[key].data());
  std::uint64_t turn = 0;
  for (auto _ : state) {
    const std::size_t key = ++turn % count_of_keys;
    const std::array<std::span<const std::byte>, 1> pieces{sealed[key]};
    if (!aead.open({all[key], key + 1, key}, 5, bound, pieces, tags[key], out.data())) {
      state.SkipWithError("not opened");
      break;
    }
  }
  count(state);
}

BENCHMARK(openssl_seal)->Name("openssl")->ArgNames({"bytes"})->Arg(64)->Arg(256)->Arg(1424)->Arg(3300)->Arg(8900);
BENCHMARK(seal)->ArgNames({"bytes", "keys"})->ArgsProduct({{64, 256, 1424, 3300, 8900}, {1, 100, 1000}});
BENCHMARK(open)->ArgNames({"bytes", "keys"})->ArgsProduct({{64, 256, 1424, 3300, 8900}, {1, 100, 1000}});

}  // namespace
