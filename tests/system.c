/* A system that can do less: loaded before libc (LD_PRELOAD), it makes calls fail as those of file
 * systems and networks do. LESS_LOCKS and LESS_MEMORY are error numbers: of locking files under the
 * folder LESS_UNDER, and of sharing their memory. A look-up of a name with "slow" in it takes as
 * long as LESS_LOOKUP says, in seconds. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) static __typeof__(&name) next; if (!next) next = dlsym(RTLD_NEXT, #name)

static int fails(const char *setting, int fd) {
  const char *number = getenv(setting), *under = getenv("LESS_UNDER");
  char link[64], path[4096];
  ssize_t length;
  if (!number || !under || fd < 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if ((length = readlink(link, path, sizeof path - 1)) < 0) return 0;
  path[length] = 0;
  if (strncmp(path, under, strlen(under))) return 0;
  errno = atoi(number);
  return 1;
}

static int locks(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_GETLK || command == F_OFD_SETLK ||
         command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

#define CONTROL(name) \
  int name(int fd, int command, ...) { \
    NEXT(name); \
    va_list rest; \
    va_start(rest, command); \
    void *argument = va_arg(rest, void *); \
    va_end(rest); \
    return locks(command) && fails("LESS_LOCKS", fd) ? -1 : next(fd, command, argument); \
  }
CONTROL(fcntl)
CONTROL(fcntl64)

int flock(int fd, int operation) {
  NEXT(flock);
  return fails("LESS_LOCKS", fd) ? -1 : next(fd, operation);
}

#define MAP(name) \
  void *name(void *address, size_t length, int protection, int flags, int fd, off_t offset) { \
    NEXT(name); \
    if (flags & MAP_SHARED && fails("LESS_MEMORY", fd)) return MAP_FAILED; \
    return next(address, length, protection, flags, fd, offset); \
  }
MAP(mmap)
MAP(mmap64)

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
  NEXT(getaddrinfo);
  const char *seconds = getenv("LESS_LOOKUP");
  if (seconds && name && strstr(name, "slow")) {
    struct timespec left = {atoi(seconds), 0};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
    return EAI_AGAIN;
  }
  return next(name, service, hints, found);
}
