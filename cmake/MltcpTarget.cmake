# How targets of this project are made: warnings, sanitizers, and the include root of each folder.
#
#   mltcp_library(cc SOURCES reno.cpp ... LINKS base [PRIVATE_LINKS fmt::fmt])
#       library mltcp_cc (alias mltcp::cc) of the calling folder; headers are "mltcp/cc/...".
#       PUBLIC_HEADERS algorithm.h ...: they are installed, and stay as they are until the next minor version.
#       UNSTABLE_HEADERS ...: they are installed, and may change with any version. All others are not installed, and
#       neither is a library that no library with installed headers links.
#       OWN_OPTIONS: it is compiled with options that the others don't have.
#       COLD: nothing in it takes time when it runs, so that a release compiles it with -O1.
#       BATCH n: n files at a time are compiled as one (see MLTCP_UNITY).
#   mltcp_library(engine IN experiment ...)
#       a room: library mltcp_experiment_engine (alias mltcp::experiment_engine); "mltcp/experiment/engine/...".
#   mltcp_test(NAME SOURCES a_test.cpp ... LINKS transport sim [LABELS slow])
#       INTERNALS_OF transport ...: it may include "mltcp/transport/internal/...", which nothing but that folder may.
#       a GoogleTest program whose cases ctest finds by themselves. Those labelled dpdk or realtime run alone: others
#       next to them would take the processors that they poll on. NO_DISCOVERY: it is only built, for a script that runs it.
#       ALONGSIDE regex ...: cases of a real-time program that mostly wait, with limits that a busy machine does not
#       reach. They run beside those of virtual time, and not beside each other.
#   mltcp_alongside(TEST ...)
#       the same for tests made by add_test.

add_library(mltcp_options INTERFACE)
target_compile_options(mltcp_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wnull-dereference -Wdouble-promotion -Wformat=2 -Wimplicit-fallthrough
  $<$<BOOL:${MLTCP_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports null dereferences and array bounds inside its own inlined library code.
  target_compile_options(mltcp_options INTERFACE -Wno-null-dereference)
  # A tenth of the time for a quarter more memory, of which a compilation then takes 600 MB.
  target_compile_options(mltcp_options INTERFACE "SHELL:--param ggc-min-expand=400" "SHELL:--param ggc-min-heapsize=524288")
endif()
if(MLTCP_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # What sanitizers insert leads GCC's flow analysis astray, in <regex> and <vector> for two.
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

# GCC 12's flow analysis goes astray in its own library where little is inlined.
set(MLTCP_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(warning maybe-uninitialized restrict array-bounds stringop-overflow stringop-overread)
    list(APPEND MLTCP_COLD_OPTIONS $<$<CONFIG:Release>:-Wno-${warning}>)
  endforeach()
endif()

# Half of what compiling a file takes is headers of others that hardly ever change: they are compiled once for all
# libraries and once for all tests, and no file may count on them: the sanitizer presets and MLTCP_PCH=OFF build without.
option(MLTCP_PCH "Precompile headers of the standard library, fmt and GoogleTest" ON)
if(MLTCP_SANITIZE)
  set(MLTCP_PCH OFF)
endif()
set(MLTCP_PCH_STANDARD <algorithm> <array> <chrono> <cmath> <cstddef> <cstdint> <functional> <map> <memory> <mutex>
  <optional> <set> <span> <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>)
# mltcp_precompile(NAME [PROGRAMS] HEADERS <a> ... LINKS fmt::fmt ... [OPTIONS ...]): target NAME, to be named by
# REUSE_FROM in libraries or, with PROGRAMS, in programs, whose position independent code is another.
function(mltcp_precompile name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PROGRAMS" "" "HEADERS;LINKS;OPTIONS")
  # Whoever uses a precompiled header is compiled with the definitions that it was.
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
  # One for each level of optimisation: GCC takes functions from it as they were compiled there.
  mltcp_precompile(mltcp_precompiled HEADERS <fmt/format.h> LINKS fmt::fmt)
  mltcp_precompile(mltcp_precompiled_cold OPTIONS ${MLTCP_COLD_OPTIONS} LINKS fmt::fmt nlohmann_json::nlohmann_json TBB::tbb
    HEADERS <fmt/format.h> <fmt/ranges.h> ${PROJECT_SOURCE_DIR}/base/json/json_templates.h
      <oneapi/tbb/parallel_for.h> <oneapi/tbb/task_arena.h>)
endif()

# Several files at a time share what their headers and templates take, half to two thirds of all. A batch is chosen to
# compile within 20 s, so that a change is still tried out fast; the data path and the transport are compiled file by
# file. That each file compiles by itself is seen by MLTCP_UNITY=OFF, as in the sanitizer presets and in tools/lint.
option(MLTCP_UNITY "Compile several files of a target as one" ON)
if(MLTCP_SANITIZE AND NOT MLTCP_FUZZERS)
  set(MLTCP_UNITY OFF)
endif()
function(mltcp_unity target batch)
  list(LENGTH ARGN sources)
  if(MLTCP_UNITY AND sources GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # It takes the files of a batch for headers.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# The headers of the calling folder are "mltcp/PATH/..." to `target` and to those that link it, where PATH is that of the
# folder in the source; those of its folder internal/, if it has one, to `target` alone.
function(mltcp_include_root target)
  # Include roots with nothing in them but these headers, so that an include without a link does not compile.
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

# `target` may include what the folders internal/ of the libraries have.
function(mltcp_internals_of target)
  foreach(library IN LISTS ARGN)
    string(REGEX REPLACE "^mltcp_" "" library ${library})
    target_include_directories(${target} PRIVATE $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/internal/mltcp_${library}>)
  endforeach()
endfunction()

# Makes a source that defines register_datapaths_once() of `namespace`, and gives its path in `source` and the libraries
# that it wants in `libraries`: for a shared object that has the datapaths of this build in it.
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
  # DPDK's headers want options of their own.
  if(MLTCP_PCH AND NOT arg_OWN_OPTIONS)
    if(arg_COLD)
      target_precompile_headers(${target} REUSE_FROM mltcp_precompiled_cold)
      if(NOT name STREQUAL "json")
        target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:$<LINK_ONLY:mltcp_json>>)  # for json_templates.h
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

# What is tested is optimised; of tests, compiling is what takes long, two thirds of it optimising.
set(MLTCP_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)

# GNU gold links a test in a third of the time of GNU ld, and there are over a hundred.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold MLTCP_HAS_GOLD)

# The libraries of this project that `targets` link, and those that these link.
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

# Of an inline function that several objects have, the linker takes the first. So that the tested runs as it was
# optimised, and not as tests were compiled, libraries come first, and whole.
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

# One of them at a time, and the first of them first, so that they are not what is left in the end.
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
    # What one file names, the others of its batch may hide.
    target_compile_options(${name} PRIVATE -Wno-shadow)
  endif()
  # DPDK's headers want options of their own.
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
  # For tools/mutate, which wants to know what it may run before anything is built.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/labels/${name} CONTENT "${arg_LABELS}\n")
  set(environment "")
  if(MLTCP_SANITIZE MATCHES thread)
    set(environment ENVIRONMENT "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 ${environment})
  if(arg_LABELS)
    # Read by ctest after the discovered cases, whose names are then in ${name}_TESTS. gtest_discover_tests itself
    # mistakes the second of several labels for the name of a property.
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
