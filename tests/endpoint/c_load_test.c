/* Tests that loading libmltcp.so.1 and reading its version starts no thread and opens no file. DPDK would do both, so
 * it is not started either. Usage: c_load_test LIBRARY */
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int entries(const char* folder) {
  int count = 0;
  DIR* all = opendir(folder);
  if (all == NULL) return -1;
  while (readdir(all) != NULL) ++count;
  closedir(all);
  return count;
}

int main(int argc, char** argv) {
  const int threads = entries("/proc/self/task");
  const int files = entries("/proc/self/fd");
  void* library;
  void* found;
  uint32_t (*version)(void);
  if (argc != 2) return 2;
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "c_load_test: %s\n", dlerror());
    return 1;
  }
  found = dlsym(library, "mltcp_version");
  if (found == NULL) return 1;
  memcpy(&version, &found, sizeof found);
  if (version() >> 16 != 1) return 1;
  if (dlclose(library) != 0) return 1;
  if (entries("/proc/self/task") != threads || entries("/proc/self/fd") != files) {
    fprintf(stderr, "c_load_test: %d threads and %d files more\n", entries("/proc/self/task") - threads,
            entries("/proc/self/fd") - files);
    return 1;
  }
  return 0;
}
