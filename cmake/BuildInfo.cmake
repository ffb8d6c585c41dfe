# Writes the file OUTPUT, which describes the build of PROGRAM: the commit of the source, whether the source has
# uncommitted changes, compiler and build type, and the program's build id. By this build id, the program recognises the
# file. This script runs with every build, because a new commit changes the file even if it does not change the program.
#
#   cmake -DOUTPUT=... -DSOURCE=... -DBUILD=... -DPROGRAM=... -DREADELF=... -P BuildInfo.cmake
#
# Without git, or if the source is not a clone, the commit is unknown. Without readelf or a build id, all values are
# unknown to the program.
set(commit "")
set(modified false)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(commit "")
  else()
    execute_process(COMMAND ${GIT} -C ${SOURCE} status --porcelain --untracked-files=no
      OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(modified true)
    endif()
  endif()
endif()
set(build_id "")
if(READELF)
  execute_process(COMMAND ${READELF} -n ${PROGRAM} OUTPUT_VARIABLE notes ERROR_QUIET)
  if(notes MATCHES "Build ID: ([0-9a-f]+)")
    set(build_id ${CMAKE_MATCH_1})
  endif()
endif()
set(text "{\"commit\": \"${commit}\", \"modified\": ${modified}, \"build\": \"${BUILD}\", \"build_id\": \"${build_id}\"}\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
