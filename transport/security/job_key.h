// The key that the hosts of a job share before it begins (a pre-shared key): 256 random bits, in a file that only its
// owner may read, or given by a descriptor or by the program. Never on a command line or in the environment, where
// others can see it.
//
// The file is text: lines that begin with '#' are comments, one line is "mltcp-key-1 " and 64 hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "mltcp/transport/security/secret.h"

namespace mltcp::security {

class JobKey {
 public:
  static constexpr std::size_t kSize = 32;

  /// A new one, from the system's random numbers.
  static JobKey generate();
  explicit JobKey(const Secret<kSize>& secret);

  /// Reads a key file. Throws InputError if it is no regular file, if others than its owner may read or write it, if
  /// the owner is neither this user nor root, or if there is no key in it.
  static JobKey from_file(const std::filesystem::path& path);
  /// Reads a key file's text from a descriptor to its end, as a secret manager or a shell's redirection hands it over.
  /// A regular file is read from its beginning, as often as wanted, and has the same permissions as with from_file(); a
  /// pipe or a socket has none to check, and is read once. The descriptor stays open. Blocks until the end comes.
  /// Throws InputError likewise.
  static JobKey from_descriptor(int descriptor);
  /// As options and variables of the environment name one: the path of a key file, or "fd:N", a descriptor, which is
  /// read to its end. (A file of that name is "./fd:N".) Throws InputError likewise, also for a key in place of its
  /// file's name, which is not repeated.
  static JobKey from_source(std::string_view source);
  /// A key file's text; `name` is for messages. Throws InputError. Messages never quote what may be a key.
  static JobKey from_text(std::string_view text, std::string_view name);

  /// The text of a key file.
  [[nodiscard]] std::string to_text() const;
  /// Writes a new key file, readable by its owner only. Throws InputError if something of that name exists: a key is
  /// not replaced by mistake.
  void write_file(const std::filesystem::path& path) const;

  /// Tells which key it is without telling the key: derived from it by HKDF. Goes over the network, and may be printed.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const Secret<kSize>& secret() const { return secret_; }

  bool operator==(const JobKey& other) const { return secret_ == other.secret_; }

 private:
  Secret<kSize> secret_;
  std::uint64_t id_ = 0;
};

}  // namespace mltcp::security
