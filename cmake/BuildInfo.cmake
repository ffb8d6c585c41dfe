# Writes what a program says about its own build: the commit of the source, whether it had changes beside that, compiler
# and kind of build. At build time, each time, into a file beside the program and not into it: so it is right after
# every commit, and a commit that changes no code changes no program.
#
#   cmake -DOUTPUT=... -DSOURCE=... -DBUILD=... -P BuildInfo.cmake
#
# Without git, or where the source is no clone of its own, the commit stays unknown.
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
set(text "{\"commit\": \"${commit}\", \"modified\": ${modified}, \"build\": \"${BUILD}\"}\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
