// The file of a capture, or its ring of files: appends blocks, changes to the next file, and handles disk errors.
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
  /// Creates the file, or the first file of a ring. Throws RunError if that fails, or if another capture is writing to
  /// the file.
  CaptureFile(const CaptureOptions& options, std::string comment);
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  /// Adds an interface. Call before the first packet.
  void add(const InterfaceInfo& info);
  /// Throws RunError if the maximum size of a file is too small for the descriptions of the interfaces and one packet.
  void check_size() const;
  /// Appends a packet. Returns false if the file cannot be written any more, or has reached its maximum size. is_over()
  /// is then true.
  bool packet(std::uint32_t interface, Nanos time, Direction direction, std::span<const std::byte> header,
              std::span<const std::byte> data, std::uint32_t original_bytes);
  /// Appends the statistics of an interface, even beyond the maximum size. Call it after the last packet.
  void statistics(std::uint32_t interface, const InterfaceStatistics& statistics);
  /// Writes everything appended so far to the file.
  void flush();

  [[nodiscard]] bool is_over() const { return is_full_ || !failure_.empty(); }
  [[nodiscard]] bool is_full() const { return is_full_; }
  /// Why the file cannot be written any more; empty if it can.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// Name of the file, or of the newest file of a ring.
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
