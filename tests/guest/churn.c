// SPDX-License-Identifier: GPL-2.0
/*
 * churn SECONDS SEED: processes that allocate by memory policies in random order:
 * mbind, set_mempolicy, move_pages and migrate_pages, VMAs split and unmapped,
 * files, children. Ends with 0 if memory kept what was written to it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/mempolicy.h>

/* Headers of Debian 12 do not know it yet. */
#define WEIGHTED_INTERLEAVE	6
#define WORKERS		4
#define AREA		(8UL << 20)
#define BITS		(8 * sizeof(long) + 1)

static unsigned int seed;

static unsigned int rnd(unsigned int limit)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % limit;
}

/* Any nodes; those that are not there make the call fail, which is as well. */
static unsigned long some_nodes(void)
{
	return rnd(15) + 1;
}

static void random_policy(void)
{
	static const int modes[] = { MPOL_INTERLEAVE, MPOL_INTERLEAVE, MPOL_BIND,
				     MPOL_PREFERRED, WEIGHTED_INTERLEAVE };
	unsigned long mask = some_nodes();

	if (rnd(4))
		syscall(__NR_set_mempolicy, modes[rnd(5)], &mask, BITS);
	else
		syscall(__NR_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}

static int use_area(void)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t len = (rnd(AREA / page) + 1) * page, i;
	int shared = rnd(3) == 0, node = -1;
	unsigned long mask = some_nodes(), others = ~0UL >> 60;
	int fd = shared ? memfd_create("churn", 0) : -1;
	char *map;

	if (shared && (fd < 0 || ftruncate(fd, len))) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	map = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return 0;
	if (rnd(2))
		madvise(map, len, rnd(2) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (rnd(2))
		syscall(__NR_mbind, map, len, MPOL_INTERLEAVE, &mask, BITS, 0);
	for (i = 0; i < len; i += page)
		*(size_t *)(map + i) = i;
	if (len > 8 * (size_t)page)
		mprotect(map + len / 2 / page * page, page, PROT_READ);
	mask = some_nodes();
	syscall(__NR_mbind, map, len, MPOL_INTERLEAVE, &mask, BITS, MPOL_MF_MOVE);
	if (rnd(8) == 0)
		syscall(__NR_migrate_pages, 0, BITS, &others, &mask);
	syscall(__NR_get_mempolicy, &node, NULL, 0, NULL, MPOL_F_NODE);
	if (rnd(4) == 0 && !fork())
		_exit(*(volatile size_t *)map);
	for (i = 0; i < len; i += page)
		if (*(size_t *)(map + i) != i)
			return 1;
	munmap(map, len);
	return 0;
}

static void write_file(void)
{
	static char buffer[1 << 16];
	char name[32];
	int fd, i;

	snprintf(name, sizeof(name), "/tmp/churn/%d", getpid());
	fd = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (fd < 0)
		return;
	for (i = rnd(64); i; i--)
		if (write(fd, buffer, rnd(sizeof(buffer))) < 0)
			break;
	close(fd);
	unlink(name);
}

static int work(time_t end)
{
	while (time(NULL) < end) {
		random_policy();
		if (rnd(3) == 0)
			write_file();
		else if (use_area())
			return 1;
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	time_t end;
	int i, status, bad = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: churn SECONDS SEED\n");
		return 2;
	}
	end = time(NULL) + atoi(argv[1]);
	for (i = 0; i < WORKERS; i++) {
		seed = atoi(argv[2]) + i;
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			return work(end);
		}
	}
	while (wait(&status) > 0)
		bad += status != 0;
	printf("# %d of %d workers failed\n", bad, WORKERS);
	return bad != 0;
}
