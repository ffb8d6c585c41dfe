# The plug-in exports all the tables that NCCL looks up, and nothing else.
#
#   cmake -DNM=... -DLIBRARY=... -P exports_test.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" symbols "${symbols}")
set(exported "")
foreach(symbol IN LISTS symbols)
  string(REGEX REPLACE "[@\n].*" "" name "${symbol}")
  list(APPEND exported ${name})
endforeach()
list(SORT exported)
set(wanted ncclNetPlugin_v10 ncclNetPlugin_v11 ncclNetPlugin_v7 ncclNetPlugin_v8 ncclNetPlugin_v9 ncclProfiler_v4)
if(NOT exported STREQUAL wanted)
  message(FATAL_ERROR "exported is ${exported}; it should be ${wanted}")
endif()
