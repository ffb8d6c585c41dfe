/* Slurm's SPANK plug-in (spank(7)). It adds options by which a job names its profile, and passes the job's plan to its
 * tasks in their environment.
 *
 *   --mltcp-profile=FILE         file with the phases of an iteration, by which `mltcp scheduler --slurm` plans the job
 *   --mltcp-shift=TIME[/PERIOD]  a time shift that the user sets, without a service
 *
 * On submission (srun, sbatch, salloc) the command `mltcp profile` reads the profile. The plug-in passes the profile to
 * job_submit.lua as MLTCP_PROFILE in the job's control environment. When tasks start, the plug-in (in slurmstepd) reads
 * the plan from the job's AdminComment. The service has written the plan there before it released the job, so only
 * Slurm transports it. While tasks run, the plug-in reads the plan repeatedly, and updates the file that
 * MLTCP_PLAN_FILE names. docs/how-to/slurm.md describes the variables and the form of the comment.
 *
 * The plug-in is C without any library but libc, because it is loaded into daemons that run as root. The loading
 * program provides slurm_load_job().
 *
 * Arguments in plugstack.conf:
 *   wait=SECONDS     how long a task waits for a plan at its start, 0 to 600, default 10
 *   refresh=SECONDS  interval at which the plan is read again, 1 to 3600, default 10; 0: never
 *   plans=FOLDER     folder of the plan files, default /run/mltcp/plans
 *   mltcp=PATH       the command mltcp, by default the one in the user's PATH */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

SPANK_PLUGIN(mltcp, 1)

extern char** environ;

enum {
  longest_file = 1 << 20,  /* maximum bytes of the user's profile file */
  longest_profile = 32768, /* maximum bytes of a profile in the environment and in AdminComment */
  longest_reason = 200,
  max_wait_s = 600,
  max_refresh_s = 3600,
  reading_ms = 10000, /* time limit of `mltcp profile`, in milliseconds */
};

/* ---- The options ---- */

static struct {
  bool profile; /* --mltcp-profile was given */
  char* text;   /* contents of the profile file; NULL if it was not read */
  bool shift;   /* --mltcp-shift was given */
  int64_t shift_ns;
  int64_t period_ns; /* 0 if no period was given */
} asked;
static struct {
  int wait_s, refresh_s;
  const char* plans;
  const char* mltcp;
} settings = {.wait_s = 10, .refresh_s = 10, .plans = "/run/mltcp/plans", .mltcp = "mltcp"};
static const char not_in_time[] = "the scheduler service has made no plan for it in time";
/* Message for the task's standard error; "" if there is no message. */
static char to_say[longest_reason + 64];

/* Converts a text such as "12ms", which ends at `end`, to nanoseconds. Returns -1 for any other text. */
static int64_t duration(const char* text, const char* end) {
  static const struct {
    const char* name;
    double ns;
  } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  char* unit = NULL;
  if (!isdigit((unsigned char)*text)) return -1;
  const double number = strtod(text, &unit);
  while (unit < end && *unit == ' ') ++unit;
  for (size_t i = 0; i < sizeof units / sizeof *units; ++i)
    if (unit < end && strlen(units[i].name) == (size_t)(end - unit) &&
        strncmp(unit, units[i].name, (size_t)(end - unit)) == 0 && number * units[i].ns < 9e15)
      return (int64_t)(number * units[i].ns + 0.5);
  return -1;
}

static int take_shift(int value, const char* argument, int remote) {
  (void)value;
  (void)remote;
  const char* slash = strchr(argument, '/');
  asked.shift = true;
  asked.shift_ns = duration(argument, slash != NULL ? slash : argument + strlen(argument));
  asked.period_ns = slash != NULL ? duration(slash + 1, argument + strlen(argument)) : 0;
  if (asked.shift_ns >= 0 && (slash == NULL || asked.period_ns > 0)) return 0;
  slurm_error(
      "--mltcp-shift: \"%.60s\" is not a time; give a number and ns, us, ms or s, e.g. 12ms, or 12ms/200ms with the "
      "period of slots",
      argument);
  return -1;
}

/* Returns the contents of a file with a terminating zero. If the file cannot be read, prints an error and returns
 * NULL. */
static char* content(const char* file) {
  const int descriptor = open(file, O_RDONLY | O_CLOEXEC);
  char* text = descriptor >= 0 ? malloc(longest_file + 1) : NULL;
  size_t size = 0;
  ssize_t got = -1;
  while (text != NULL && size <= longest_file && (got = read(descriptor, text + size, longest_file + 1 - size)) > 0)
    size += (size_t)got;
  if (got < 0)
    slurm_error("--mltcp-profile: %s: %s; give a file with a job's profile", file, strerror(errno));
  else if (size > longest_file)
    slurm_error("--mltcp-profile: %s is longer than 1 MiB; give a job's profile, not its trace", file);
  else if (memchr(text, 0, size) != NULL)
    slurm_error("--mltcp-profile: %s has bytes of value 0, so it is not text; give a job's profile", file);
  else
    text[size] = '\0';
  if (descriptor >= 0) close(descriptor);
  if (got < 0 || size > longest_file || strlen(text) != size) {
    free(text);
    return NULL;
  }
  return text;
}

/* Reads until the data ends, `text` is full, or `milliseconds` have passed. Returns the number of bytes in `text`. */
static size_t drain(int descriptor, char* text, size_t capacity, int milliseconds) {
  size_t size = 0;
  struct timespec begun, now;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  while (size + 1 < capacity) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long passed = (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
    struct pollfd watched = {.fd = descriptor, .events = POLLIN};
    if (passed >= milliseconds || poll(&watched, 1, milliseconds - (int)passed) <= 0) break;
    const ssize_t got = read(descriptor, text + size, capacity - 1 - size);
    if (got <= 0) break;
    size += (size_t)got;
  }
  text[size] = '\0';
  return size;
}

/* Writes the output of `mltcp profile FILE` to `text`: the profile in one line. Returns 0; 1 if there is no program
 * `mltcp`; -1 if there was an error, which has been printed. */
static int read_by_command(const char* file, char* text, size_t capacity) {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) {
    slurm_error("--mltcp-profile: cannot create a pipe: %s", strerror(errno));
    return -1;
  }
  char* words[] = {(char*)settings.mltcp, "profile", "--", (char*)file, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  /* The program prints errors on standard error, in one line. */
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  pid_t process = 0;
  const int problem = posix_spawnp(&process, settings.mltcp, &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(output[1]);
  if (problem != 0) {
    close(output[0]);
    return 1;
  }
  const size_t size = drain(output[0], text, capacity, reading_ms);
  close(output[0]);
  int status = 0;
  const struct timespec moment = {.tv_nsec = 10000000};
  pid_t ended = 0;
  for (int i = 0; i < reading_ms / 10 && (ended = waitpid(process, &status, WNOHANG)) == 0; ++i)
    nanosleep(&moment, NULL);
  if (ended == 0) {
    kill(process, SIGKILL);
    waitpid(process, &status, 0);
    slurm_error("--mltcp-profile: %s profile %s does not end within 10 s", settings.mltcp, file);
    return -1;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? 1 : -1;
  if (size == 0 || size + 1 == capacity) {
    slurm_error("--mltcp-profile: %s needs more than %d bytes as one line; give fewer phases", file, longest_profile);
    return -1;
  }
  text[strcspn(text, "\n")] = '\0';
  return 0;
}

/* Removes white space. This is safe, because the only strings of a profile are its keys, which contain no white
 * space. */
static void squeeze(char* text) {
  char* to = text;
  for (const char* from = text; *from != '\0'; ++from)
    if (!isspace((unsigned char)*from)) *to++ = *from;
  *to = '\0';
}

static int take_profile(int value, const char* argument, int remote) {
  (void)value;
  asked.profile = true;
  /* Job steps inherit the option of their job. The job's file may not exist on this host. */
  if (remote || (spank_context() == S_CTX_LOCAL && getenv("SLURM_JOB_ID") != NULL)) return 0;
  char* file = content(argument);
  if (file == NULL) return -1;
  free(asked.text);
  asked.text = calloc(1, longest_profile + 2);
  int result = asked.text != NULL ? read_by_command(argument, asked.text, longest_profile + 2) : -1;
  if (result == 1) {
    squeeze(file);
    result = *file == '{' && strlen(file) <= longest_profile ? 0 : -1;
    if (result == 0)
      strcpy(asked.text, file); /* job_submit.lua checks the profile */
    else
      slurm_error(
          "--mltcp-profile: there is no program \"%s\" to read %s with; install mltcp-tools here, or give a "
          "profile as JSON",
          settings.mltcp, argument);
  }
  free(file);
  return result;
}

static struct spank_option options[] = {
    {"mltcp-profile", "FILE",
     "MLTCP: the job's profile, as `mltcp inspect --toml` prints it, or JSON; the scheduler places the job on links "
     "with compatible jobs, and gives it slots for its bursts",
     1, 1, take_profile},
    {"mltcp-shift", "TIME[/PERIOD]",
     "MLTCP: start time of iterations, e.g. 12ms/200ms; for use without the scheduler service", 1, 2, take_shift},
};

/* ---- The plan ---- */

/* The job's entry in AdminComment: mltcp:{"profile":{...},"plan":{"number":3,...}}, or "reason":"..." in place of the
 * plan. The service and job_submit.lua write it without spaces, and without braces or escapes in strings. */
struct plan {
  bool marked;
  bool planned;
  int64_t number;
  bool slots;
  int64_t slot_unix_ns, period_ns, shift_ns, revision;
  char reason[longest_reason];
};

/* Reads the number after "key": between `from` and `to`. Returns false if there is none. */
static bool number_of(const char* from, const char* to, const char* key, int64_t* number) {
  char pattern[40];
  snprintf(pattern, sizeof pattern, "\"%s\":", key);
  const char* found = strstr(from, pattern);
  if (found == NULL || found >= to) return false;
  found += strlen(pattern);
  if (!isdigit((unsigned char)*found) && *found != '-') return false;
  char* end = NULL;
  errno = 0;
  *number = strtoll(found, &end, 10);
  return errno == 0 && (*end == ',' || *end == '}');
}

static void reason_of(const char* from, char* reason) {
  static const char pattern[] = "\"reason\":\"";
  const char* found = strstr(from, pattern);
  size_t size = 0;
  if (found != NULL)
    for (found += sizeof pattern - 1; *found != '"' && *found != '\0' && size + 1 < longest_reason; ++found)
      reason[size++] = iscntrl((unsigned char)*found) ? '?' : *found;
  reason[size] = '\0';
}

static struct plan parse(const char* comment) {
  struct plan plan = {.marked = false};
  const char* mark = comment != NULL ? strstr(comment, "mltcp:{") : NULL;
  if (mark == NULL) return plan;
  plan.marked = true;
  reason_of(mark, plan.reason);
  const char* begin = strstr(mark, "\"plan\":{");
  const char* end = begin != NULL ? strchr(begin, '}') : NULL;
  if (end == NULL) return plan;
  plan.planned = number_of(begin, end, "number", &plan.number) && plan.number > 0 && plan.number <= UINT32_MAX;
  plan.slots = plan.planned && number_of(begin, end, "slot_unix_ns", &plan.slot_unix_ns) &&
               number_of(begin, end, "slot_period_ns", &plan.period_ns) && plan.period_ns > 0 &&
               number_of(begin, end, "time_shift_ns", &plan.shift_ns);
  if (!plan.planned || !number_of(begin, end, "revision", &plan.revision)) plan.revision = 0;
  return plan;
}

/* Asks slurmctld for the job's plan. Returns false if slurmctld does not answer. */
static bool load(uint32_t job, struct plan* plan) {
  job_info_msg_t* answer = NULL;
  if (slurm_load_job(&answer, job, 0) != SLURM_SUCCESS || answer == NULL) return false;
  for (uint32_t i = 0; i < answer->record_count; ++i)
    if (answer->job_array[i].job_id == job) *plan = parse(answer->job_array[i].admin_comment);
  slurm_free_job_info_msg(answer);
  return true;
}

/* ---- The plan file ---- */

static struct {
  char path[300];  /* path of the plan file; "" if there is no file */
  char early[310]; /* path under which the file is written before it is renamed */
  uint32_t job;
  int64_t revision; /* revision of the plan in the file */
  bool started, stop;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t stopped;
} follower = {.mutex = PTHREAD_MUTEX_INITIALIZER, .stopped = PTHREAD_COND_INITIALIZER};

/* Writes a plan file "mltcp.plan/1" (docs/reference/plan-file.md) with only this job. Replaces the previous file
 * atomically. */
static bool write_plan(const struct plan* plan) {
  /* The file is created anew, so that no existing link is followed. */
  if (unlink(follower.early) != 0 && errno != ENOENT) return false;
  const int opened = open(follower.early, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  FILE* file = opened >= 0 ? fdopen(opened, "w") : NULL;
  if (file == NULL) {
    if (opened >= 0) close(opened);
    return false;
  }
  fprintf(file,
          "{\"schema\":\"mltcp.plan/1\",\"serial\":%" PRId64 ",\"clock\":\"realtime\",\"epoch_ns\":%" PRId64
          ",\"jobs\":[",
          plan->revision, plan->slots ? plan->slot_unix_ns : 0);
  if (plan->slots)
    fprintf(file, "{\"name\":\"%" PRId64 "\",\"period_ns\":%" PRId64 ",\"offset_ns\":0}", plan->number,
            plan->period_ns);
  fprintf(file, "]}\n");
  const bool written = fchmod(fileno(file), 0644) == 0 && fflush(file) == 0;
  follower.revision = plan->revision;
  return fclose(file) == 0 && written && rename(follower.early, follower.path) == 0;
}

/* Creates the plan file and its folder. If this fails, tasks get their plan only from the environment. */
static void begin_file(spank_t spank, uint32_t job, const struct plan* plan) {
  char parent[256];
  uint32_t step = 0, node = 0;
  spank_get_item(spank, S_JOB_STEPID, &step);
  spank_get_item(spank, S_JOB_NODEID, &node);
  if (snprintf(parent, sizeof parent, "%s", settings.plans) >= (int)sizeof parent) return;
  for (char* slash = parent + 1; slash != NULL;) { /* mkdir -p */
    if ((slash = strchr(slash, '/')) != NULL) *slash = '\0';
    if (mkdir(parent, 0755) != 0 && errno != EEXIST) break;
    if (slash != NULL) *slash++ = '/';
  }
  struct stat folder;
  if (stat(settings.plans, &folder) == 0 && S_ISDIR(folder.st_mode) &&
      ((folder.st_uid != 0 && folder.st_uid != geteuid()) || (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
    slurm_error("mltcp: %s: other users can write in it; give plans= a folder of root with mode 0755", settings.plans);
    return;
  }
  snprintf(follower.path, sizeof follower.path, "%s/%" PRIu32 ".%" PRIu32 ".%" PRIu32, settings.plans, job, step, node);
  snprintf(follower.early, sizeof follower.early, "%s.new", follower.path);
  follower.job = job;
  if (write_plan(plan)) return;
  slurm_error("mltcp: %s cannot be written: %s; jobs keep the slots that they started with", follower.path,
              strerror(errno));
  follower.path[0] = '\0';
}

static void* follow(void* nothing) {
  (void)nothing;
  struct timespec next;
  clock_gettime(CLOCK_REALTIME, &next);
  pthread_mutex_lock(&follower.mutex);
  while (!follower.stop) {
    next.tv_sec += settings.refresh_s;
    while (!follower.stop && pthread_cond_timedwait(&follower.stopped, &follower.mutex, &next) == 0) continue;
    if (follower.stop) break;
    pthread_mutex_unlock(&follower.mutex);
    struct plan plan = {.marked = false};
    /* If slurmctld is down or the comment was cleared, the last plan remains valid. */
    if (load(follower.job, &plan) && plan.planned && plan.revision != follower.revision) write_plan(&plan);
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&follower.mutex);
  }
  pthread_mutex_unlock(&follower.mutex);
  return NULL;
}

/* ---- The environment ---- */

static void set(spank_t spank, const char* name, const char* format, ...) __attribute__((format(printf, 3, 4)));
static void set(spank_t spank, const char* name, const char* format, ...) {
  char value[sizeof follower.path];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  spank_setenv(spank, name, value, 1);
}

/* Removes all variables of a plan. */
static void unset_plan(spank_t spank) {
  static const char* const names[] = {"MLTCP_JOB",           "MLTCP_SLOT_UNIX_NS", "MLTCP_SLOT_PERIOD_NS",
                                      "MLTCP_TIME_SHIFT_NS", "MLTCP_PLAN_FILE",    "MLTCP_PLAN_REASON"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) spank_unsetenv(spank, names[i]);
}

/* Returns whether job_submit.lua has marked this job. In that case MLTCP_SLURM is "1" until a step has got its plan,
 * and then the job's number. A job that was submitted from within another job may have inherited the number and the
 * plan of the outer job. This function removes inherited variables. Without MLTCP_SLURM, the user has set the plan,
 * which stays unchanged. */
static bool marked_here(spank_t spank, uint32_t job) {
  char value[16], own[16];
  if (spank_getenv(spank, "MLTCP_SLURM", value, sizeof value) != ESPANK_SUCCESS) return false;
  snprintf(own, sizeof own, "%" PRIu32, job);
  if (strcmp(value, own) == 0) return true;
  unset_plan(spank);
  spank_unsetenv(spank, "MLTCP_SLURM");
  return strcmp(value, "1") == 0;
}

static int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void hand_over(spank_t spank, uint32_t job) {
  char said[longest_reason] = "";
  spank_getenv(spank, "MLTCP_PLAN_REASON", said, sizeof said);
  unset_plan(spank);
  set(spank, "MLTCP_SLURM", "%" PRIu32, job);

  /* The number of a job without a plan has its highest bit set; the service assigns small numbers. */
  struct plan plan = {.number = (int64_t)(job | UINT32_C(0x80000000))};
  if (asked.shift) {
    plan.slots = asked.period_ns > 0;
    plan.period_ns = asked.period_ns;
    plan.shift_ns = plan.slots ? asked.shift_ns % asked.period_ns : asked.shift_ns;
    plan.slot_unix_ns = plan.shift_ns;
    set(spank, "MLTCP_TIME_SHIFT_NS", "%" PRId64, plan.shift_ns);
  } else {
    struct plan loaded = {.marked = false};
    bool answered = false;
    const struct timespec pause = {.tv_nsec = 500000000};
    /* A job that was started without a plan gets one soon after the service has seen it start. A step does not wait if
     * an earlier step waited in vain. A clock limits the wait, because slurmctld may answer late or never. */
    const int64_t until = monotonic_ns() + (strcmp(said, not_in_time) == 0 ? 0 : settings.wait_s * INT64_C(1000000000));
    for (;;) {
      answered = load(job, &loaded) || answered;
      if (loaded.planned || (answered && (!loaded.marked || loaded.reason[0] != '\0'))) break;
      if (monotonic_ns() >= until) break;
      nanosleep(&pause, NULL);
    }
    if (loaded.planned) plan = loaded;
    if (settings.refresh_s > 0 && loaded.marked) begin_file(spank, job, &plan);
    if (follower.path[0] != '\0') set(spank, "MLTCP_PLAN_FILE", "%s", follower.path);
    if (!plan.slots) {
      const char* why = loaded.reason[0] != '\0' ? loaded.reason
                        : !answered              ? "slurmctld does not answer"
                        : !loaded.marked         ? "job_submit.lua has not marked the job; is it in JobSubmitPlugins?"
                                                 : not_in_time;
      set(spank, "MLTCP_PLAN_REASON", "%s", why);
      if (strncmp(why, said, sizeof said - 1) != 0)
        snprintf(to_say, sizeof to_say, "mltcp: this job runs without time slots: %s\n", why);
    }
  }
  set(spank, "MLTCP_JOB", "%" PRId64, plan.number);
  if (plan.slots) {
    set(spank, "MLTCP_SLOT_UNIX_NS", "%" PRId64, plan.slot_unix_ns);
    set(spank, "MLTCP_SLOT_PERIOD_NS", "%" PRId64, plan.period_ns);
    set(spank, "MLTCP_TIME_SHIFT_NS", "%" PRId64, plan.shift_ns);
  }
}

/* ---- The functions that Slurm calls ---- */

int slurm_spank_init(spank_t spank, int count, char* words[]) {
  for (int i = 0; i < count; ++i) {
    char* end = NULL;
    const char* value = strchr(words[i], '=');
    if (strncmp(words[i], "wait=", 5) == 0 && isdigit((unsigned char)value[1])) {
      const long seconds = strtol(value + 1, &end, 10);
      if (*end == '\0' && seconds <= max_wait_s) {
        settings.wait_s = (int)seconds;
        continue;
      }
    } else if (strncmp(words[i], "refresh=", 8) == 0 && isdigit((unsigned char)value[1])) {
      const long seconds = strtol(value + 1, &end, 10);
      if (*end == '\0' && seconds <= max_refresh_s) {
        settings.refresh_s = (int)seconds;
        continue;
      }
    } else if (strncmp(words[i], "plans=/", 7) == 0) {
      settings.plans = strdup(value + 1);
      continue;
    } else if (strncmp(words[i], "mltcp=", 6) == 0 && value[1] != '\0') {
      settings.mltcp = strdup(value + 1);
      continue;
    }
    slurm_error(
        "mltcp: plugstack.conf: \"%s\" is not understood; give wait=SECONDS (0 to 600), refresh=SECONDS (0 to "
        "3600), plans=/FOLDER, mltcp=PATH",
        words[i]);
    return -1;
  }
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_REMOTE && context != S_CTX_ALLOCATOR) return 0;
  for (size_t i = 0; i < sizeof options / sizeof *options; ++i)
    if (spank_option_register(spank, &options[i]) != ESPANK_SUCCESS) {
      slurm_error("mltcp: --%s can't be registered; is the plug-in in plugstack.conf twice?", options[i].name);
      return -1;
    }
  return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char* words[]) {
  (void)count;
  (void)words;
  if (asked.profile && asked.shift) {
    slurm_error("--mltcp-profile and --mltcp-shift: the profile's slots are computed; give one of them");
    return -1;
  }
  if (spank_context() != S_CTX_REMOTE) {
    if (asked.text == NULL) return 0;
    const spank_err_t problem = spank_job_control_setenv(spank, "MLTCP_PROFILE", asked.text, 1);
    if (problem != ESPANK_SUCCESS) slurm_error("--mltcp-profile: %s", spank_strerror(problem));
    return problem == ESPANK_SUCCESS ? 0 : -1;
  }
  uint32_t job = 0;
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return 0;
  /* Return early for jobs without a mark and without options of MLTCP. */
  if (!marked_here(spank, job) && !asked.profile && !asked.shift) return 0;
  hand_over(spank, job);
  return 0;
}

/* Runs in the task, so the message goes to the task's standard error. */
int slurm_spank_task_init(spank_t spank, int count, char* words[]) {
  (void)count;
  (void)words;
  uint32_t task = 0;
  if (to_say[0] != '\0' && spank_get_item(spank, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS && task == 0)
    if (write(STDERR_FILENO, to_say, strlen(to_say)) < 0) return 0; /* no process reads standard error */
  return 0;
}

/* Runs in slurmstepd after the fork of a task. Starts the thread only here, because threads do not survive a fork. */
int slurm_spank_task_post_fork(spank_t spank, int count, char* words[]) {
  (void)spank;
  (void)count;
  (void)words;
  if (follower.path[0] == '\0' || follower.started) return 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread must not receive signals for the step */
  follower.started = pthread_create(&follower.thread, NULL, follow, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!follower.started) slurm_error("mltcp: cannot start a thread; the job keeps the slots that it started with");
  return 0;
}

int slurm_spank_exit(spank_t spank, int count, char* words[]) {
  (void)spank;
  (void)count;
  (void)words;
  if (follower.started) {
    pthread_mutex_lock(&follower.mutex);
    follower.stop = true;
    pthread_cond_signal(&follower.stopped);
    pthread_mutex_unlock(&follower.mutex);
    pthread_join(follower.thread, NULL);
    follower.started = false;
  }
  if (follower.path[0] != '\0') unlink(follower.path);
  follower.path[0] = '\0';
  return 0;
}
