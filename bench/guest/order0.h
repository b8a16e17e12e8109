/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of order 0 for the programs that look at how it lies: pages, and what
 * they come from. Each program is one file, hence all is static.
 */
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL
#define NODES 2
/* A block of 2 MiB, larger than what is allocated here. */
#define BLOCK_ORDER 9
#define MPOL_BIND 2

/* Pages of order 0, untouched. */
static char *map(unsigned long pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, pages * PAGE, MADV_NOHUGEPAGE))
		err(1, "mmap");
	return p;
}

static void touch(char *p, unsigned long pages)
{
	unsigned long i;

	for (i = 0; i < pages; i++)
		p[i * PAGE] = 1;
}

/* Use that many pages of a node from now on. */
static char *use(unsigned int node, unsigned long pages)
{
	unsigned long mask = 1UL << node;
	char *p = map(pages);

	if (syscall(SYS_mbind, p, pages * PAGE, MPOL_BIND, &mask, 8 * sizeof(mask), 0))
		err(1, "mbind");
	touch(p, pages);
	return p;
}

/* Pages of a node that are free for us and in blocks smaller than 2 MiB. */
static unsigned long in_small_blocks(unsigned int node)
{
	FILE *file = fopen("/proc/pagetypeinfo", "r");
	unsigned long pages = 0, blocks;
	unsigned int nid, order;
	char line[512];
	int n, at;

	if (!file)
		err(1, "pagetypeinfo");
	while (fgets(line, sizeof(line), file)) {
		at = 0;
		sscanf(line, "Node %u, zone %*s type Movable %n", &nid, &at);
		if (!at || nid != node)
			continue;
		for (order = 0; order < BLOCK_ORDER; order++, at += n) {
			if (sscanf(line + at, "%lu %n", &blocks, &n) != 1)
				errx(1, "pagetypeinfo: %s", line);
			pages += blocks << order;
		}
	}
	fclose(file);
	return pages;
}

/* Pages of a node that this CPU has on its own lists, which come even before. */
static unsigned long on_own_list(unsigned int node)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	unsigned long pages = 0, count;
	unsigned int nid = -1, cpu = -1;
	char line[512];

	if (!file)
		err(1, "zoneinfo");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %u, zone", &nid) == 1 ||
		    sscanf(line, " cpu: %u", &cpu) == 1)
			continue;
		if (sscanf(line, " count: %lu", &count) == 1 && nid == node &&
		    cpu == sched_getcpu())
			pages += count;
	}
	fclose(file);
	return pages;
}

/*
 * Make whole blocks of the free memory: the allocator takes the smallest first,
 * so use as much as there is of them. Twice, for all of this allocates as well.
 */
static void use_small_blocks(void)
{
	unsigned int node, turn;

	for (turn = 0; turn < 2; turn++)
		for (node = 0; node < NODES; node++)
			use(node, in_small_blocks(node) + on_own_list(node) + 1);
}

/* Of how many pieces of physical memory do these pages consist? */
static unsigned long pieces(char *p, unsigned long pages)
{
	uint64_t entry, last = 0;
	unsigned long i, n = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0)
		err(1, "pagemap");
	for (i = 0; i < pages; i++) {
		if (pread(fd, &entry, sizeof(entry),
			  ((uintptr_t)p / PAGE + i) * sizeof(entry)) != sizeof(entry))
			err(1, "pagemap");
		entry &= (1ULL << 55) - 1;
		n += entry != last + 1;
		last = entry;
	}
	close(fd);
	return n;
}
