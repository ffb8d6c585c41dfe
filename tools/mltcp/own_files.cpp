// Finds the program's files (see own_files.h). The man page elf(5), section "Notes", describes the layout of a note.
#include "own_files.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <system_error>

namespace mltcp::tools {
namespace {

// Returns the build id among the notes of one segment; empty if none of them is a build id.
std::string id_among(std::span<const std::byte> notes, std::size_t alignment) {
  const auto aligned = [&](std::size_t size) { return (size + alignment - 1) / alignment * alignment; };
  constexpr std::string_view gnu("GNU", 4);  // the name includes the terminating zero
  while (notes.size() > sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head{};
    std::memcpy(&head, notes.data(), sizeof head);
    const std::size_t name = sizeof head;
    const std::size_t content = name + aligned(head.n_namesz);
    const std::size_t end = content + aligned(head.n_descsz);
    if (content + head.n_descsz > notes.size()) break;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == gnu.size() &&
        std::memcmp(notes.data() + name, gnu.data(), gnu.size()) == 0) {
      std::string digits;
      for (const std::byte byte : notes.subspan(content, head.n_descsz))
        digits += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
      return digits;
    }
    if (end > notes.size()) break;
    notes = notes.subspan(end);
  }
  return {};
}

}  // namespace

std::vector<std::filesystem::path> own_files(std::string_view name) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {};
  std::vector<std::filesystem::path> files;
  for (std::string_view folders = MLTCP_OWN_FOLDERS; !folders.empty();) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    // If the folder is absolute, operator/ returns only the folder, without the program's folder before it.
    files.push_back((program.parent_path() / folders.substr(0, end) / name).lexically_normal());
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return files;
}

std::string build_id() {
  std::string id;
  // dl_iterate_phdr() calls this with the program first, then with its libraries.
  const auto look = [](dl_phdr_info* object, std::size_t /*size*/, void* found) {
    for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = object->dlpi_phdr[i];
      if (segment.p_type != PT_NOTE) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives the address as a number
      const auto* const begin = reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr);
      const std::string digits = id_among({begin, segment.p_memsz}, segment.p_align == 8 ? 8 : 4);
      if (!digits.empty()) *static_cast<std::string*>(found) = digits;
    }
    return 1;  // stop before the libraries
  };
  dl_iterate_phdr(look, &id);
  return id;
}

}  // namespace mltcp::tools
