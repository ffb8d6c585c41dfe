# What `cmake --install` puts beside program, libraries and headers: the CMake package with one component per
# library, and the pkg-config files. Included after all folders: it looks at what their libraries link.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mltcp)
get_property(libraries GLOBAL PROPERTY MLTCP_LIBRARIES)

# Per library: which others it needs, and the packages whose targets it names. Libraries are static, so what is
# linked privately is needed by the final link, too.
set(MLTCP_COMPONENTS ${libraries})
set(MLTCP_COMPONENT_NEEDS "")
foreach(library IN LISTS libraries)
  get_target_property(type mltcp_${library} TYPE)
  if(type STREQUAL INTERFACE_LIBRARY)
    get_target_property(links mltcp_${library} INTERFACE_LINK_LIBRARIES)
  else()
    get_target_property(links mltcp_${library} LINK_LIBRARIES)
  endif()
  list(REMOVE_DUPLICATES links)
  set(needs ${links})
  list(FILTER needs INCLUDE REGEX "^mltcp_[a-z_]+$")
  list(TRANSFORM needs REPLACE "^mltcp_" "")
  set(packages ${links})
  list(FILTER packages INCLUDE REGEX "^[A-Za-z0-9_]+::")
  list(TRANSFORM packages REPLACE "^PkgConfig::DPDK$" "libdpdk")
  list(TRANSFORM packages REPLACE "::.*" "")
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

# The pkg-config files find their prefix from where they lie, so that an installed tree can be moved.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH MLTCP_PC_TO_PREFIX /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" MLTCP_PC_TO_PREFIX ${MLTCP_PC_TO_PREFIX})
set(files mltcp)
if(TARGET mltcp_dpdk)
  list(APPEND files mltcp-dpdk)
endif()
foreach(file IN LISTS files)
  configure_file(cmake/${file}.pc.in ${CMAKE_BINARY_DIR}/${file}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${file}.pc DESTINATION ${pkgconfig_dir})
endforeach()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The schemas of what the command writes (docs/results-file.md).
install(DIRECTORY docs/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mltcp/schema FILES_MATCHING PATTERN "*.schema.json")
