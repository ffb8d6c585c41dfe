// Tests base/file_format.cpp, which detects the format of a file from its first bytes.
#include "mltcp/base/file_format.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace mltcp::file_format_test {
namespace {

using namespace std::literals;

TEST(FileFormat, name__by_the_first_bytes) {
  for (const auto& [beginning, name] : {
           std::pair{"\x89PNG\r\n\x1a\n"sv, "a picture (PNG)"sv},
           {"\x7f"
            "ELF\x02\x01"sv,
            "a program or library (ELF)"sv},
           {"SQLite format 3\0\x10"sv, "SQLite"sv},
           {"PK\x03\x04\x14"sv, "a zip archive"sv},
           {"\x80\x04\x95"sv, "a Python pickle"sv},
           {"\xff\xfeN\0o\0"sv, "text in UTF-16"sv},
           {"\x01\x02\x03"sv, "binary data"sv},
           {"<?xml version=\"1.0\"?>\n<a/>"sv, "XML"sv},
           {"<!-- <!-- -->\n<!DOCTYPE html>"sv, "HTML"sv},
           {"<HTML>"sv, "HTML"sv},
           {"<?xml version=\"1.0\"?>\n<svg>"sv, "a picture (SVG)"sv},
           {"<system version=\"1\">\n  <cpu numaid=\"0\""sv, "NCCL's topology of a host (XML)"sv},
           {"<system version=\"1\">\n  <a/>"sv, "XML"sv},
           {"<host>:100:100 [0] says\n"sv, ""sv},
           {"<<< hello"sv, ""sv},
           {"4\n0 1 3 100 2000 2\n"sv, "numbers in columns"sv},
           {"1.5 -2e3\n# no\n3 4\n"sv, "numbers in columns"sv},
           {"[1, 2, 3]"sv, "JSON"sv},
           {"[1]"sv, "JSON"sv},
           {"{\"a\": 1}"sv, "JSON"sv},
           {"[[job]]\nname = \"a\""sv, "TOML"sv},
           {"[bottleneck]\nrate = \"1 Gbps\""sv, "TOML"sv},
           {"# a\nname = \"a\""sv, "TOML"sv},
           {"x,y\n1,2\n"sv, "CSV"sv},
           {"# a\nTopology: [2, 2]\nNpusCount: [2, 2]\n"sv, "YAML"sv},
           {"---\nhello"sv, "YAML"sv},
           {"Forward: [ 16, -1 ]\nInputGrad: [ 16, -1 ]\n"sv, "YAML"sv},
           {"Where each file comes from, and why\nthe first, for once\n"sv, ""sv},
           {"syntax = \"proto3\";\n"sv, ""sv},
           {"hello, world\nand more\n"sv, ""sv},
           {"Error: it failed\nand more\n"sv, ""sv},
           {""sv, ""sv},
       })
    EXPECT_EQ(file_format(beginning).name, name) << beginning;
}

TEST(FileFormat, is_foreign__of_what_is_not_written_for_this_program) {
  EXPECT_TRUE(file_format("<a></a>").is_foreign);
  EXPECT_TRUE(file_format("PK\x03\x04\x14"sv).is_foreign);
  for (const std::string text : {"{}", "a = 1", "a,b", "1 2", "a: b", "hello"})
    EXPECT_FALSE(file_format(text).is_foreign);
}

}  // namespace
}  // namespace mltcp::file_format_test
