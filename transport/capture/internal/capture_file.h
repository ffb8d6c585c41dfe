// The file of a capture, or its ring of files: appends blocks, changes files, and handles errors of the disk.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/capture/internal/pcapng.h"

namespace mltcp::capture {

class CaptureFile {
 public:
  /// Creates the file, or the first of several. Throws RunError if that fails, or if another program is writing to it.
  CaptureFile(const CaptureOptions& options, std::string comment);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  /// Adds an interface. Call before the first packet.
  void add(const InterfaceInfo& info);
  /// Throws RunError if a file of the requested size has no room for the interfaces' descriptions and a packet.
  void check_size() const;
  /// False if the file cannot be written any more, or has reached its size: then is_over().
  bool packet(std::uint32_t interface, Nanos time, Direction direction, std::span<const std::byte> header,
              std::span<const std::byte> data, std::uint32_t original_bytes);
  /// Written last, even beyond the maximum size.
  void statistics(std::uint32_t interface, const InterfaceStatistics& statistics);
  /// Writes everything appended so far to the file.
  void flush();

  [[nodiscard]] bool is_over() const { return is_full_ || !failure_.empty(); }
  [[nodiscard]] bool is_full() const { return is_full_; }
  /// Why the file cannot be written any more; empty while it can.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// The file, or the newest of several.
  [[nodiscard]] const std::string& name() const { return names_.back(); }

 private:
  void open();
  void close();
  void begin();
  bool next_file();

  const CaptureOptions options_;
  const std::string comment_;
  std::vector<InterfaceInfo> interfaces_;
  std::deque<std::string> names_;  ///< names of the existing files, oldest first
  std::uint32_t opened_ = 0;
  int file_ = -1;
  Bytes written_ = 0;  ///< bytes written to the current file
  std::vector<std::byte> buffer_;
  bool is_full_ = false;
  std::string failure_;
};

}  // namespace mltcp::capture
