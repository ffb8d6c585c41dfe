# Changes the links of installed pages that lead into the source. Links to headers then lead to the installed headers,
# and links to files that are not installed become plain text.
#
#   cmake -DSOURCE=... -DPAGES=... -DHEADERS=... -P InstalledPages.cmake
#
# SOURCE is the root of the source. PAGES is the folder with the installed README.md, docs/ and examples/. HEADERS is
# the folder of installed headers that contains mltcp/.

# Sets `result` to TRUE if `path`, relative to the root of the source, is installed with the pages, or to FALSE if not.
function(mltcp_is_page path result)
  set(${result} FALSE PARENT_SCOPE)
  if(path MATCHES "^(README\\.md|LICENSE|docs(/.*)?|examples(/.*)?)$")
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Sets `result` to the replacement of the link [text](target) of a page. `folder` is the page's folder, relative to the
# root.
function(mltcp_mended_link text target folder result)
  set(${result} "[${text}](${target})" PARENT_SCOPE)
  string(REGEX REPLACE "#.*" "" file "${target}")
  if(file STREQUAL "" OR IS_ABSOLUTE "${file}")
    return()
  endif()
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${SOURCE}/${folder} NORMALIZE)
  if(NOT EXISTS "${file}")  # a URL, or brackets in code
    return()
  endif()
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${SOURCE})
  string(REGEX REPLACE "/$" "" file "${file}")
  mltcp_is_page("${file}" is_page)
  if(is_page)
    return()
  endif()
  string(REGEX REPLACE "^endpoint/mltcp\\.h$" "mltcp.h" header "${file}")
  set(header ${HEADERS}/mltcp/${header})
  if(header MATCHES "\\.h$" AND EXISTS "${header}")
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PAGES}/${folder})
    set(${result} "[${text}](${header})" PARENT_SCOPE)
  else()
    set(${result} "${text}" PARENT_SCOPE)
  endif()
endfunction()

function(mltcp_mend_page page)
  cmake_path(GET page PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PAGES})
  file(READ ${page} rest)
  set(mended "")
  while(rest MATCHES "\\[([^][]*)\\]\\(([^() ]+)\\)")
    set(link "${CMAKE_MATCH_0}")
    mltcp_mended_link("${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}" "${folder}" replacement)
    string(FIND "${rest}" "${link}" at)
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(APPEND mended "${before}${replacement}")
    string(LENGTH "${link}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
  endwhile()
  file(WRITE ${page} "${mended}${rest}")
endfunction()

get_filename_component(PAGES "${PAGES}" REALPATH)
get_filename_component(HEADERS "${HEADERS}" REALPATH)
file(GLOB_RECURSE pages ${PAGES}/docs/*.md)
foreach(page IN LISTS pages ITEMS ${PAGES}/README.md)
  mltcp_mend_page(${page})
endforeach()
