// Converts programs of ranks to messages and back (see program_message.h).
#include "mltcp/lab/experiment/hosts/internal/program_message.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "mltcp/base/error.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/lab/workload/file_key.h"

namespace mltcp::experiment::protocol {
namespace {

using Json = nlohmann::json;
using workload::Operation;
using workload::RankProgram;

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 53U;
constexpr std::uint32_t kMaxRanks = 1U << 16U;

char letter_of(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::compute:
      return 'c';
    case Operation::Kind::delay:
      return 'd';
    case Operation::Kind::send:
      return operation.barrier ? 'S' : 's';
    case Operation::Kind::receive:
      break;
  }
  if (operation.barrier) return 'R';
  return operation.reduce ? 'a' : 'r';
}

Operation operation_of(char letter) {
  Operation operation;
  operation.barrier = letter == 'S' || letter == 'R';
  operation.reduce = letter == 'a';
  switch (letter) {
    case 'c':
      operation.kind = Operation::Kind::compute;
      return operation;
    case 'd':
      operation.kind = Operation::Kind::delay;
      return operation;
    case 's':
    case 'S':
      operation.kind = Operation::Kind::send;
      return operation;
    case 'r':
    case 'R':
    case 'a':
      operation.kind = Operation::Kind::receive;
      return operation;
    default:
      throw InputError("a program with an unknown operation");
  }
}

/// Reads the whole numbers of a list one by one.
class Column {
 public:
  Column(const Json& json, const char* key, std::uint64_t max) : list_(json.at(key)), key_(key), max_(max) {
    if (!list_.is_array()) throw InputError(fmt::format("\"{}\" of a program is not a list", key));
  }
  std::uint64_t next() {
    if (at_ == list_.size()) throw InputError(fmt::format("\"{}\" of a program is too short", key_));
    const Json& value = list_[at_++];
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max_)
      throw InputError(fmt::format("\"{}\" of a program has an invalid value", key_));
    return value.get<std::uint64_t>();
  }
  void end() const {
    if (at_ != list_.size()) throw InputError(fmt::format("\"{}\" of a program is too long", key_));
  }

 private:
  const Json& list_;
  const char* key_;
  std::uint64_t max_;
  std::size_t at_ = 0;
};

}  // namespace

Json to_json(const RankProgram& program) {
  if (program.operations.size() > kMaxSentOperations || program.waits.size() > kMaxSentWaits)
    throw InputError(fmt::format(
        "rank {} has {} operations with {} waits, but a host can receive at most {} and {}; replay fewer steps",
        program.rank, program.operations.size(), program.waits.size(), kMaxSentOperations, kMaxSentWaits));
  std::string kinds;
  Json times = Json::array();
  Json peers = Json::array();
  Json bytes = Json::array();
  Json tags = Json::array();
  Json counts = Json::array();
  Json waits = Json::array();
  for (const Operation& operation : program.operations) {
    kinds += letter_of(operation);
    if (!operation.rate.is_zero())
      throw InputError(fmt::format(
          "rank {} has a sending rate of its own, which cannot be sent to hosts; leave the rate out", program.rank));
    if (operation.communicates()) {
      peers.push_back(operation.peer);
      bytes.push_back(operation.bytes);
      tags.push_back(operation.tag);
    } else {
      times.push_back(static_cast<std::uint64_t>(operation.compute.count));
    }
    counts.push_back(operation.waits);
    for (std::uint32_t i = 0; i < operation.waits; ++i) waits.push_back(program.waits[operation.first_wait + i]);
  }
  return {{"rank", program.rank},      {"ranks", program.ranks},      {"kinds", std::move(kinds)},
          {"times", std::move(times)}, {"peers", std::move(peers)},   {"bytes", std::move(bytes)},
          {"tags", std::move(tags)},   {"counts", std::move(counts)}, {"waits", std::move(waits)}};
}

RankProgram program_from(const Json& json) {
  RankProgram program;
  const auto& kinds = json.at("kinds").get_ref<const std::string&>();
  program.ranks = whole_field<std::uint32_t>(json, "ranks", 2, kMaxRanks);
  program.rank = whole_field<std::uint32_t>(json, "rank", 0, program.ranks - 1);
  if (kinds.size() > kMaxSentOperations) throw InputError("a program with too many operations");
  Column times(json, "times", static_cast<std::uint64_t>(workload::kMaxCompute.count));
  Column peers(json, "peers", program.ranks - 1);
  Column bytes(json, "bytes", kMaxBytes);
  Column tags(json, "tags", UINT64_MAX);
  Column counts(json, "counts", kMaxSentOperations);
  Column waits(json, "waits", kMaxSentOperations);
  for (const char letter : kinds) {
    Operation operation = operation_of(letter);
    if (operation.communicates()) {
      operation.peer = static_cast<std::uint32_t>(peers.next());
      operation.bytes = bytes.next();
      operation.tag = tags.next();
      if (operation.peer == program.rank) throw InputError("a program that sends to its own rank");
      if (operation.bytes == 0) throw InputError("a program with a message of no bytes");
    } else {
      operation.compute = Nanos(static_cast<std::int64_t>(times.next()));
    }
    operation.first_wait = static_cast<std::uint32_t>(program.waits.size());
    operation.waits = static_cast<std::uint32_t>(counts.next());
    for (std::uint32_t i = 0; i < operation.waits; ++i) {
      const std::uint64_t wait = waits.next();
      if (wait >= program.operations.size()) throw InputError("a program in which an operation waits for a later one");
      program.waits.push_back(static_cast<std::uint32_t>(wait));
    }
    program.operations.push_back(operation);
  }
  for (const Column* column : {&times, &peers, &bytes, &tags, &counts, &waits}) column->end();
  return program;
}

}  // namespace mltcp::experiment::protocol
