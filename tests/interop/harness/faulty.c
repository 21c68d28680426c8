/* Preloaded into a node: has reads, writes and synchronisations of the store's files fail or take long, and the clock of a shard
 * fail, as the file that CARILLON_TEST_FAULTS names says at the moment. It is mapped, so that a test can change its mind. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Shared with harness/faults.py. */
struct faults {
    _Atomic int read_errno;
    _Atomic int write_errno;
    _Atomic int sync_errno;
    _Atomic int sync_ms;
    /* Once: the standard library has no answer to a clock that fails, and panics. */
    _Atomic int shard_clock_errno;
    /* Calls that failed or waited. */
    _Atomic int met;
};

static struct faults none;
static struct faults *faults = &none;

__attribute__((constructor)) static void map(void) {
    const char *path = getenv("CARILLON_TEST_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof(struct faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        faults = mapped;
    close(fd);
}

static int is_store(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return 0;
    path[n] = 0;
    return strstr(path, "/carillon.db") != NULL;
}

static int fails(_Atomic int *error, int fd) {
    int code = atomic_load(error);
    if (code == 0 || !is_store(fd))
        return 0;
    atomic_fetch_add(&faults->met, 1);
    errno = code;
    return 1;
}

#define REAL(name, ...)                                                                                              \
    static __typeof__(&name) real;                                                                                   \
    if (!real)                                                                                                       \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                           \
    return real(__VA_ARGS__)

ssize_t read(int fd, void *to, size_t n) {
    if (fails(&faults->read_errno, fd))
        return -1;
    REAL(read, fd, to, n);
}

ssize_t pread(int fd, void *to, size_t n, off_t at) {
    if (fails(&faults->read_errno, fd))
        return -1;
    REAL(pread, fd, to, n, at);
}

ssize_t pread64(int fd, void *to, size_t n, off64_t at) {
    if (fails(&faults->read_errno, fd))
        return -1;
    REAL(pread64, fd, to, n, at);
}

ssize_t write(int fd, const void *from, size_t n) {
    if (fails(&faults->write_errno, fd))
        return -1;
    REAL(write, fd, from, n);
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
    if (fails(&faults->write_errno, fd))
        return -1;
    REAL(pwrite, fd, from, n, at);
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
    if (fails(&faults->write_errno, fd))
        return -1;
    REAL(pwrite64, fd, from, n, at);
}

static int sync_fails(int fd) {
    int ms = atomic_load(&faults->sync_ms);
    if (ms > 0 && is_store(fd)) {
        atomic_fetch_add(&faults->met, 1);
        struct timespec wait = {ms / 1000, ms % 1000 * 1000000L};
        nanosleep(&wait, NULL);
    }
    return fails(&faults->sync_errno, fd);
}

int fsync(int fd) {
    if (sync_fails(fd))
        return -1;
    REAL(fsync, fd);
}

int fdatasync(int fd) {
    if (sync_fails(fd))
        return -1;
    REAL(fdatasync, fd);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    if (id == CLOCK_MONOTONIC && atomic_load(&faults->shard_clock_errno) != 0) {
        char name[16] = "";
        prctl(PR_GET_NAME, name);
        int code = strcmp(name, "shard-0") == 0 ? atomic_exchange(&faults->shard_clock_errno, 0) : 0;
        if (code != 0) {
            atomic_fetch_add(&faults->met, 1);
            errno = code;
            return -1;
        }
    }
    return (int)syscall(SYS_clock_gettime, id, now);
}
