// Tests the manual pages and completions that `mltcp help --write` writes, with man, bash and zsh.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "program_test.h"

namespace mltcp::tools {
namespace {

class Manual : public ProgramTest {
 protected:
  void SetUp() override { ASSERT_EQ(run("help --write share").status, 0); }

  [[nodiscard]] static bool has_program(const std::string& name) {
    return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT(cert-*)
  }
  /// Returns the output of `script`, which `shell` runs in the test's folder.
  [[nodiscard]] std::string output_of(const std::string& shell, const std::string& script) const {
    put("script", script);
    const std::string line = "cd '" + folder_.string() + "' && " + shell + " script > out 2>&1 </dev/null";
    EXPECT_EQ(std::system(line.c_str()), 0) << script << "\n" << content(folder_ / "out");  // NOLINT(cert-*)
    return content(folder_ / "out");
  }
  /// Returns bash's completions of the last word in `words`. The words must be quoted for bash.
  [[nodiscard]] std::string completed(const std::string& words) const {
    return output_of("bash", "set -u\n. share/bash-completion/completions/mltcp\nCOMP_WORDS=(" + words +
                                 ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_mltcp\necho \"${COMPREPLY[*]-}\"\n");
  }
};

TEST_F(Manual, pages__one_for_the_program_and_each_command) {
  EXPECT_THAT(content(folder_ / "share/man/man1/mltcp.1"),
              HasAll(".SH COMMANDS", "\\fBrun\\fR\n", ".BR mltcp\\-doctor (1)"));
  const std::string run_page = content(folder_ / "share/man/man1/mltcp-run.1");
  EXPECT_THAT(run_page, HasAll("\\fB\\-\\-iterations\\fR \\fIN\\fR\n", "[1 \\- 1000000]", "\\fIEXPERIMENT.toml\\fR\n",
                               "mltcp+schedule"));
  EXPECT_THAT(content(folder_ / "share/man/man1/mltcp-gen.1"), HasSubstr(".SS Options of a host\n"));
  std::size_t pages = 0;
  const std::string commands = completed("mltcp ''");
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "share/man/man1")) {
    const std::string name = entry.path().stem().string();
    EXPECT_THAT(commands, HasSubstr(name == "mltcp" ? "run" : name.substr(6)));
    ++pages;
  }
  EXPECT_GE(pages, 12U);
}

TEST_F(Manual, pages__man_has_no_warnings) {
  if (!has_program("groff")) GTEST_SKIP() << "there is no groff; install groff-base";
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "share/man/man1"))
    EXPECT_EQ(output_of("bash", "groff -man -Tutf8 -ww " + entry.path().string() + " 2>&1 >/dev/null"), "") << entry;
}

TEST_F(Manual, bash__completes_commands_options_and_values) {
  EXPECT_EQ(completed("mltcp sw"), "sweep switch\n");
  EXPECT_EQ(completed("mltcp run --po"), "--policy\n");
  EXPECT_EQ(completed("mltcp help alg"), "algorithms\n");
  EXPECT_EQ(completed("mltcp gen --idle s"), "spin sleep\n");
  EXPECT_EQ(completed("mltcp run --cc d"), "dctcp dcqcn\n");
  EXPECT_EQ(completed("mltcp run --cc = sw"), "swift\n") << "--cc=sw";
  EXPECT_EQ(completed("mltcp run --policy fair,mltcp+"), "fair,mltcp+schedule\n");
  EXPECT_THAT(completed("mltcp run --datapath ''"), HasAll("sim", "flow"));
}

TEST_F(Manual, bash__completes_files) {
  put("mine.toml", "");
  EXPECT_EQ(completed("mltcp run mi"), "mine.toml\n");
  EXPECT_EQ(completed("mltcp run --json mi"), "mine.toml\n");
  EXPECT_EQ(completed("mltcp run --seed mi"), "\n") << "a number";
}

TEST_F(Manual, zsh__reads_it) {
  const std::string script = content(folder_ / "share/zsh/site-functions/_mltcp");
  EXPECT_THAT(script, HasAll("#compdef mltcp\n", "{-o,--output}'["));
  if (!has_program("zsh")) GTEST_SKIP() << "there is no zsh; install zsh to have the syntax checked";
  EXPECT_EQ(output_of("zsh -n", script), "");
}

TEST_F(Manual, search_paths__what_lacks_is_told_and_nothing_else) {
  const std::string here = std::filesystem::weakly_canonical(folder_ / "").string();
  const auto hints = [&](const std::string& environment, const std::string& folder) {
    return run("--version >/dev/null; env -u MANPATH -u FPATH -u XDG_DATA_HOME -u XDG_DATA_DIRS "
               "-u BASH_COMPLETION_USER_DIR " +
               environment + " " MLTCP_PROGRAM " help --write " + folder)
        .out;
  };
  const std::string share = (std::filesystem::path(here) / "share").string();
  const std::string below = "manual pages, and completions for bash and zsh, are below " + share + "\n";
  const std::string man = "for man, add to your shell's startup file: export MANPATH=" + share + "/man:$MANPATH\n";
  const std::string bash = "for bash, add to ~/.bashrc: . " + share + "/bash-completion/completions/mltcp\n";
  const std::string zsh =
      "for zsh, add to ~/.zshrc, before compinit: fpath=(" + share + "/zsh/site-functions $fpath)\n";
  EXPECT_EQ(hints("PATH=/bin", "share/"), below + man + bash + zsh);
  EXPECT_EQ(hints("PATH=/bin:" + share + "/../bin", "share"), below + bash + zsh) << "beside a folder of PATH";
  EXPECT_EQ(hints("PATH=/bin:" + share + "/../bin MANPATH=/usr/share/man", "share"), below + man + bash + zsh);
  EXPECT_EQ(hints("PATH=/bin MANPATH=/usr/share/man:" + share + "/man", "share"), below + bash + zsh);
  EXPECT_EQ(hints("PATH=/bin XDG_DATA_HOME=" + share, "share"), below + man + zsh);
  EXPECT_EQ(hints("PATH=/bin XDG_DATA_DIRS=/usr/share:" + share, "share"), below + man + zsh);
  EXPECT_EQ(hints("PATH=/bin FPATH=" + share + "/zsh/site-functions", "share"), below + man + bash);
  EXPECT_THAT(hints("PATH=/bin", "'a b'"), HasSubstr("fpath=('" + (std::filesystem::path(here) / "a b").string() +
                                                     "/zsh/site-functions' $fpath)\n"));
}

TEST_F(Manual, folder__that_cannot_be_made_is_refused) {
  put("file", "");
  EXPECT_THAT(refusal("help --write file/below"), HasAll("cannot be created", "may write to"));
  EXPECT_THAT(refusal("help --write"), HasSubstr("needs a folder to write below"));
}

}  // namespace
}  // namespace mltcp::tools
