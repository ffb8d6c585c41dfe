# Writes a file next to a program that describes its build: the commit of the source, whether the source had further
# changes, compiler and build type, and the program's build id, by which the program recognises its own file. Runs with
# every build, so that the file is right after each commit; the program itself does not change with a commit alone.
#
#   cmake -DOUTPUT=... -DSOURCE=... -DBUILD=... -DPROGRAM=... -DREADELF=... -P BuildInfo.cmake
#
# Without git, or if the source is not a clone, the commit is unknown; without readelf or a build id, everything is.
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
