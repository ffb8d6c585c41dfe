// Runs the fuzz targets without libFuzzer. Each target reads every input of its corpus, which includes the findings of
// fuzzers. It then reads these inputs with random changes, which are the same in every run. A failure names the file of
// the input, or prints the changed input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "corpus_targets.h"
#include "mltcp/base/random.h"

namespace mltcp::fuzz {

std::ostream& operator<<(std::ostream& out, const Target& target) { return out << target.name; }

namespace {

using Bytes = std::vector<std::uint8_t>;

std::filesystem::path folder_of(std::string_view target) { return std::filesystem::path(MLTCP_FUZZ_CORPUS) / target; }

/// Returns the inputs, sorted by name, so that the random changes are the same on every machine.
std::vector<std::pair<std::string, Bytes>> corpus_of(std::string_view target) {
  std::vector<std::pair<std::string, Bytes>> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(target))) {
    std::ifstream file(entry.path(), std::ios::binary);
    corpus.emplace_back(entry.path().filename().string(), Bytes(std::istreambuf_iterator<char>(file), {}));
  }
  std::sort(corpus.begin(), corpus.end());
  return corpus;
}

Bytes changed(Bytes input, const Bytes& other, Random& random) {
  for (std::uint64_t changes = 1 + random.below(4); changes > 0 && !input.empty(); --changes) {
    const auto at = static_cast<std::ptrdiff_t>(random.below(input.size()));
    switch (random.below(7)) {
      case 0:
        input[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(random.next());
        break;
      case 1:
        input[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << random.below(8));
        break;
      case 2:
        input.resize(static_cast<std::size_t>(at));
        break;
      case 3:
        input.erase(input.begin() + at,
                    input.begin() + std::min<std::ptrdiff_t>(at + 1 + static_cast<std::ptrdiff_t>(random.below(20)),
                                                             std::ssize(input)));
        break;
      case 4:
        input.insert(input.begin() + at, 1 + random.below(18), static_cast<std::uint8_t>('0' + random.below(10)));
        break;
      case 5: {  // inserts a copy of a piece of the input
        const std::size_t from = random.below(input.size());
        const Bytes piece(
            input.begin() + static_cast<std::ptrdiff_t>(from),
            input.begin() + static_cast<std::ptrdiff_t>(std::min(input.size(), from + 1 + random.below(40))));
        input.insert(input.begin() + at, piece.begin(), piece.end());
        break;
      }
      default:  // joins the beginning of this input and the end of `other`
        input.resize(static_cast<std::size_t>(at));
        if (other.size() > input.size()) input.insert(input.end(), other.begin() + at, other.end());
    }
  }
  return input;
}

/// Returns the input as the text of a C string literal, which a failure prints.
std::string shown(const Bytes& input) {
  std::string text;
  for (const std::uint8_t byte : input) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += "\\x";
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

void run(const Target& target, const Bytes& input, const std::string& name) {
  SCOPED_TRACE(name);
  std::string why;
  try {
    target.run(input);
  } catch (const Violation& violation) {
    why = violation.what;
  } catch (const std::exception& error) {
    why = std::string("an exception that nobody expects: ") + error.what();
  }
  if (!why.empty()) ADD_FAILURE() << why << "\nof " << shown(input);
}

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, inputs__do_no_harm) {
  const auto corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty()) << folder_of(GetParam().name);
  for (const auto& [name, input] : corpus) run(GetParam(), input, name);
}

TEST_P(Corpus, changed_inputs__do_no_harm) {
  const auto corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty()) << folder_of(GetParam().name);
  const char* const rounds = std::getenv("MLTCP_FUZZ_ROUNDS");
  const std::size_t max = GetParam().changed * (rounds == nullptr ? 1 : std::strtoul(rounds, nullptr, 10));
  Random random(26);
  for (std::size_t i = 0; i < max && !HasFailure(); ++i) {
    const auto& [name, input] = corpus[random.below(corpus.size())];
    const Bytes& other = corpus[random.below(corpus.size())].second;
    run(GetParam(), changed(input, other, random), name + ", changed");
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace mltcp::fuzz
