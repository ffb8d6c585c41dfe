# Writes what a program says about its own build: the commit of the source, whether it had changes beside that, compiler
# and kind of build; and the build id that the linker gave the program, by which it knows that this is about itself. At build time, each time, into a file beside the program and not into it: so it is right after
# every commit, and a commit that changes no code changes no program.
#
#   cmake -DOUTPUT=... -DSOURCE=... -DBUILD=... -DPROGRAM=... -DREADELF=... -P BuildInfo.cmake
#
# Without git, or where the source is no clone of its own, the commit stays unknown; without readelf or a build id, all.
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
