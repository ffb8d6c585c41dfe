# Writes OUTPUT, a header that lists the fields (base/fields.h) of the reports in HEADER. HEADER is mltcp.h. These lists
# allow the library to fill the members of a report by name.
#
#   cmake -DHEADER=... -DOUTPUT=... -P CReports.cmake
file(READ ${HEADER} text)
string(REGEX REPLACE "/[*][^*]*[*]+([^/*][^*]*[*]+)*/" "" text "${text}")
set(lists "")
foreach(type mltcp_connection_report mltcp_endpoint_report)
  string(REGEX MATCH "struct ${type} {([^}]*);[^;]*}" found "${text}")
  string(REGEX REPLACE "[ \n]*[a-z0-9_]+ ([a-z0-9_]+)" "\n    field(\"\\1\", &${type}::\\1)" fields "${CMAKE_MATCH_1}")
  string(REPLACE ";" "," fields "${fields}")
  string(APPEND lists "constexpr auto fields_of(const ${type}*) {\n  return mltcp::list_of<${type}>(${fields})")
  string(APPEND lists ";\n}\n")
endforeach()
file(WRITE ${OUTPUT} "// The members of C's reports.
#pragma once
#include \"mltcp/base/fields.h\"
#include \"mltcp/endpoint/mltcp.h\"
using mltcp::field;
${lists}")
