# Returns the folders in which the program mltcp looks for build.json and the module for MPI, in the order of the
# search. The first is the folder in which they are installed, relative to the program, so that the installation can be
# moved. The second is the folder in which they are built. If CMAKE_INSTALL_LIBDIR is absolute, the third is below it,
# which is right even if the program is installed elsewhere with cmake --install --prefix. Relative paths begin at the
# program's folder. Requires GNUInstallDirs.
function(mltcp_own_folders result)
  file(RELATIVE_PATH installed ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/mltcp)
  set(folders ${installed} ../lib/mltcp)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    list(APPEND folders ${CMAKE_INSTALL_LIBDIR}/mltcp)
  endif()
  list(REMOVE_DUPLICATES folders)
  set(${result} ${folders} PARENT_SCOPE)
endfunction()
