// Formats the screens of `mltcp top` (see top_view.h).
#include "top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "mltcp/base/text.h"

namespace mltcp::tools {
namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kPlain = "\x1b[0m";

/// A row of a table, and the values by which it can be sorted.
struct Row {
  std::vector<std::string> cells;
  double rate = 0;
  std::uint64_t retransmits = 0;
  bool is_alarming = false;
};

struct Section {
  std::vector<std::string> header;
  std::size_t left = 1;  ///< number of left-aligned columns
  std::vector<Row> rows;
};

/// Returns the number of bytes of UTF-8 text that fill `columns` columns. Each character counts as one column.
std::size_t bytes_for(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (count++ == columns) break;
  }
  return at;
}
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}
std::string clipped(std::string_view text, std::size_t columns) {
  return std::string(text.substr(0, bytes_for(text, columns)));
}

double since(const TopProcess& process) {
  return process.before ? process.now.up_seconds - process.before->up_seconds : 0;
}
/// Returns the increase of a counter per second; 0 if the time is unknown or if the counter was reset.
double rate(double now, double before, double seconds) {
  return seconds > 0 && now > before ? (now - before) / seconds : 0;
}

std::string number(double value) { return fmt::format("{:.{}f}", value, value < 100 ? 2 : 1); }
std::string or_dash(double value, double scale) { return value > 0 ? number(value * scale) : "-"; }
std::string count(double value) {
  if (value < 1e5) return fmt::format("{:.0f}", value);
  return value < 1e8 ? fmt::format("{:.0f}k", value * 1e-3) : fmt::format("{:.0f}M", value * 1e-6);
}
std::string duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(seconds, 0.0));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

// ---- Contents of each section ----

Section processes_section(const std::vector<TopProcess>& processes) {
  Section section{{"PROCESS", "PID", "UP", "JOBS", "CONNS", "POLICY"}, 1, {}};
  for (const TopProcess& process : processes) {
    const live::Snapshot& now = process.now;
    section.rows.push_back(
        {{fmt::format("{} {}", now.kind, now.name), std::to_string(now.pid), duration(now.up_seconds),
          std::to_string(now.jobs.size()), fmt::format("{}{}", now.connections.size(), now.left_out > 0 ? "+" : ""),
          now.policy.empty() ? "-" : now.policy}});
  }
  return section;
}

Section jobs_section(const std::vector<TopProcess>& processes) {
  Section section{{"JOB", "RANK", "ITERATION", "LAST ms", "MEAN ms", "RATIO", "GAIN", "SENT Mbps", "CONNS"}, 1, {}};
  for (const TopProcess& process : processes) {
    for (const live::JobView& job : process.now.jobs) {
      double mbps = 0;
      if (process.before)
        for (const live::JobView& was : process.before->jobs)
          if (was.name == job.name && was.rank == job.rank)
            mbps =
                rate(static_cast<double>(job.sent_bytes), static_cast<double>(was.sent_bytes), since(process)) * 8e-6;
      Row& row = section.rows.emplace_back();
      row.cells = {
          job.name,
          std::to_string(job.rank),
          job.iterations > 0 ? fmt::format("{}/{}", job.iteration, job.iterations) : std::to_string(job.iteration),
          or_dash(job.last_seconds, 1e3),
          or_dash(job.mean_seconds, 1e3),
          fmt::format("{:.2f}", job.bytes_ratio),
          fmt::format("{:.2f}", job.gain),
          number(mbps),
          std::to_string(job.connections)};
      row.rate = mbps;
    }
  }
  return section;
}

Section connections_section(const std::vector<TopProcess>& processes) {
  Section section{{"CONNECTION", "JOB", "CWND kB", "RTT us", "SENT Mbps", "RETR", "LOST", "MARKED"}, 2, {}};
  for (const TopProcess& process : processes) {
    const auto& now = process.now.connections;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const live::ConnectionView& connection = now[i];
      double mbps = 0;
      // A connection keeps its index as long as no connection is opened or closed.
      if (process.before && i < process.before->connections.size()) {
        const live::ConnectionView& was = process.before->connections[i];
        if (was.peer == connection.peer && was.job == connection.job)
          mbps = rate(static_cast<double>(connection.transport.bytes_sent),
                      static_cast<double>(was.transport.bytes_sent), since(process)) *
                 8e-6;
      }
      Row& row = section.rows.emplace_back();
      row.cells = {connection.peer,
                   connection.job.empty() ? "-" : connection.job,
                   number(connection.transport.cwnd_bytes * 1e-3),
                   or_dash(connection.transport.smoothed_rtt.seconds(), 1e6),
                   number(mbps),
                   count(static_cast<double>(connection.transport.retransmitted_packets)),
                   count(static_cast<double>(connection.transport.lost_packets)),
                   count(static_cast<double>(connection.transport.ce_packets))};
      row.rate = mbps;
      row.retransmits = connection.transport.retransmitted_packets;
    }
  }
  return section;
}

Section ports_section(const std::vector<TopProcess>& processes) {
  Section section{
      {"PORT", "LINK", "IN Mbps", "IN pkt/s", "OUT Mbps", "OUT pkt/s", "QUEUE", "DROP", "MARK", "BAD"}, 1, {}};
  for (const TopProcess& process : processes) {
    for (const live::PortView& port : process.now.ports) {
      live::PortView was;
      double seconds = 0;
      if (process.before)
        for (const live::PortView& before : process.before->ports)
          if (before.name == port.name) {
            was = before;
            seconds = since(process);
          }
      const auto of = [&](std::uint64_t now, std::uint64_t before) {
        return rate(static_cast<double>(now), static_cast<double>(before), seconds);
      };
      const double in = of(port.received_packets, was.received_packets);
      const double out = of(port.sent_packets, was.sent_packets);
      Row& row = section.rows.emplace_back();
      row.cells = {port.name,
                   port.is_up ? "up" : "down",
                   port.received_bytes > 0 ? number(of(port.received_bytes, was.received_bytes) * 8e-6) : "-",
                   count(in),
                   port.sent_bytes > 0 ? number(of(port.sent_bytes, was.sent_bytes) * 8e-6) : "-",
                   count(out),
                   bytes_to_text(port.queue_bytes),
                   count(static_cast<double>(port.dropped_packets)),
                   count(static_cast<double>(port.marked_packets)),
                   count(static_cast<double>(port.bad_packets))};
      row.rate = in + out;
      row.retransmits = port.dropped_packets;
      row.is_alarming = !port.is_up;
    }
  }
  return section;
}

Section claims_section(const std::vector<TopProcess>& processes) {
  Section section{{"CLAIMS OF JOB", "SEEN BY", "VERDICT", "ITERATIONS", "Mbps", "AT END", "PROGRESS"}, 3, {}};
  for (const TopProcess& process : processes) {
    for (const live::ClaimView& claim : process.now.claims) {
      double mbps = 0;
      if (process.before)
        for (const live::ClaimView& was : process.before->claims)
          if (was.job == claim.job)
            mbps = rate(static_cast<double>(claim.bytes), static_cast<double>(was.bytes), since(process)) * 8e-6;
      const double at_end =
          claim.bytes == 0 ? 0 : static_cast<double>(claim.bytes_at_end) / static_cast<double>(claim.bytes);
      Row& row = section.rows.emplace_back();
      row.cells = {claim.job,
                   fmt::format("{} {}", process.now.kind, process.now.pid),
                   claim.verdict,
                   std::to_string(claim.iterations),
                   number(mbps),
                   fmt::format("{:.1f}%", 100 * at_end),
                   fmt::format("{:.2f}", claim.mean_progress)};
      row.rate = mbps;
      row.is_alarming = claim.is_overstated;
    }
  }
  return section;
}

// ---- Lines ----

void order(Section& section, TopSort sort) {
  std::ranges::stable_sort(section.rows, [&](const Row& a, const Row& b) {
    if (sort == TopSort::rate && a.rate != b.rate) return a.rate > b.rate;
    if (sort == TopSort::retransmits && a.retransmits != b.retransmits) return a.retransmits > b.retransmits;
    return a.cells < b.cells;
  });
}

/// Returns the width of each column, as wide as its widest cell. If the screen is too narrow, the first columns become
/// narrower.
std::vector<std::size_t> widths_of(const Section& section, std::size_t columns) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < section.header.size(); ++i) {
    std::size_t width = columns_of(section.header[i]);
    for (const Row& row : section.rows) width = std::max(width, columns_of(row.cells[i]));
    widths.push_back(width);
  }
  std::size_t all = widths.size() - 1;
  for (const std::size_t width : widths) all += width;
  for (std::size_t i = 0; i < section.left && all > columns; ++i) {
    const std::size_t min = columns_of(section.header[i]);
    const std::size_t less = std::min(widths[i] - std::min(widths[i], min), all - columns);
    widths[i] -= less;
    all -= less;
  }
  return widths;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths, std::size_t left,
                    std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = clipped(cells[i], widths[i]);
    const std::string space(widths[i] - columns_of(cell), ' ');
    line += (i > 0 ? " " : "") + (i < left ? cell + space : space + cell);
  }
  while (line.ends_with(' ')) line.pop_back();
  return clipped(line, columns);
}

std::string painted_line(const std::string& line, std::string_view colour, bool has_colours) {
  return has_colours ? fmt::format("{}{}{}\n", colour, line, kPlain) : line + "\n";
}

/// Returns the lines of a section, at most `max` including the header.
std::string text_of(const Section& section, const TopOptions& options, std::size_t max) {
  if (max == 0) return "";
  const std::vector<std::size_t> widths = widths_of(section, options.columns);
  std::string text =
      painted_line(line_of(section.header, widths, section.left, options.columns), kBold, options.has_colours);
  std::size_t shown = section.rows.size();
  if (shown + 1 > max) shown = max >= 2 ? max - 2 : 0;
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string line = line_of(section.rows[i].cells, widths, section.left, options.columns);
    text += section.rows[i].is_alarming ? painted_line(line, kRed, options.has_colours) : line + "\n";
  }
  if (shown < section.rows.size() && max >= 2)
    text += clipped(fmt::format("  ... {} more", section.rows.size() - shown), options.columns) + "\n";
  return text;
}

/// Distributes lines among sections. Each section gets the lines that it needs or, if this is less, an equal part of
/// the remaining lines.
std::vector<std::size_t> shares(const std::vector<Section>& sections, std::size_t lines) {
  std::vector<std::size_t> shares(sections.size(), 0);
  while (lines > 0) {
    std::size_t wanting = 0;
    for (std::size_t i = 0; i < sections.size(); ++i) wanting += shares[i] < sections[i].rows.size() + 1 ? 1U : 0U;
    if (wanting == 0) break;
    const std::size_t each = std::max<std::size_t>(lines / wanting, 1);
    for (std::size_t i = 0; i < sections.size() && lines > 0; ++i) {
      const std::size_t more = std::min({each, lines, sections[i].rows.size() + 1 - shares[i]});
      shares[i] += more;
      lines -= more;
    }
  }
  return shares;
}

}  // namespace

TopSort next(TopSort sort) {
  return sort == TopSort::rate ? TopSort::retransmits : sort == TopSort::retransmits ? TopSort::name : TopSort::rate;
}

std::string to_text(TopSort sort) {
  return sort == TopSort::rate ? "rate" : sort == TopSort::retransmits ? "retransmits" : "name";
}

std::string top_screen(const std::vector<TopProcess>& processes, const std::vector<std::string>& problems,
                       const TopOptions& options) {
  std::string text = painted_line(
      clipped(
          fmt::format("mltcp top: {}, by {}{}",
                      processes.size() == 1 ? std::string("1 process") : fmt::format("{} processes", processes.size()),
                      to_text(options.sort), options.is_paused ? ", paused" : ""),
          options.columns),
      kBold, options.has_colours);
  std::size_t lines = 1;
  const std::size_t last = options.has_keys ? 1 : 0;
  for (const std::string& problem : problems) {
    if (options.rows > 0 && lines + last + 1 >= options.rows) break;
    text += painted_line(clipped(one_line(problem), options.columns), kRed, options.has_colours);
    ++lines;
  }
  std::vector<Section> sections;
  for (Section& section :
       std::vector<Section>{processes_section(processes), jobs_section(processes), connections_section(processes),
                            ports_section(processes), claims_section(processes)}) {
    if (section.rows.empty()) continue;
    order(section, options.sort);
    sections.push_back(std::move(section));
  }
  std::size_t left = static_cast<std::size_t>(-1);
  if (options.rows > 0) {
    // A blank line precedes each section.
    const std::size_t used = lines + last + sections.size();
    left = options.rows > used ? options.rows - used : 0;
  }
  const std::vector<std::size_t> each = shares(sections, left);
  for (std::size_t i = 0; i < sections.size(); ++i)
    if (each[i] > 0) text += "\n" + text_of(sections[i], options, each[i]);
  if (processes.empty() && (options.rows == 0 || lines + last < options.rows))
    text +=
        clipped(
            "no MLTCP process of this user can be shown; programs that use endpoints are shown if MLTCP_LIVE=1 is set",
            options.columns) +
        "\n";
  if (options.has_keys) text += clipped("q quit  s sort  p pause  space update now", options.columns) + "\n";
  return text;
}

}  // namespace mltcp::tools
