// Reader of a single job (see job_file.h).
#include "mltcp/lab/experiment/files/job_file.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "mltcp/lab/experiment/files/settings_reader.h"

namespace mltcp::experiment {
namespace {

class JobReader : public SettingsReader {
 public:
  explicit JobReader(std::string where) : SettingsReader(std::move(where), no_options()) {}

  workload::Job read(const toml::table& root) const {
    if (root.empty()) fail(1, "job", "the text is empty", "write [[job]] and, below it, compute and communicate");
    const auto list = find(root, "", "job");
    if (!list) return read_job({&root, "", 1}, root);
    check_keys(root, "", {"job"});
    const toml::array* jobs = list->node->as_array();
    if (jobs == nullptr || jobs->size() != 1)
      fail(*list,
           jobs == nullptr ? std::string("this is not a list of jobs") : fmt::format("there are {} jobs", jobs->size()),
           "write one [[job]]");
    const toml::node& job = *jobs->get(0);
    const Item item{&job, "job", line_of(job, list->line)};
    return read_job(item, table(item, "[[job]] above its keys"));
  }

 private:
  static const FileOptions& no_options() {
    static const FileOptions options;
    return options;
  }
  [[nodiscard]] std::string hint(std::string_view /*prefix*/, std::string_view key) const override {
    if (key == "trace" || key == "profile" || key == "replay")
      return "files are not read here: send the output of `mltcp inspect --toml FILE`, or the file's text";
    if (key == "cc") return "the program chooses its congestion control: leave it out";
    if (key == "hosts") return "hosts are chosen when the job arrives: leave it out";
    if (key == "pattern" || key == "parallel") return "write the phases of one worker with compute and communicate";
    if (key == "count") return "send one job at a time";
    return {};
  }

  workload::Job read_job(const Item& item, const toml::table& keys) const {
    std::vector<std::string> known{"name", "compute", "communicate", "phases"};
    for (std::string& key : file_keys<workload::Job>()) known.push_back(std::move(key));
    check_keys(keys, item.key, known);
    workload::Job job;
    if (const auto name = find(keys, item.key, "name")) job.name = name_text(*name);
    read_keys(item, keys, job);
    std::vector<std::string> no_warnings;  // stays empty, because only other files cause warnings
    read_iteration(item, keys, job, no_warnings);
    return job;
  }
};

}  // namespace

workload::Job parse_job(std::string_view text, const std::string& where) {
  return JobReader(where).read(parse_toml(text, where, "docs/reference/experiment-job.md"));
}

}  // namespace mltcp::experiment
