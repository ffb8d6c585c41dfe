// `mltcp top`: shows the user's running MLTCP processes live (docs/how-to/top.md). It controls the terminal by ECMA-48
// sequences, and by the alternate screen of xterm, which all usual terminals support.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/text.h"
#include "mltcp/endpoint/live/control_socket.h"
#include "mltcp/endpoint/live/snapshot_fields.h"
#include "terminal.h"
#include "top_view.h"

namespace mltcp::tools {
namespace {

struct TopArguments {
  std::string every = "1s";
  std::string sort = "rate";
  bool once = false;
  bool json = false;
  bool describe = false;
};

void add_options(Options& options, TopArguments& arguments) {
  options.add("--every", arguments.every, "Time between updates, 100ms to 60min; default 1s");
  options.add("--sort", arguments.sort, "Order of rows: rate, retransmits or name; default rate")
      .check(one_of({"rate", "retransmits", "name"}));
  options.flag("--once", arguments.once, "Print one update, measured over --every, and exit, for scripts");
  options.flag("--json", arguments.json, "Print the counters once as JSON, and exit");
  options.flag("--describe", arguments.describe, "Print all metrics as a Markdown table, and exit");
}

/// Reads the state of the running processes, and stores the previous state of each.
class Looker {
 public:
  void look() {
    std::map<std::string, live::Snapshot> before = std::move(latest_);
    latest_.clear();
    processes_.clear();
    problems_.clear();
    for (live::Asked& asked : live::ask_all()) {
      if (!asked.snapshot) {
        problems_.push_back(fmt::format("{}: {}", one_line(asked.path), asked.problem));
        continue;
      }
      TopProcess& process = processes_.emplace_back();
      process.now = *asked.snapshot;
      if (const auto found = before.find(asked.path);
          found != before.end() && found->second.up_seconds < process.now.up_seconds)
        process.before = std::move(found->second);
      latest_.emplace(std::move(asked.path), std::move(*asked.snapshot));
    }
  }
  [[nodiscard]] const std::vector<TopProcess>& processes() const { return processes_; }
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::map<std::string, live::Snapshot> latest_;  ///< for each control socket: the latest state
  std::vector<TopProcess> processes_;
  std::vector<std::string> problems_;
};

void write_screen(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the terminal is closed, which a signal also reports
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler can use only such a variable
volatile std::sig_atomic_t wants_to_stop = 0;

/// Uses the terminal as a screen and a keyboard. The destructor restores the terminal.
class Screen {
 public:
  Screen() {
    tcgetattr(STDIN_FILENO, &before_);
    enter();
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_handler = [](int /*signal*/) { wants_to_stop = 1; };
    sigaction(SIGTSTP, &action, &stop_before_);
    action.sa_handler = [](int /*signal*/) {};  // a resize ends the wait for a key; draw() uses the new size
    sigaction(SIGWINCH, &action, &resize_before_);
  }
  ~Screen() {
    leave();
    sigaction(SIGTSTP, &stop_before_, nullptr);
    sigaction(SIGWINCH, &resize_before_, nullptr);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static void draw(const std::string& text) {
    // Overwrite the screen line by line to avoid flicker, then erase the rest.
    std::string out = "\x1b[H";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      out += text.substr(at, end - at) + "\x1b[K";
      at = end + 1;
      if (at < text.size()) out += "\r\n";
    }
    write_screen(out + "\x1b[J");
  }
  static void size(TopOptions& options) {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
    options.columns = size.ws_col;
    options.rows = size.ws_row;
  }
  /// Waits for a key. Returns 0 if no key was pressed within `limit`, or if a signal interrupted the wait.
  char key(Nanos limit) {
    if (wants_to_stop != 0) {
      wants_to_stop = 0;
      leave();
      raise(SIGSTOP);
      enter();
      return 0;
    }
    pollfd file{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const auto milliseconds = static_cast<int>(std::clamp<std::int64_t>(limit.count / 1'000'000, 0, 1000));
    if (poll(&file, 1, milliseconds) <= 0) return 0;
    char key = 0;
    // If the terminal is closed, no key can end the program: end it.
    return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
  }

 private:
  void enter() {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_screen("\x1b[?1049h\x1b[?25l\x1b[2J");
  }
  void leave() {
    write_screen("\x1b[?25h\x1b[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  termios before_{};
  struct sigaction stop_before_ {};
  struct sigaction resize_before_ {};
};

Nanos every_of(const TopArguments& arguments) {
  const Nanos every = of_option("--every", arguments.every, parse_duration);
  if (every < Nanos(100'000'000) || every > Nanos(3'600'000'000'000))
    throw InputError(fmt::format("--every {}: give 100ms to 60min", arguments.every));
  return every;
}

int print_json() {
  nlohmann::ordered_json json{{"schema", "mltcp.top/1"},
                              {"processes", nlohmann::ordered_json::array()},
                              {"problems", nlohmann::ordered_json::array()}};
  for (const live::Asked& asked : live::ask_all()) {
    if (asked.snapshot)
      json["processes"].push_back(nlohmann::ordered_json::parse(live::to_json(*asked.snapshot)));
    else
      json["problems"].push_back(fmt::format("{}: {}", one_line(asked.path), asked.problem));
  }
  fmt::print("{}", json_text(json, 2));
  return 0;
}

template <HasFields Row>
void describe(const char* family, const char* labels = "") {
  for_each_field<Row>([&](const auto& entry) {
    using Member = typename std::remove_cvref_t<decltype(entry)>::Member;
    if constexpr (HasFields<Member>)
      describe<Member>(family, labels);
    else if constexpr (kIsMetric<decltype(entry)>)
      if (const Metric& metric = entry.about; metric.name != nullptr)
        fmt::print("| `mltcp_{}_{}` | {} | {} | {} |\n", family, metric.name,
                   is_counter(metric.name) ? "counter" : "gauge", labels, metric.help);
  });
}

int print_metrics() {
  fmt::print("| metric | type | labels | meaning |\n|---|---|---|---|\n");
  describe<live::Snapshot>("process");
  describe<live::JobView>("job", "`job`, `rank`");
  describe<live::ConnectionSums>("connections", "`job`");
  describe<live::PortView>("port", "`port`");
  describe<live::ClaimView>("claims", "`job`");
  return 0;
}

void watch(Looker& looker, TopOptions options, Nanos every) {
  Screen screen;
  Nanos next;
  while (!EndOnSignal::came()) {
    if (const Nanos now = monotonic_now(); now >= next && !options.is_paused) {
      looker.look();
      next = now + every;
    }
    Screen::size(options);
    Screen::draw(top_screen(looker.processes(), looker.problems(), options));
    switch (screen.key(options.is_paused ? every : next - monotonic_now())) {
      case 'q':
        return;
      case 's':
        options.sort = mltcp::tools::next(options.sort);
        break;
      case 'p':
        options.is_paused = !options.is_paused;
        break;
      case ' ':
        looker.look();
        next = monotonic_now() + every;
        break;
      default:
        break;
    }
  }
}

int top(const TopArguments& arguments) {
  if (arguments.once && arguments.json) throw InputError("--once, --json: give one of them");
  const Nanos every = every_of(arguments);
  if (arguments.json) return print_json();
  if (arguments.describe) return print_metrics();
  TopOptions options;
  options.every_seconds = every.seconds();
  while (to_text(options.sort) != arguments.sort) options.sort = next(options.sort);
  Looker looker;
  const EndOnSignal signals;
  if (arguments.once) {
    looker.look();
    for (Nanos left = every; left.count > 0 && !EndOnSignal::came(); left = left - Nanos(50'000'000))
      Clock::sleep(std::min(left, Nanos(50'000'000)));
    looker.look();
    options.rows = 0;
    options.columns = 160;
    options.has_keys = false;
    fmt::print("{}", top_screen(looker.processes(), looker.problems(), options));
    return 0;
  }
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
    throw InputError("mltcp top needs a terminal, but standard output is not one; add --once or --json");
  options.has_colours = takes_colours(stdout);
  watch(looker, options, every);
  return 0;
}

}  // namespace

void add_top_command(CommandLine& line) {
  line.add<TopArguments>(
      "top", "Show this user's running hosts, switches and endpoints: jobs, connections, ports (docs/how-to/top.md)",
      add_options, top);
}

}  // namespace mltcp::tools
