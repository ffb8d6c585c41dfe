# Writes a C++ source that contains the BPF objects.
#
#   cmake -DOUTPUT=objects.cpp -DOBJECTS=reno=FILE,cubic=FILE -P EmbedObjects.cmake
string(REPLACE "," ";" objects "${OBJECTS}")
set(arrays "")
set(choices "")
foreach(object IN LISTS objects)
  string(REGEX MATCH "^([a-z]+)=(.*)$" matched "${object}")
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "alignas(8) constexpr unsigned char ${name}[] = {${bytes}};\n")
  string(APPEND choices "  if (algorithm == \"${name}\") return ${name};\n")
endforeach()
file(WRITE ${OUTPUT} "// Made by the build of plugins/kernel/bpf (cmake/EmbedObjects.cmake).
#include \"mltcp/plugins/kernel/internal/objects.h\"

namespace mltcp::kernel::internal {
namespace {

${arrays}
}  // namespace

std::span<const unsigned char> object_of(std::string_view algorithm) {
${choices}  return {};
}

}  // namespace mltcp::kernel::internal
")
