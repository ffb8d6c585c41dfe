// A fuzz target is a function of bytes from an untrusted source. It passes the bytes to the project's code, and checks
// the properties that must hold for all inputs. Sanitizers and time limits find invalid accesses, overflows and endless
// loops.
//
// Each target is linked twice: with libFuzzer, which searches for inputs that reach new code (fuzzer_main.cpp,
// tools/fuzz), and with a test that runs its corpus on every machine (corpus_test.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp::fuzz {

using Input = std::span<const std::uint8_t>;

/// Thrown if an invariant is violated. Not derived from std::exception, so that the code under test does not catch it.
struct Violation {
  std::string what;
};
inline void require(bool holds, std::string_view what) {
  if (!holds) throw Violation{std::string(what)};
}

/// Calls `read`, and returns whether it accepted the input. `read` refuses an input with an InputError, whose text must
/// be one line with cause and cure. Any other exception is a bug that the fuzzer has found.
template <typename Read>
bool is_read(Read read) {
  try {
    read();
    return true;
  } catch (const InputError& error) {
    const std::string_view why = error.what();
    require(why.find('\n') == std::string_view::npos, "a refusal in more than one line");
    require(why.find("; ") != std::string_view::npos, "a refusal without a cure: " + std::string(why));
    return false;
  }
}

/// Reads numbers from the front of an input, so that a target can use the input as a sequence of operations. Reads
/// zeros after the end of the input.
class Program {
 public:
  explicit Program(Input input) : left_(input) {}

  [[nodiscard]] bool has_ended() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const std::uint8_t value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << 8 * i;
    return value;
  }
  /// Returns a number from 0 to `max`. Reads 1, 2 or 8 bytes, depending on `max`.
  std::uint64_t up_to(std::uint64_t max) { return number(max < 256 ? 1 : max < 65'536 ? 2 : 8) % (max + 1); }
  /// Returns a copy of the next bytes in memory of their exact size, so that a sanitizer detects reads beyond the end.
  std::vector<std::byte> bytes(std::size_t max) {
    const Input taken = left_.first(std::min(max, left_.size()));
    left_ = left_.subspan(taken.size());
    const auto all = std::as_bytes(taken);
    return {all.begin(), all.end()};
  }
  std::vector<std::byte> rest() { return bytes(left_.size()); }
  std::string text() {
    const std::string all(left_.begin(), left_.end());
    left_ = {};
    return all;
  }

 private:
  Input left_;
};

// The targets. Each is in a file named after it.
void fuzz_wire(Input input);
void fuzz_encapsulation(Input input);
void fuzz_neighbours(Input input);
void fuzz_shard(Input input);
void fuzz_claims(Input input);
void fuzz_experiment(Input input);
void fuzz_traces(Input input);
void fuzz_results(Input input);
void fuzz_control(Input input);
void fuzz_plan(Input input);
void fuzz_http(Input input);
void fuzz_words(Input input);

}  // namespace mltcp::fuzz
