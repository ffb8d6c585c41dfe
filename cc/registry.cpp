// Stores all algorithms by name (see registry.h).
#include "mltcp/cc/registry.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/cubic.h"
#include "mltcp/cc/dcqcn.h"
#include "mltcp/cc/dctcp.h"
#include "mltcp/cc/nscc.h"
#include "mltcp/cc/reno.h"
#include "mltcp/cc/swift.h"
#include "mltcp/cc/turns.h"

namespace mltcp::cc {
namespace {

/// A list that only grows, so that readers need no lock.
class Registry {
 public:
  Registry() {
    for (const AlgorithmTable* table : {&table_of<Reno>(), &table_of<Cubic>(), &table_of<Dctcp>(), &table_of<Dcqcn>(),
                                        &table_of<Swift>(), &table_of<Nscc>()})
      add(*table, {});
  }

  [[nodiscard]] std::span<const AlgorithmTable* const> tables() const {
    return {tables_.data(), count_.load(std::memory_order_acquire)};
  }
  [[nodiscard]] std::filesystem::path file_of(const AlgorithmTable& table) const {
    for (std::size_t i = 0; i < tables().size(); ++i)
      if (tables_[i] == &table) return files_[i];
    return {};
  }

  void add(const AlgorithmTable& table, const std::filesystem::path& file) {
    if (table.name == Turns::name)
      throw InputError(
          fmt::format("{} is the name of a policy; give this congestion control another name", in_quotes(table.name)));
    const std::lock_guard lock(adding_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      if (tables_[i] == &table && files_[i] == file) return;
      if (tables_[i]->name == table.name)
        throw InputError(fmt::format("there is another congestion control {}{}; give this one another name",
                                     in_quotes(table.name),
                                     files_[i].empty() ? "" : ", of " + in_quotes(files_[i].string())));
    }
    if (count == kMaxAlgorithms)
      throw InputError(fmt::format("there are {} congestion controls already; leave some out", kMaxAlgorithms));
    tables_[count] = &table;
    files_[count] = file;
    count_.store(count + 1, std::memory_order_release);
  }

 private:
  std::mutex adding_;
  std::atomic<std::size_t> count_ = 0;
  std::array<const AlgorithmTable*, kMaxAlgorithms> tables_{};
  std::array<std::filesystem::path, kMaxAlgorithms> files_;
};

Registry& registry() {
  static Registry all;
  return all;
}

// Returns the registered algorithm called `name`; null if there is none.
const AlgorithmTable* registered(std::string_view name) {
  for (const AlgorithmTable* table : registry().tables())
    if (table->name == name) return table;
  return nullptr;
}

std::string abi_text(std::uint64_t abi) {
  return fmt::format("{}-{:08x}", abi >> 32U, static_cast<std::uint32_t>(abi));
}

}  // namespace

std::span<const AlgorithmTable* const> algorithms() { return registry().tables(); }

std::string algorithm_names() {
  std::string names;
  for (const AlgorithmTable* table : algorithms()) {
    if (!names.empty()) names += ", ";
    names += table->name;
  }
  return names;
}

const AlgorithmTable& find_algorithm(std::string_view name) {
  if (const AlgorithmTable* table = registered(name)) return *table;
  std::vector<std::string> known;
  for (const AlgorithmTable* table : algorithms()) known.emplace_back(table->name);
  const auto meant = nearest(name, known);
  throw InputError(fmt::format("there is no congestion control {}; {}", in_quotes(name),
                               meant ? fmt::format("did you mean {}?", in_quotes(*meant))
                                     : fmt::format("write one of {}, or FILE.so:NAME", algorithm_names())));
}

std::vector<const ParameterTable*> parameter_tables() {
  static constexpr ParameterTable turns = parameter_table<Turns>();
  std::vector<const ParameterTable*> tables(algorithms().begin(), algorithms().end());
  tables.push_back(&turns);
  return tables;
}

const ParameterTable& find_parameters(std::string_view name) {
  const std::vector<const ParameterTable*> tables = parameter_tables();
  if (const auto at = std::ranges::find(tables, name, &ParameterTable::name); at != tables.end()) return **at;
  std::vector<std::string> known;
  for (const ParameterTable* table : tables) known.emplace_back(table->name);
  const auto meant = nearest(name, known);
  throw InputError(fmt::format("no congestion control or policy {} has parameters; {}", in_quotes(name),
                               meant ? fmt::format("did you mean {}?", in_quotes(*meant))
                                     : fmt::format("write one of {}", fmt::join(known, ", "))));
}

const AlgorithmTable& register_algorithm(const AlgorithmTable& table) {
  registry().add(table, {});
  return table;
}

const AlgorithmTable& load_algorithm(const std::filesystem::path& file, std::string_view name) {
  const std::string shown = in_quotes(file.string());
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored))
    throw InputError(fmt::format("there is no file {}; build it, or correct the path", shown));
  const std::filesystem::path absolute = std::filesystem::canonical(file);
  struct Close {
    void operator()(void* handle) const { dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle(dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (handle == nullptr)
    throw InputError(
        one_line(fmt::format("{} can't be loaded ({}); name a shared object that is built against this "
                             "version's headers",
                             shown, dlerror())));
  const auto tells = std::bit_cast<decltype(&mltcp_cc_library)>(dlsym(handle.get(), "mltcp_cc_library"));
  if (tells == nullptr)
    throw InputError(
        fmt::format("{} has no function mltcp_cc_library(), so no congestion control; define it "
                    "(docs/reference/algorithms.md)",
                    shown));
  const AlgorithmLibrary* library = tells();
  if (library == nullptr || library->abi != kLibraryAbi)
    throw InputError(
        fmt::format("{} is built for ABI {} of congestion control, and this program has {}; build it "
                    "against this version's headers",
                    shown, library == nullptr ? "0" : abi_text(library->abi), abi_text(kLibraryAbi)));
  std::string names;
  for (const AlgorithmTable* table : std::span(library->tables, library->count)) {
    if (table->name == name) {
      registry().add(*table, absolute);
      static_cast<void>(handle.release());
      return *table;
    }
    if (!names.empty()) names += ", ";
    names += table->name;
  }
  throw InputError(fmt::format("{} has no congestion control {}; it has: {}", shown, in_quotes(name),
                               names.empty() ? "none" : names));
}

const AlgorithmTable& algorithm_from(std::string_view text, const std::filesystem::path& folder) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return find_algorithm(text);
  const std::filesystem::path file(text.substr(0, colon));
  if (file.empty()) throw InputError(fmt::format("{} names no file; write FILE.so:NAME", in_quotes(text)));
  std::error_code ignored;
  if (const AlgorithmTable* meant = registered(file.string());
      meant != nullptr && !std::filesystem::exists(folder / file, ignored))
    throw InputError(
        fmt::format("{}: {} is built into this program, and its name takes no parameters; write {}, and parameters "
                    "into the experiment file, such as [{}] {} = ...",
                    in_quotes(text), meant->name, meant->name, meant->name,
                    meant->parameters.empty() ? "KEY" : meant->parameters.front().name));
  return load_algorithm(folder / file, text.substr(colon + 1));
}

std::filesystem::path library_file(const AlgorithmTable& table) { return registry().file_of(table); }

}  // namespace mltcp::cc
