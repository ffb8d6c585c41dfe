# Returns the folders in which the program mltcp looks for its files (build.json and the module for MPI), in the order
# of the search. Relative paths begin at the program's folder. The first folder contains the installed files. Its path
# is relative, so that the installation can be moved. The second folder contains the built files. If
# CMAKE_INSTALL_LIBDIR is absolute, a third folder is below it. This path is right even if cmake --install --prefix
# installs the program elsewhere. Requires GNUInstallDirs.
function(mltcp_own_folders result)
  file(RELATIVE_PATH installed ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/mltcp)
  set(folders ${installed} ../lib/mltcp)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    list(APPEND folders ${CMAKE_INSTALL_LIBDIR}/mltcp)
  endif()
  list(REMOVE_DUPLICATES folders)
  set(${result} ${folders} PARENT_SCOPE)
endfunction()
