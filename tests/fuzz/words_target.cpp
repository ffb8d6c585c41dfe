// Fuzzes the readers of short texts that users write or programs print: options, units, addresses, environment
// variables, key files, and Slurm's output about its jobs.
//
// Input: a byte that chooses the reader, then the text.
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/environment.h"
#include "mltcp/lab/experiment/files/host_list.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/scheduler/service/job_profile.h"
#include "mltcp/scheduler/service/slurm_client.h"
#include "mltcp/scheduler/service/slurm_mark.h"
#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/security/job_key.h"
#include "target.h"

namespace mltcp::fuzz {
namespace {

/// Returns the text that this target uses as the value of every environment variable. The text changes with each input.
/// It is static, because the readers accept only a plain function.
std::string& variable_text() {
  static std::string text;
  return text;
}
const char* every_variable(const char* name) {
  // Excludes variables that name shared objects or files, because the readers would open these.
  const std::string_view own = name;
  return own == "MLTCP_CC" || own == "MLTCP_KEY_FILE" ? nullptr : variable_text().c_str();
}

/// Calls `read`, which reads the output of Slurm. An error message must be one line.
template <typename Read>
void is_read_of_slurm(Read read) {
  try {
    read();
  } catch (const service::SlurmError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos, "a refusal in more than one line");
  }
}

}  // namespace

void fuzz_words(Input input) {
  Program program(input);
  const std::uint8_t reader = program.byte();
  const std::string text = program.text();
  switch (reader % 10) {
    case 0:
      is_read([&] { static_cast<void>(capture::parse_capture("--pcap", text)); });
      return;
    case 1:
      is_read([&] {
        const Nanos time = parse_duration(text);
        require(time.count >= 0, "a duration below 0");
      });
      is_read([&] { static_cast<void>(parse_bytes(text)); });
      is_read([&] { static_cast<void>(parse_rate(text)); });
      return;
    case 2:
      variable_text() = text;
      is_read([] { static_cast<void>(endpoint::read_environment(every_variable)); });
      is_read([] { static_cast<void>(endpoint::read_plan(every_variable)); });
      is_read([&] {
        const auto key = security::JobKey::from_text(text, "key");
        require(security::JobKey::from_text(key.to_text(), "key") == key, "a key is not read as it was written");
      });
      return;
    case 3:
      is_read([&] {
        const auto address = experiment::parse_stream_address(text);
        const auto again = experiment::parse_stream_address(experiment::to_text(address));
        require(again.host == address.host && again.port == address.port && again.path == address.path,
                "an address is not read as it was written");
      });
      return;
    case 4:
      is_read([&] { require(experiment::expand_hosts(text, 65'536).size() <= 65'536, "too many hosts"); });
      return;
    case 5:
      is_read_of_slurm([&] {
        auto jobs = service::parse_jobs(text);
        is_read_of_slurm([&] { service::parse_barred_nodes(text, jobs); });
      });
      return;
    case 6:
      is_read_of_slurm([&] { static_cast<void>(service::parse_nodes(text)); });
      return;
    case 7:
      if (const auto mark = service::parse_mark(text)) {
        const auto again = service::parse_mark(service::to_text(*mark));
        require(again == mark, "a mark is not read as it was written");
      }
      return;
    default:
      is_read([&] {
        const service::JobProfile profile = service::profile_from_text(text, "profile");
        is_read([&] { static_cast<void>(service::demand_of(profile, Rate(10'000'000'000))); });
      });
      return;
  }
}

}  // namespace mltcp::fuzz
