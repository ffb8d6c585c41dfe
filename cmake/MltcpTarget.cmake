# Functions that create the targets of this project: warnings, sanitizers, and the include root of each folder.
#
#   mltcp_library(cc SOURCES reno.cpp ... LINKS base [PRIVATE_LINKS fmt::fmt])
#       library mltcp_cc (alias mltcp::cc) of the calling folder; headers are "mltcp/cc/...".
#       PUBLIC_HEADERS algorithm.h ...: headers that are installed, and do not change until the next minor version.
#       UNSTABLE_HEADERS ...: headers that are installed, and may change with any version. Other headers are not
#       installed. A library is installed if it has installed headers, or if a library with installed headers links it.
#       OWN_OPTIONS: the library has its own compiler options, so that it cannot use the precompiled headers.
#       COLD: the speed of the library does not matter, so a release compiles it with -O1.
#       BATCH n: n files at a time are compiled as one (see MLTCP_UNITY).
#   mltcp_library(engine IN experiment ...)
#       library mltcp_experiment_engine (alias mltcp::experiment_engine) of a subfolder of experiment; headers are
#       "mltcp/experiment/engine/...".
#   mltcp_test(NAME SOURCES a_test.cpp ... LINKS transport sim [LABELS slow])
#       a GoogleTest program; ctest runs each of its cases separately. No other test runs at the same
#       time as a case labelled dpdk or realtime, because these cases need whole processors to poll on.
#       INTERNALS_OF transport ...: the test may include "mltcp/transport/internal/...", which only that folder may
#       include by default.
#       NO_DISCOVERY: the program is only built; a script runs it.
#       ALONGSIDE regex ...: names real-time cases that mostly wait and have generous limits. They run together with
#       tests in virtual time, but not with each other.
#   mltcp_alongside(TEST ...)
#       does the same as ALONGSIDE for tests made by add_test.

add_library(mltcp_options INTERFACE)
target_compile_options(mltcp_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wnull-dereference -Wdouble-promotion -Wformat=2 -Wimplicit-fallthrough
  $<$<BOOL:${MLTCP_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 gives false warnings about null dereferences and array bounds in its own inlined library code.
  target_compile_options(mltcp_options INTERFACE -Wno-null-dereference)
  # Compared with its defaults, GCC with these parameters is 10% faster and uses 25% more memory, 600 MB per
  # compilation.
  target_compile_options(mltcp_options INTERFACE "SHELL:--param ggc-min-expand=400" "SHELL:--param ggc-min-heapsize=524288")
endif()
if(MLTCP_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The code that sanitizers insert causes false warnings of GCC's flow analysis, for example in <regex> and <vector>.
    target_compile_options(mltcp_options INTERFACE
      -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
      -Wno-mismatched-new-delete)
  endif()
  add_compile_options(-fsanitize=${MLTCP_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MLTCP_SANITIZE})
  if(MLTCP_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# With little inlining, GCC 12's flow analysis gives false warnings in its own library code.
set(MLTCP_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(warning maybe-uninitialized restrict array-bounds stringop-overflow stringop-overread)
    list(APPEND MLTCP_COLD_OPTIONS $<$<CONFIG:Release>:-Wno-${warning}>)
  endforeach()
endif()

# Half of the time to compile a file goes to third-party headers, which hardly change. They are precompiled once for the
# libraries and once for the tests. No file may rely on precompiled headers, because the sanitizer presets and
# MLTCP_PCH=OFF build without them.
option(MLTCP_PCH "Precompile headers of the standard library, fmt and GoogleTest" ON)
if(MLTCP_SANITIZE)
  set(MLTCP_PCH OFF)
endif()
set(MLTCP_PCH_STANDARD <algorithm> <array> <chrono> <cmath> <cstddef> <cstdint> <functional> <map> <memory> <mutex>
  <optional> <set> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>)
# mltcp_precompile(NAME [PROGRAMS] HEADERS <a> ... LINKS fmt::fmt ... [OPTIONS ...]) creates the target NAME. Libraries
# name it after REUSE_FROM. With PROGRAMS, the target is for programs, which compile position-independent code
# differently (PIE).
function(mltcp_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PROGRAMS" "" "HEADERS;LINKS;OPTIONS")
  # A user of a precompiled header must be compiled with the same definitions as the header.
  foreach(link IN LISTS arg_LINKS)
    get_target_property(definitions ${link} INTERFACE_COMPILE_DEFINITIONS)
    if(definitions)
      target_compile_definitions(mltcp_options INTERFACE ${definitions})
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "// Nothing but the headers that are precompiled.\n")
  if(arg_PROGRAMS)
    add_executable(${name} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/precompiled.cpp)
  else()
    add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  endif()
  target_link_libraries(${name} PRIVATE mltcp_options ${arg_LINKS})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_precompile_headers(${name} PRIVATE ${MLTCP_PCH_STANDARD} ${arg_HEADERS})
endfunction()
if(MLTCP_PCH)
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(TBB REQUIRED)
  # Each optimisation level has its own precompiled header, because GCC does not optimise the functions of a precompiled
  # header again.
  mltcp_precompile(mltcp_precompiled HEADERS <fmt/format.h> LINKS fmt::fmt)
  mltcp_precompile(mltcp_precompiled_cold OPTIONS ${MLTCP_COLD_OPTIONS} LINKS fmt::fmt nlohmann_json::nlohmann_json TBB::tbb
    HEADERS <fmt/format.h> <fmt/ranges.h> ${PROJECT_SOURCE_DIR}/base/json/json_templates.h
      <oneapi/tbb/parallel_for.h> <oneapi/tbb/task_arena.h>)
endif()

# Headers and templates take half to two thirds of the compile time, and files that are compiled as one batch share this
# time. A batch compiles within 20 s, so that a change can be tried quickly. The datapath and the transport are compiled
# file by file. MLTCP_UNITY=OFF verifies that each file compiles by itself, as in the sanitizer presets and tools/lint.
option(MLTCP_UNITY "Compile several files of a target as one" ON)
if(MLTCP_SANITIZE AND NOT MLTCP_FUZZERS)
  set(MLTCP_UNITY OFF)
endif()
function(mltcp_unity target batch)
  list(LENGTH ARGN sources)
  if(MLTCP_UNITY AND sources GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC treats the files of a batch as headers, for which it gives this warning.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# Makes the headers of the calling folder available as "mltcp/PATH/..." to `target` and to targets that link it. PATH is
# the folder's path in the source. Only `target` can include the headers of the subfolder internal/, if there is one.
function(mltcp_include_root target)
  # An include root contains the headers of one library only. An include without a link to that library does not
  # compile.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
  set(root ${CMAKE_BINARY_DIR}/include/${target})
  file(REMOVE_RECURSE ${root})
  file(MAKE_DIRECTORY ${root}/mltcp/${path})
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  foreach(header IN LISTS headers)
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${header} ${root}/mltcp/${path}/${header} SYMBOLIC)
  endforeach()
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${root}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/internal)
    set(root ${CMAKE_BINARY_DIR}/internal/${target})
    file(REMOVE_RECURSE ${root})
    file(MAKE_DIRECTORY ${root}/mltcp/${path})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/internal ${root}/mltcp/${path}/internal SYMBOLIC)
    mltcp_internals_of(${target} ${target})
  endif()
endfunction()

# Permits `target` to include the headers in the folders internal/ of the given libraries.
function(mltcp_internals_of target)
  foreach(library IN LISTS ARGN)
    string(REGEX REPLACE "^mltcp_" "" library ${library})
    target_include_directories(${target} PRIVATE $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/internal/mltcp_${library}>)
  endforeach()
endfunction()

# Writes a source file that defines register_datapaths_once() in `namespace`, for a shared object that contains all
# datapaths of this build. Sets `source` to the file's path, and `libraries` to the libraries that the file needs.
function(mltcp_datapaths namespace source libraries)
  set(includes "")
  set(calls "")
  foreach(datapath IN LISTS MLTCP_DATAPATHS)
    string(APPEND includes "#include \"mltcp/${datapath}/register_datapath.h\"\n")
    string(APPEND calls "    ::mltcp::${datapath}::register_datapath();\n")
  endforeach()
  set(MLTCP_NAMESPACE ${namespace})
  set(file ${CMAKE_CURRENT_BINARY_DIR}/datapaths.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/datapaths.cpp.in ${file} @ONLY)
  list(TRANSFORM MLTCP_DATAPATHS PREPEND mltcp_ OUTPUT_VARIABLE wanted)
  set(${source} ${file} PARENT_SCOPE)
  set(${libraries} ${wanted} PARENT_SCOPE)
endfunction()

function(mltcp_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_OPTIONS;COLD" "IN;BATCH"
    "SOURCES;LINKS;PRIVATE_LINKS;PUBLIC_HEADERS;UNSTABLE_HEADERS")
  if(arg_IN)
    set(name ${arg_IN}_${name})
  endif()
  set(target mltcp_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(mltcp::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  mltcp_include_root(${target})
  foreach(link IN LISTS arg_LINKS)
    if(TARGET mltcp_${link})
      set(link mltcp_${link})
    endif()
    target_link_libraries(${target} PUBLIC ${link})
  endforeach()
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:mltcp_options> ${arg_PRIVATE_LINKS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  if(arg_COLD)
    target_compile_options(${target} PRIVATE ${MLTCP_COLD_OPTIONS})
  endif()
  if(arg_BATCH)
    mltcp_unity(${target} ${arg_BATCH} ${arg_SOURCES})
  endif()
  # DPDK's headers need their own compiler options, with which the precompiled headers cannot be used.
  if(MLTCP_PCH AND NOT arg_OWN_OPTIONS)
    if(arg_COLD)
      target_precompile_headers(${target} REUSE_FROM mltcp_precompiled_cold)
      if(NOT name STREQUAL "json")
        target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:$<LINK_ONLY:mltcp_json>>)  # provides json_templates.h
      endif()
    else()
      target_precompile_headers(${target} REUSE_FROM mltcp_precompiled)
    endif()
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE path)
  if(arg_PUBLIC_HEADERS OR arg_UNSTABLE_HEADERS)
    install(FILES ${arg_PUBLIC_HEADERS} ${arg_UNSTABLE_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mltcp/${path})
    set_property(GLOBAL APPEND PROPERTY MLTCP_INSTALLED ${name})
    if(NOT arg_PUBLIC_HEADERS)
      set_property(GLOBAL APPEND PROPERTY MLTCP_UNSTABLE ${name})
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY MLTCP_LIBRARIES ${name})
  set_property(GLOBAL APPEND PROPERTY MLTCP_FOLDERS ${path}=${target})
endfunction()

# The tested libraries are optimised, but the tests are not, because optimising takes two thirds of their compile time.
set(MLTCP_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)

# GNU gold links a test three times as fast as GNU ld, and there are over a hundred test programs.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold MLTCP_HAS_GOLD)

# Sets `result` to the libraries of this project that the given targets link, directly or indirectly.
function(mltcp_linked_libraries result)
  set(found "")
  set(targets ${ARGN})
  while(targets)
    list(POP_FRONT targets target)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" target "${target}")
    if(NOT target MATCHES "^mltcp_" OR NOT TARGET ${target} OR target IN_LIST found)
      continue()
    endif()
    list(APPEND found ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND targets ${links})
    endif()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# If several objects define an inline function, the linker uses the first definition. Whole libraries are linked before
# the tests, so that the tests call the optimised functions of the libraries and not their own copies.
function(mltcp_link_tested_first target)
  mltcp_linked_libraries(libraries ${ARGN})
  set(archives "")
  foreach(library IN LISTS libraries)
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND archives $<TARGET_FILE:${library}>)
    endif()
  endforeach()
  if(archives)
    target_link_options(${target} PRIVATE LINKER:--whole-archive ${archives} LINKER:--no-whole-archive)
  endif()
endfunction()

# Properties of real-time tests that run together with other tests. The lock permits only one real-time test at a time.
# The high cost starts these tests early, so that they do not run last.
set(MLTCP_ALONGSIDE "RESOURCE_LOCK real_time COST 700")
function(mltcp_alongside)
  separate_arguments(properties UNIX_COMMAND "${MLTCP_ALONGSIDE}")
  set_tests_properties(${ARGN} PROPERTIES RUN_SERIAL FALSE ${properties})
endfunction()

function(mltcp_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_DISCOVERY" "" "SOURCES;LINKS;INTERNALS_OF;LABELS;ALONGSIDE")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE mltcp_options GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${MLTCP_TEST_OPTIONS})
  if(MLTCP_HAS_GOLD)
    target_link_options(${name} PRIVATE -fuse-ld=gold)
  endif()
  mltcp_unity(${name} 8 ${arg_SOURCES})
  if(MLTCP_UNITY)
    # A name in one file of a batch may shadow a name in another file.
    target_compile_options(${name} PRIVATE -Wno-shadow)
  endif()
  # DPDK's headers need their own compiler options, with which the precompiled headers cannot be used.
  if(MLTCP_PCH AND NOT PkgConfig::DPDK IN_LIST arg_LINKS)
    if(NOT TARGET mltcp_precompiled_test)
      mltcp_precompile(mltcp_precompiled_test PROGRAMS OPTIONS ${MLTCP_TEST_OPTIONS}
        HEADERS <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>
        LINKS fmt::fmt GTest::gtest GTest::gmock GTest::gtest_main)
    endif()
    target_precompile_headers(${name} REUSE_FROM mltcp_precompiled_test)
  endif()
  set(links "")
  foreach(link IN LISTS arg_LINKS)
    if(TARGET mltcp_${link})
      set(link mltcp_${link})
    endif()
    list(APPEND links ${link})
  endforeach()
  target_link_libraries(${name} PRIVATE ${links})
  mltcp_internals_of(${name} ${arg_INTERNALS_OF})
  mltcp_link_tested_first(${name} ${links})
  if(arg_NO_DISCOVERY)
    return()
  endif()
  # tools/mutate reads the labels before anything is built.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/labels/${name} CONTENT "${arg_LABELS}\n")
  set(environment "")
  if(MLTCP_SANITIZE MATCHES thread)
    set(environment ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 ${environment})
  if(arg_LABELS)
    # ctest reads this file after the discovered cases, whose names are then in ${name}_TESTS. gtest_discover_tests()
    # cannot set several labels, because it treats the second label as the name of a property.
    set(serial FALSE)
    if("dpdk" IN_LIST arg_LABELS OR "realtime" IN_LIST arg_LABELS)
      set(serial TRUE)
    endif()
    set(properties ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
    file(CONFIGURE OUTPUT ${properties} @ONLY CONTENT [[
if(@name@_TESTS)
  set_tests_properties(${@name@_TESTS} PROPERTIES LABELS "@arg_LABELS@" RUN_SERIAL @serial@)
  set(alongside "@arg_ALONGSIDE@")
  foreach(test IN LISTS @name@_TESTS)
    foreach(pattern IN LISTS alongside)
      if(test MATCHES "${pattern}")
        set_tests_properties("${test}" PROPERTIES RUN_SERIAL FALSE @MLTCP_ALONGSIDE@)
      endif()
    endforeach()
  endforeach()
endif()
]])
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties})
  endif()
endfunction()
