# Where the program mltcp finds what belongs to it and to no other program: build.json and the module for MPI. A list of
# folders, relative ones beginning at the folder of the program, in the order of looking there: where they are installed,
# wherever the whole installation was moved to; where they are built; and, of an absolute CMAKE_INSTALL_LIBDIR, where they
# are installed even if the program was installed elsewhere, by cmake --install --prefix. Needs GNUInstallDirs.
function(mltcp_own_folders result)
  file(RELATIVE_PATH installed ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/mltcp)
  set(folders ${installed} ../lib/mltcp)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    list(APPEND folders ${CMAKE_INSTALL_LIBDIR}/mltcp)
  endif()
  list(REMOVE_DUPLICATES folders)
  set(${result} ${folders} PARENT_SCOPE)
endfunction()
