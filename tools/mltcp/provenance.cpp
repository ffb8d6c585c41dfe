// Collects the provenance of this process (see provenance.h). Computes SHA-256 with OpenSSL.
#include "provenance.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "own_files.h"

namespace mltcp::tools {
namespace {

constexpr std::size_t kMaxText = std::size_t{64} << 10U;  // maximum size of a file that is stored completely, in bytes

struct BuildInfo {
  std::string commit;
  bool modified = false;
  std::string build;
};

/// Returns the information in build.json beside this program, which cmake/BuildInfo.cmake writes. Ignores a file with
/// another build id, which belongs to another program in the same folder.
BuildInfo build_info() {
  const std::string own_id = build_id();
  if (own_id.empty()) return {};
  for (const std::filesystem::path& path : own_files("build.json")) {
    std::ifstream file(path);
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (!json.is_object()) continue;
    try {
      if (json.at("build_id").get<std::string>() == own_id)
        return {json.at("commit"), json.at("modified"), json.at("build")};
    } catch (const nlohmann::json::exception&) {
      // Another version of the program has written this file: try the next file.
    }
  }
  return {};
}

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1)
    throw RunError("OpenSSL has no SHA-256, which results files need; check its configuration (OPENSSL_CONF)");
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(nlohmann::json(text).dump());
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

std::string date_now() {
  std::time_t now = std::time(nullptr);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets environment variables
  if (const char* const fixed = std::getenv("SOURCE_DATE_EPOCH")) {
    const std::string_view text = fixed;
    constexpr std::int64_t year_9999 = 253'402'300'799;
    const auto seconds = number_from<std::int64_t>(text, 0, year_9999);
    if (!seconds)
      throw InputError(
          fmt::format("SOURCE_DATE_EPOCH: {} is not a whole number of seconds since 1970; set it to one, e.g. "
                      "1700000000, or unset it",
                      in_quotes(text)));
    now = static_cast<std::time_t>(*seconds);
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

/// Returns the text after `key` and `separator` in a file with lines such as "model name : ..." or PRETTY_NAME="...".
std::string entry(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    std::string value = line.substr(at + 1);
    const auto unwanted = [](char c) { return c == ' ' || c == '\t' || c == '"'; };
    while (!value.empty() && unwanted(value.back())) value.pop_back();
    while (!value.empty() && unwanted(value.front())) value.erase(value.begin());
    return value;
  }
  return {};
}

Provenance::Machine this_machine() {
  Provenance::Machine machine;
  machine.cpu = entry("/proc/cpuinfo", "model name", ':');
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    machine.cpus = static_cast<std::uint32_t>(CPU_COUNT(&allowed));
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) machine.memory = static_cast<Bytes>(pages) * static_cast<Bytes>(page);
  machine.system = entry("/etc/os-release", "PRETTY_NAME", '=');
  utsname names{};
  if (uname(&names) == 0) {
    const char* const system = names.sysname;
    const char* const release = names.release;
    const char* const architecture = names.machine;
    machine.kernel = fmt::format("{} {} {}", system, release, architecture);
  }
  return machine;
}

}  // namespace

std::string version_text() {
  constexpr std::size_t short_commit = 12;
  const BuildInfo info = build_info();
  if (info.commit.empty()) return MLTCP_VERSION;
  return fmt::format("{} ({}{})", MLTCP_VERSION, info.commit.substr(0, short_commit),
                     info.modified ? ", modified" : "");
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (words.empty()) words.emplace_back("mltcp");
  words.front() = std::filesystem::path(words.front()).filename().string();
  return words;
}

FilesRead::FilesRead()
    : observer_([this](const std::filesystem::path& path, const std::string& text) {
        const std::string name = path.string();
        if (std::ranges::any_of(files_, [&](const auto& file) { return file.path == name; })) return;
        Provenance::File file{name, sha256(text), text.size(), std::nullopt};
        if (text.size() <= kMaxText && is_utf8(text)) file.text = text;
        files_.push_back(std::move(file));
      }) {}

Provenance provenance_of(const FilesRead& read) {
  const BuildInfo info = build_info();
  Provenance provenance;
  provenance.version = MLTCP_VERSION;
  provenance.commit = info.commit;
  provenance.modified = info.modified;
  provenance.build = info.build;
  provenance.date = date_now();
  provenance.command = command_line();
  provenance.files = read.files();
  provenance.machine = this_machine();
  return provenance;
}

}  // namespace mltcp::tools
