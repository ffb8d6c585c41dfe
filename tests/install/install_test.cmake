# Installs the build, moves it to WORK/prefix, and then depending on WAY:
#   cmake       builds examples/consumer and examples/my_algorithm with find_package and runs them, and the installed
#               program
#   pkgconfig   builds examples/consumer with its Makefile and pkg-config and runs it
#   components  asks find_package for components that exist, that do not exist, and whose packages are missing
cmake_minimum_required(VERSION 3.25)

function(run)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "EXPECT" "COMMAND")
  execute_process(COMMAND ${arg_COMMAND} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  list(JOIN arg_COMMAND " " shown)
  message(STATUS "${shown}\n${text}")
  if(NOT arg_EXPECT)
    set(arg_EXPECT 0)
  endif()
  if(NOT status EQUAL arg_EXPECT)
    message(FATAL_ERROR "exit status ${status} where ${arg_EXPECT} was expected: ${shown}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

function(expect_output regex)
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "the output does not match \"${regex}\"")
  endif()
endfunction()

# The files are installed in one folder and then moved to another one. Therefore, no installed file may contain the path
# of the build folder or of the first folder.
file(REMOVE_RECURSE ${WORK})
run(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
file(RENAME ${WORK}/installed ${WORK}/prefix)
set(prefix ${WORK}/prefix)
file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.h)
if(NOT texts)
  message(FATAL_ERROR "nothing was installed")
endif()
foreach(file IN LISTS texts)
  file(READ ${file} text)
  string(FIND "${text}" "${BUILD}/" position)
  if(NOT position EQUAL -1)
    message(FATAL_ERROR "${file} names the build folder")
  endif()
endforeach()

# Checks that only public headers are installed, that they are few, and that all headers that they include are
# installed.
set(stable 0)
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*.h)
foreach(header IN LISTS headers)
  if(header MATCHES "/internal/")
    message(FATAL_ERROR "${header} was installed")
  endif()
  if(NOT header MATCHES "^mltcp/(lab|scheduler)/|^mltcp/base/(random|recent|ring|topology)[.]h")
    math(EXPR stable "${stable} + 1")
  endif()
  file(STRINGS ${prefix}/include/${header} includes REGEX "^#include \"mltcp/")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE ".*\"(.*)\"" "\\1" include "${include}")
    if(NOT EXISTS ${prefix}/include/${include})
      message(FATAL_ERROR "${header} includes ${include}, which was not installed")
    endif()
  endforeach()
endforeach()
if(stable LESS 20 OR stable GREATER 40)
  message(FATAL_ERROR "${stable} stable headers were installed")
endif()

set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS}
  -DCMAKE_PREFIX_PATH=${prefix})

if(WAY STREQUAL "cmake")
  run(COMMAND ${configure} -S ${CONSUMER} -B ${WORK}/consumer)
  run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/consumer)
  run(COMMAND ${WORK}/consumer/consumer "300 kB")
  expect_output("gradients of 300 kB received, intact")
  run(COMMAND ${WORK}/consumer/consumer "300 kilos" EXPECT 2)
  expect_output("300 kilos")
  # Builds a user's algorithm against the installed headers, in a separate folder.
  run(COMMAND ${configure} -S ${ALGORITHM} -B ${WORK}/algorithm)
  run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/algorithm)
  if(PROGRAM)
    run(COMMAND ${prefix}/${PROGRAM} --help)
    expect_output("run")
    run(COMMAND ${prefix}/${PROGRAM} algorithms ${WORK}/algorithm/my_algorithm.so:gaimd)
    expect_output("gaimd.keep = 0.5")
    file(WRITE ${WORK}/algorithm/e.toml [=[
iterations = 5
cc = "./my_algorithm.so:gaimd"
[gaimd]
keep = 0.7
[bottleneck]
rate = "1 Gbps"
[[job]]
name = "a"
compute = "5 ms"
communicate = "1 MB"
]=])
    run(COMMAND ${prefix}/${PROGRAM} run ${WORK}/algorithm/e.toml --json ${WORK}/algorithm/e.json)
    expect_output("5 iterations, gaimd at 1 Gbps")
  endif()
  # Checks that the documents are installed, with the examples that they mention.
  foreach(file README.md docs/explanation/transport.md docs/how-to/ports.md examples/two-vgg19.toml examples/consumer/consumer.cpp
      examples/two_processes/two_processes.cpp)
    if(NOT EXISTS ${prefix}/${DOC_DIR}/${file})
      message(FATAL_ERROR "${file} was not installed")
    endif()
  endforeach()
  run(COMMAND ${CMAKE_COMMAND} -DPAGES=${prefix}/${DOC_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/pages_test.cmake)
  # Checks that the Python package finds the library that was installed with it.
  if(PYTHON)
    run(COMMAND ${CMAKE_COMMAND} -E env --unset=MLTCP_LIBRARY --unset=LD_LIBRARY_PATH
      PYTHONPATH=${prefix}/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1
      ${PYTHON} -c "from mltcp import library_path, library_version; print(library_path(), library_version())")
    expect_output("^${prefix}/${LIBRARY_DIR}/libmltcp.so.1 mltcp ")
  endif()
  if(PROGRAM)
    run(COMMAND ${prefix}/${PROGRAM} schedule ${prefix}/${DOC_DIR}/examples/two-vgg19.toml)
  endif()
  # Builds the endpoint examples in C and C++. Without arguments they print their usage.
  run(COMMAND ${configure} -S ${prefix}/${DOC_DIR}/examples/hello -B ${WORK}/hello)
  run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/hello)
  run(COMMAND ${WORK}/hello/hello EXPECT 2)
  run(COMMAND ${WORK}/hello/hello_c EXPECT 2)
  expect_output("hello OWN-IP waits")
  run(COMMAND ${WORK}/hello/hello_c elsewhere EXPECT 1)
  expect_output("hello: .*elsewhere")
  if(DPDK)
    run(COMMAND ${configure} -S ${prefix}/${DOC_DIR}/examples/two_processes -B ${WORK}/two_processes)
    run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/two_processes)
    run(COMMAND ${WORK}/two_processes/two_processes EXPECT 2)
  endif()

elseif(WAY STREQUAL "pkgconfig")
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBRARY_DIR}/pkgconfig)
  set(ENV{CXX} ${CXX})
  set(ENV{CXXFLAGS} "-O1 ${CXX_FLAGS}")
  file(MAKE_DIRECTORY ${WORK}/consumer)
  run(COMMAND ${MAKE} -C ${CONSUMER} OUT=${WORK}/consumer)
  run(COMMAND ${WORK}/consumer/consumer)
  expect_output("gradients of 2 MB received, intact")
  # Links each component separately and as a whole archive, so that all its dependencies must be found.
  file(GLOB archives ${prefix}/${LIBRARY_DIR}/libmltcp_*.a)
  if(NOT archives)
    message(FATAL_ERROR "no library was installed")
  endif()
  file(WRITE ${WORK}/main.cpp "int main() {}\n")
  foreach(archive IN LISTS archives)
    string(REGEX REPLACE ".*/libmltcp_(.*)\\.a" "\\1" component ${archive})
    run(COMMAND sh -c "${CXX} ${CXX_FLAGS} -o ${WORK}/probe ${WORK}/main.cpp -Wl,--whole-archive ${archive} \
-Wl,--no-whole-archive $(pkg-config --cflags --libs mltcp-${component})")
    run(COMMAND ${WORK}/probe)
  endforeach()
  # Checks that the C library needs no other library of the project, and that its soname is found in any folder.
  run(COMMAND sh -c "${CC} ${CXX_FLAGS} -std=c99 -pedantic -Wall -Wextra -Werror -o ${WORK}/hello ${CONSUMER}/../hello/hello.c \
$(pkg-config --cflags --libs mltcp-c)")
  run(COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${prefix}/${LIBRARY_DIR} ${WORK}/hello elsewhere EXPECT 1)
  expect_output("hello: .*elsewhere")
  if(NOT EXISTS ${prefix}/${LIBRARY_DIR}/libmltcp.so.1)
    message(FATAL_ERROR "libmltcp.so.1 was not installed")
  endif()
  if(DPDK)
    run(COMMAND sh -c "${CXX} ${CXX_FLAGS} -std=c++20 -o ${WORK}/two_processes \
${CONSUMER}/../two_processes/two_processes.cpp $(pkg-config --cflags --libs mltcp-dpdk mltcp-socket)")
    run(COMMAND ${WORK}/two_processes EXPECT 2)
    expect_output("write two_processes receive DEVICE IP/PREFIX")
  endif()

elseif(WAY STREQUAL "components")
  file(WRITE ${WORK}/probe/main.cpp "int main() {}\n")
  file(WRITE ${WORK}/probe/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(probe LANGUAGES CXX)
find_package(mltcp REQUIRED COMPONENTS ${COMPONENTS})
add_executable(probe main.cpp)
foreach(name base cc transport security ethernet capture live fabric sim socket endpoint c dpdk rdma scheduler nonsense)
  if(TARGET mltcp::${name})
    message(STATUS "has ${name};")
    get_target_property(type mltcp::${name} TYPE)
    if(type STREQUAL INTERFACE_LIBRARY OR type STREQUAL SHARED_LIBRARY)
      target_link_libraries(probe PRIVATE mltcp::${name})
      continue()
    endif()
    # Links the whole archive, so that all its dependencies must be found.
    target_link_libraries(probe PRIVATE -Wl,--whole-archive $<TARGET_FILE:mltcp::${name}> -Wl,--no-whole-archive
      mltcp::${name})
  endif()
endforeach()
message(STATUS "found ${mltcp_FOUND};")
]])
  set(probe ${configure} -S ${WORK}/probe)
  run(COMMAND ${probe} -B ${WORK}/all)
  expect_output("has base;.*has cc;.*has transport;.*has fabric;.*has sim;.*has socket;.*has endpoint;.*has c;")
  run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/all)
  run(COMMAND ${WORK}/all/probe)
  # find_package must provide only the requested components and the components that these need.
  run(COMMAND ${probe} -B ${WORK}/one -DCOMPONENTS=transport)
  expect_output("has base;.*has cc;.*has transport;.*found (1|TRUE);")
  if(output MATCHES "has (fabric|sim|dpdk);")
    message(FATAL_ERROR "a component is there that nobody asked for")
  endif()
  run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/one)
  run(COMMAND ${probe} -B ${WORK}/shared -DCOMPONENTS=c)
  expect_output("has c;.*found (1|TRUE);")
  if(output MATCHES "has (base|transport|endpoint);")
    message(FATAL_ERROR "the shared library asks for what it has in it")
  endif()
  run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/shared)
  run(COMMAND ${WORK}/shared/probe)
  run(COMMAND ${probe} -B ${WORK}/unknown -DCOMPONENTS=nonsense EXPECT 1)
  expect_output("component nonsense is not among the installed ones")
  if(DPDK)
    run(COMMAND ${probe} -B ${WORK}/dpdk -DCOMPONENTS=dpdk)
    expect_output("has dpdk;")
    # Without DPDK's development files, find_package must find all components except dpdk. If dpdk is requested, the
    # error must name the missing package.
    set(ENV{PKG_CONFIG_LIBDIR} ${WORK}/nowhere)
    run(COMMAND ${probe} -B ${WORK}/bare)
    expect_output("has transport;.*found (1|TRUE);")
    if(output MATCHES "has dpdk;")
      message(FATAL_ERROR "dpdk is there although DPDK is not")
    endif()
    run(COMMAND ${CMAKE_COMMAND} --build ${WORK}/bare)
    run(COMMAND ${probe} -B ${WORK}/lacking -DCOMPONENTS=dpdk EXPECT 1)
    expect_output("component dpdk needs libdpdk")
  endif()
endif()
