// SPDX-License-Identifier: GPL-2.0
/*
 * faults NTH-FILE: what programs ask of memory management, again and again, with the
 * first, second, third... allocation failing in the kernel, until none is left to fail.
 * NTH-FILE takes the number and shows what is left of it: /proc/self/fail-nth for slabs
 * and pages, the parameter of the module percpu_fail.
 *
 * Each operation has to succeed, or to fail for want of memory, and without a failure
 * to succeed afterwards. Memory keeps what was written to it. TAP.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#define BITS		(8 * sizeof(long) + 1)
#define PAGES		16
#define MOST		3000	/* of the allocations that one operation makes */
#define WEIGHTED_INTERLEAVE	6

static const char *nth_file;
static int nth_fd;
static unsigned long nodes;
static long page;
static unsigned int failures;

static void set_nth(unsigned int nth)
{
	char text[16];

	if (pwrite(nth_fd, text, sprintf(text, "%u", nth), 0) < 0) {
		printf("Bail out! %s: %s\n", nth_file, strerror(errno));
		exit(1);
	}
}

/* Not by a new open(), which could fail. */
static unsigned int get_nth(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	return atoi(text);
}

/* An operation returns 0, or the error that it got. */
static int error(long ret)
{
	return ret < 0 ? errno : 0;
}

static int policy(int mode)
{
	int err = error(syscall(__NR_set_mempolicy, mode, &nodes, BITS));

	syscall(__NR_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	return err;
}

static int interleave(void)	{ return policy(MPOL_INTERLEAVE); }
static int weighted(void)	{ return policy(WEIGHTED_INTERLEAVE); }
static int bind(void)		{ return policy(MPOL_BIND); }

/* 0, an error, or -1 for memory that has lost what was written to it. */
static int use(int flags, int fd, int split, int move)
{
	size_t len = PAGES * page, i;
	char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);
	int err = 0;

	if (map == MAP_FAILED)
		return errno;
	for (i = 0; i < len; i += page)
		*(size_t *)(map + i) = i;
	if (move)
		err = error(syscall(__NR_mbind, map + split * page, len - 2 * split * page,
				    MPOL_INTERLEAVE, &nodes, BITS, MPOL_MF_MOVE));
	if (split && !err)
		err = error(mprotect(map + page, page, PROT_READ));
	for (i = 0; i < len; i += page)
		if (*(size_t *)(map + i) != i)
			err = -1;
	munmap(map, len);
	return err;
}

static int touch(void)		{ return use(MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, 0); }
static int mbind_move(void)	{ return use(MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, 1); }
static int mbind_split(void)	{ return use(MAP_PRIVATE | MAP_ANONYMOUS, -1, 3, 1); }

static int mbind_shared(void)
{
	int fd = memfd_create("faults", 0), err;

	if (fd < 0)
		return errno;
	err = error(ftruncate(fd, PAGES * page));
	if (!err)
		err = use(MAP_SHARED, fd, 3, 1);
	close(fd);
	return err;
}

static int page_cache(void)
{
	static char text[64 * 1024];
	int fd, err = error(syscall(__NR_set_mempolicy, MPOL_INTERLEAVE, &nodes, BITS));

	if (err)
		return err;
	fd = open("/tmp/faults", O_CREAT | O_TRUNC | O_RDWR, 0600);
	err = error(fd);
	if (!err) {
		err = error(write(fd, text, sizeof(text)));
		close(fd);
	}
	unlink("/tmp/faults");
	syscall(__NR_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	return err;
}

static int moves(void)
{
	static char area[PAGES * 4096] __attribute__((aligned(4096)));
	void *pages[PAGES];
	int target[PAGES], status[PAGES], i, last = 63 - __builtin_clzl(nodes);

	for (i = 0; i < PAGES; i++) {
		pages[i] = area + i * 4096;
		*(volatile char *)pages[i] = i;
		target[i] = i % 2 ? last : 0;
	}
	if (syscall(__NR_move_pages, 0, (long)PAGES, pages, target, status, MPOL_MF_MOVE) < 0)
		return errno;
	for (i = 0; i < PAGES; i++)
		if (area[i * 4096] != i)
			return -1;
	return 0;
}

static int migrates(void)
{
	unsigned long last = 1UL << (63 - __builtin_clzl(nodes)), first = 1;

	return error(syscall(__NR_migrate_pages, 0, BITS, &first, &last));
}

static int wait_for(pid_t pid)
{
	int status;

	if (pid < 0)
		return errno;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : ENOMEM;
}

static int forks(void)
{
	pid_t pid;
	int err = error(syscall(__NR_set_mempolicy, MPOL_INTERLEAVE, &nodes, BITS));

	if (err)
		return err;
	pid = fork();
	if (!pid)
		_exit(0);
	err = wait_for(pid);
	syscall(__NR_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	return err;
}

static int vforks(void)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	return wait_for(pid);
}

static void *nothing(void *arg)
{
	return arg;
}

static int threads(void)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, nothing, NULL);

	if (!err)
		pthread_join(thread, NULL);
	return err;
}

static int reads(const char *path)
{
	static char buf[1 << 16];
	int fd = open(path, O_RDONLY), n = 0;

	if (fd < 0)
		return errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		;
	n = error(n);
	close(fd);
	return n;
}

static int numastat(void)	{ return reads("/sys/devices/system/node/node0/numastat"); }
static int node_vmstat(void)	{ return reads("/sys/devices/system/node/node0/vmstat"); }
static int vmstat(void)		{ return reads("/proc/vmstat"); }
static int zoneinfo(void)	{ return reads("/proc/zoneinfo"); }
static int numa_maps(void)	{ return reads("/proc/self/numa_maps"); }
static int smaps(void)		{ return reads("/proc/self/smaps"); }
static int status(void)		{ return reads("/proc/self/status"); }

/* Each file of the list knobs gets the number back that it has. */
static int knobs(void)
{
	static char line[256];
	char path[128], value[32];
	int fd, n, err = 0;
	FILE *list = fopen("/tests/knobs", "r");

	while (list && !err && fgets(line, sizeof(line), list)) {
		if (sscanf(line, "/%127s", path + 1) != 1)
			continue;
		path[0] = '/';
		fd = open(path, O_RDWR);
		if (fd < 0) {
			err = errno == ENOENT ? 0 : errno;
			continue;
		}
		n = read(fd, value, sizeof(value));
		if (n > 0)
			n = pwrite(fd, value, n, 0);
		err = error(n);
		close(fd);
	}
	if (!list)
		return errno;
	fclose(list);
	return err;
}

static const struct {
	const char *name;
	int (*run)(void);
} operations[] = {
	{ "set_mempolicy, interleaved", interleave },
	{ "set_mempolicy, weighted", weighted },
	{ "set_mempolicy, bound", bind },
	{ "anonymous memory", touch },
	{ "mbind that moves", mbind_move },
	{ "mbind that splits", mbind_split },
	{ "mbind of shmem", mbind_shared },
	{ "page cache, interleaved", page_cache },
	{ "move_pages", moves },
	{ "migrate_pages", migrates },
	{ "fork with a policy", forks },
	{ "vfork", vforks },
	{ "threads", threads },
	{ "numastat", numastat },
	{ "node's vmstat", node_vmstat },
	{ "vmstat", vmstat },
	{ "zoneinfo", zoneinfo },
	{ "numa_maps", numa_maps },
	{ "smaps", smaps },
	{ "status", status },
	{ "knobs", knobs },
};

static int try(int number)
{
	unsigned int nth, left, refused = 0;
	int err, bad = 0;

	/* Whatever is set up only once. */
	for (nth = 0; nth < 3; nth++)
		operations[number].run();
	for (nth = 1; nth <= MOST; nth++) {
		set_nth(nth);
		err = operations[number].run();
		left = get_nth();
		set_nth(0);
		if (err)
			refused++;
		if (err && err != ENOMEM && err != EAGAIN) {
			printf("# %s: allocation %u failed: %s\n", operations[number].name, nth,
			       err < 0 ? "memory lost what was written to it" : strerror(err));
			bad++;
		}
		if (left)
			break;
	}
	if (nth > MOST) {
		printf("# %s: no end of allocations\n", operations[number].name);
		bad++;
	}
	failures += nth - 1;
	err = operations[number].run();
	if (err) {
		printf("# %s: afterwards: %s\n", operations[number].name, strerror(err));
		bad++;
	}
	printf("%sok %d %s: %u failures, %u of them seen\n", bad ? "not " : "", number + 1,
	       operations[number].name, nth - 1, refused);
	return bad;
}

int main(int argc, char **argv)
{
	int i, bad = 0, nr = sizeof(operations) / sizeof(*operations);
	FILE *f = fopen("/sys/devices/system/node/has_memory", "r");
	int first, last;

	if (argc != 2) {
		fprintf(stderr, "usage: faults NTH-FILE\n");
		return 2;
	}
	nth_file = argv[1];
	page = sysconf(_SC_PAGESIZE);
	/* "0-1", "0,2" or "0" */
	i = f ? fscanf(f, "%d%*[-,]%d", &first, &last) : 0;
	if (i < 1)
		return 4;
	nodes = 1UL << first | 1UL << (i == 2 ? last : first);
	nth_fd = open(nth_file, O_RDWR);
	if (nth_fd < 0)
		return 4;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%d\n", nr + 1);
	for (i = 0; i < nr; i++)
		bad += !!try(i);
	bad += !failures;
	printf("%sok %d %u allocations were made to fail\n", failures ? "" : "not ", nr + 1,
	       failures);
	return bad != 0;
}
