// The key that the hosts of a job share before the job begins (a pre-shared key): 256 random bits. It comes from a file
// that only its owner may read, from a file descriptor, or from the program. Never put it on a command line or in the
// environment, where others can see it.
//
// The file is text. Lines that begin with '#' are comments. One line consists of "mltcp-key-1 " and 64 hexadecimal
// digits.
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

  /// Returns a new key, drawn from the system's random number generator.
  static JobKey generate();
  /// Throws InputError if all bits are 0.
  explicit JobKey(const Secret<kSize>& secret);

  /// Reads a key file. Throws InputError if it is not a regular file, if users other than its owner may access it, if
  /// the owner is neither this user nor root, or if it contains no key.
  static JobKey from_file(const std::filesystem::path& path);
  /// Reads the text of a key file from a descriptor until its end, for example from a secret manager or a shell's
  /// redirection. Blocks until then. A regular file is read from its beginning, can be read again, and must have the
  /// permissions that from_file() requires. A pipe or a socket is read once, without a check of permissions. The
  /// descriptor stays open. Throws InputError like from_file().
  static JobKey from_descriptor(int descriptor);
  /// Reads the key that an option or environment variable names: the path of a key file, or "fd:N" for descriptor N.
  /// For a file that is named "fd:N", give "./fd:N". Throws InputError like from_file(), and also if `source` looks
  /// like a key instead of a file name. The message does not quote `source` in that case.
  static JobKey from_source(std::string_view source);
  /// Parses the text of a key file. Error messages contain `name`, and never quote a possible key. Throws InputError if
  /// the text is invalid.
  static JobKey from_text(std::string_view text, std::string_view name);

  /// Returns the text of a key file with this key.
  [[nodiscard]] std::string to_text() const;
  /// Writes a new key file that only its owner can read. Throws InputError if the file cannot be written, or if `path`
  /// exists, so that no key is replaced by mistake.
  void write_file(const std::filesystem::path& path) const;

  /// Returns a number that identifies the key without revealing it, derived from the key by HKDF. This number is sent
  /// over the network and may be printed.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const Secret<kSize>& secret() const { return secret_; }

  bool operator==(const JobKey& other) const { return secret_ == other.secret_; }

 private:
  Secret<kSize> secret_;
  std::uint64_t id_ = 0;
};

}  // namespace mltcp::security
