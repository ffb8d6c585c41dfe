# Installs the CMake package, with one component per library, and the pkg-config files. This file is included after all
# folders, because it reads which libraries they link.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mltcp)
# The installed components: libraries with installed headers, the libraries that they link, and c. c is a shared library
# that contains all libraries that it needs.
get_property(installed GLOBAL PROPERTY MLTCP_INSTALLED)
get_property(MLTCP_UNSTABLE GLOBAL PROPERTY MLTCP_UNSTABLE)
list(TRANSFORM installed PREPEND mltcp_)
mltcp_linked_libraries(linked ${installed})
get_property(libraries GLOBAL PROPERTY MLTCP_LIBRARIES)
foreach(library IN LISTS libraries)
  if(NOT mltcp_${library} IN_LIST linked)
    list(REMOVE_ITEM libraries ${library})
    continue()
  endif()
  # Each library has its own export set, so that a program needs only the packages of the libraries that it uses.
  install(TARGETS mltcp_${library} EXPORT mltcp-${library} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
list(APPEND libraries c)

# For each library, this lists the libraries that it needs and the packages whose targets it names. As libraries are
# static, the final link also needs their private links. Only c does not need them, because it is a shared library.
set(MLTCP_COMPONENTS ${libraries})
set(MLTCP_COMPONENT_NEEDS "")
# These packages are found by pkg-config, as PkgConfig::NAME. Each value is the module and its minimum version.
set(MLTCP_PKG_CONFIG_DPDK "libdpdk >= 22.11")
set(MLTCP_PKG_CONFIG_LIBBPF "libbpf >= 1.0")
set(MLTCP_PKG_CONFIG_IBVERBS "libibverbs")
set(MLTCP_PKG_CONFIG_MICROHTTPD "libmicrohttpd >= 0.9.75")
set(MLTCP_PKG_CONFIG_SQLITE3 "sqlite3 >= 3.36")
set(MLTCP_PKG_CONFIG_YAMLCPP "yaml-cpp")
foreach(name DPDK LIBBPF IBVERBS MICROHTTPD SQLITE3 YAMLCPP)
  string(REPLACE " " "" module ${MLTCP_PKG_CONFIG_${name}})
  string(APPEND MLTCP_COMPONENT_NEEDS "set(_mltcp_pkg_config_${name} \"${module}\")\n")
endforeach()
foreach(library IN LISTS libraries)
  get_target_property(type mltcp_${library} TYPE)
  if(type STREQUAL SHARED_LIBRARY)
    set(links "")
  else()
    get_target_property(links mltcp_${library} LINK_LIBRARIES)
  endif()
  list(REMOVE_DUPLICATES links)
  set(needs ${links})
  list(FILTER needs INCLUDE REGEX "^mltcp_[a-z_]+$")
  list(TRANSFORM needs REPLACE "^mltcp_" "")
  set(packages ${links})
  list(FILTER packages INCLUDE REGEX "^[A-Za-z0-9_]+::")
  list(TRANSFORM packages REPLACE "^PkgConfig::" "PkgConfig_")
  list(TRANSFORM packages REPLACE "::.*" "")
  list(TRANSFORM packages REPLACE "^protobuf$" "Protobuf")  # the name of CMake's own module
  list(REMOVE_DUPLICATES packages)
  string(APPEND MLTCP_COMPONENT_NEEDS "set(_mltcp_needs_${library} ${needs})\n")
  string(APPEND MLTCP_COMPONENT_NEEDS "set(_mltcp_packages_${library} ${packages})\n")
  install(EXPORT mltcp-${library} NAMESPACE mltcp:: DESTINATION ${package_dir})
endforeach()

configure_package_config_file(cmake/mltcpConfig.cmake.in ${CMAKE_BINARY_DIR}/mltcpConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/mltcpConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/mltcpConfig.cmake ${CMAKE_BINARY_DIR}/mltcpConfigVersion.cmake
  DESTINATION ${package_dir})

# Writes one pkg-config file per component, and "mltcp" for most programs. The files derive the prefix from their own
# path, so that an installed tree can be moved. Private links are also requirements, because the libraries are static.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH MLTCP_PC_TO_PREFIX /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" MLTCP_PC_TO_PREFIX ${MLTCP_PC_TO_PREFIX})
foreach(library IN LISTS libraries)
  get_target_property(type mltcp_${library} TYPE)
  set(MLTCP_PC_NAME mltcp-${library})
  set(MLTCP_PC_NOTE "")
  if(library IN_LIST MLTCP_UNSTABLE)
    set(MLTCP_PC_NOTE " (unstable: may change with any version)")
  endif()
  if(type STREQUAL SHARED_LIBRARY)
    set(links "")
    set(MLTCP_PC_LIBS "-L\${libdir} -lmltcp")
  else()
    get_target_property(links mltcp_${library} LINK_LIBRARIES)
    set(MLTCP_PC_LIBS "-L\${libdir} -lmltcp_${library}")
  endif()
  list(REMOVE_DUPLICATES links)
  set(requires "")
  foreach(link IN LISTS links)
    if(link MATCHES "^mltcp_([a-z_]+)$")
      list(APPEND requires "mltcp-${CMAKE_MATCH_1} = ${PROJECT_VERSION}")
    elseif(link MATCHES "^PkgConfig::(.+)$")
      list(APPEND requires "${MLTCP_PKG_CONFIG_${CMAKE_MATCH_1}}")
      if(link STREQUAL "PkgConfig::DPDK")
        # These drivers register themselves. They are linked as in dpdk/CMakeLists.txt.
        string(APPEND MLTCP_PC_LIBS
          " -Wl,--push-state,--no-as-needed,-lrte_net_ring,-lrte_mempool_ring,-lrte_bus_vdev,--pop-state")
      endif()
    elseif(link MATCHES "^([A-Za-z0-9_]+)::")
      string(TOLOWER ${CMAKE_MATCH_1} package)
      list(APPEND requires ${package})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES requires)
  list(JOIN requires ", " MLTCP_PC_REQUIRES)
  configure_file(cmake/component.pc.in ${CMAKE_BINARY_DIR}/mltcp-${library}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/mltcp-${library}.pc DESTINATION ${pkgconfig_dir})
endforeach()
set(MLTCP_PC_NOTE "")
if(TARGET mltcp_gloo)
  set(MLTCP_PC_NAME mltcp-gloo)
  set(MLTCP_PC_LIBS "-L\${libdir} -lmltcp-gloo -lgloo")
  set(MLTCP_PC_REQUIRES "")
  configure_file(cmake/component.pc.in ${CMAKE_BINARY_DIR}/mltcp-gloo.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/mltcp-gloo.pc DESTINATION ${pkgconfig_dir} COMPONENT gloo)
endif()
set(MLTCP_PC_NAME mltcp)
set(MLTCP_PC_LIBS "")
set(MLTCP_PC_REQUIRES "mltcp-transport = ${PROJECT_VERSION}")
if(MLTCP_LAB)
  string(PREPEND MLTCP_PC_REQUIRES "mltcp-sim = ${PROJECT_VERSION}, ")
endif()
configure_file(cmake/component.pc.in ${CMAKE_BINARY_DIR}/mltcp.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mltcp.pc DESTINATION ${pkgconfig_dir})

install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
# The pages are installed in the same folders as in the source, so that the links between pages work.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "*.sweep" EXCLUDE PATTERN "*.results.json" EXCLUDE)
# In the installed pages, changes links into the source to links to installed files, or to text. If headers are
# installed at all, they already exist at this point.
install(CODE "set(root \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX})
execute_process(COMMAND \${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DPAGES=\${root}/${CMAKE_INSTALL_DOCDIR}
  -DHEADERS=\${root}/${CMAKE_INSTALL_INCLUDEDIR} -P ${PROJECT_SOURCE_DIR}/cmake/InstalledPages.cmake
  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT tools)
# Installs the schemas of the files that the command writes (docs/reference/results-file.md).
install(DIRECTORY docs/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mltcp/schema COMPONENT tools FILES_MATCHING PATTERN "*.schema.json")
# Installs the Python package where Debian's interpreters find it below /usr. If the prefix is not /usr, PYTHONPATH must
# name the package's folder.
install(DIRECTORY python/mltcp DESTINATION lib/python3/dist-packages COMPONENT python PATTERN __pycache__ EXCLUDE
  PATTERN mltcp.h EXCLUDE)
# python/mltcp/mltcp.h is a link to this header
install(FILES endpoint/mltcp.h DESTINATION lib/python3/dist-packages/mltcp COMPONENT python)
