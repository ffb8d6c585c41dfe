# Folders in which the program mltcp looks for its own files, build.json and the module for MPI, in this order: the
# folder in which they are installed, relative to the program, so that the installation can be moved; the folder in
# which they are built; and, if CMAKE_INSTALL_LIBDIR is absolute, that folder, which is right even if the program was
# installed elsewhere with cmake --install --prefix. Relative paths begin at the program's folder. Needs GNUInstallDirs.
function(mltcp_own_folders result)
  file(RELATIVE_PATH installed ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/mltcp)
  set(folders ${installed} ../lib/mltcp)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    list(APPEND folders ${CMAKE_INSTALL_LIBDIR}/mltcp)
  endif()
  list(REMOVE_DUPLICATES folders)
  set(${result} ${folders} PARENT_SCOPE)
endfunction()
