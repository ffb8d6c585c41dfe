# How targets of this project are made: warnings, sanitizers, and the include root of each folder.
#
#   mltcp_library(cc SOURCES reno.cpp ... LINKS base [PRIVATE_LINKS fmt::fmt])
#       library mltcp_cc (alias mltcp::cc) of the calling folder; headers are "mltcp/cc/...".
#   mltcp_test(NAME SOURCES a_test.cpp ... LINKS transport sim [LABELS slow])
#       a GoogleTest program whose cases ctest finds by themselves. Those labelled dpdk or realtime run alone: others
#       next to them would take the processors that they poll on.

add_library(mltcp_options INTERFACE)
target_compile_options(mltcp_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Wcast-align -Woverloaded-virtual -Wnull-dereference -Wdouble-promotion -Wformat=2 -Wimplicit-fallthrough
  $<$<BOOL:${MLTCP_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports null dereferences and array bounds inside its own inlined library code.
  target_compile_options(mltcp_options INTERFACE -Wno-null-dereference)
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

function(mltcp_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS;PRIVATE_LINKS")
  set(target mltcp_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(mltcp::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  # An include root with nothing in it but this folder, so that an include without a link does not compile.
  set(root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root}/mltcp)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/mltcp/${name} SYMBOLIC)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${root}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  foreach(link IN LISTS arg_LINKS)
    if(link MATCHES "^(base|cc|transport|ethernet|fabric|sim|dpdk|scheduler|workload|experiment)$")
      set(link mltcp_${link})
    endif()
    target_link_libraries(${target} PUBLIC ${link})
  endforeach()
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:mltcp_options> ${arg_PRIVATE_LINKS})
  target_compile_features(${target} PUBLIC cxx_std_20)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mltcp/${name})
  # An export set each, so that a program that uses some of the libraries needs the packages of those only; see
  # cmake/MltcpInstall.cmake.
  install(TARGETS ${target} EXPORT mltcp-${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY MLTCP_LIBRARIES ${name})
endfunction()

function(mltcp_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS;LABELS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE mltcp_options GTest::gtest GTest::gmock GTest::gtest_main)
  foreach(link IN LISTS arg_LINKS)
    if(TARGET mltcp_${link})
      set(link mltcp_${link})
    endif()
    target_link_libraries(${name} PRIVATE ${link})
  endforeach()
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
endif()
]])
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties})
  endif()
endfunction()
