// SPDX-License-Identifier: GPL-2.0
/*
 * placement DIR: where a fixed workload's interleaved pages come to lie, one line for
 * each kind of memory, "# place KIND NODExPAGES NODExPAGES …". Two kernels whose lines
 * are the same place it alike, page for page. DIR is a tmpfs of its own, with huge
 * pages. Started by numa-placement.
 *
 * Addresses and inode numbers are the same in every run. What goes by turns (page
 * cache, slabs) is no part of it: partial slabs are looked for at random times, and
 * without a granularity a look is a turn, so that not even one kernel repeats itself.
 * numa-turns has that, against a model, on both kernels.
 */
#define _GNU_SOURCE
#include "nodes.h"

#include <sys/mount.h>
#include <sys/stat.h>

#define HUGE		512
#define HUGE_SIZE	(HUGE * PAGE)
#define PAGES		(4 * HUGE)
/* Not aligned to a huge page: the default adds up two rounded terms. */
#define ADDRESS		((char *)0x100000000000UL + 3 * PAGE)
#define MAX_PAGES	(8 * HUGE)
#define WEIGHTED_INTERLEAVE	6

static void show(const char *kind, char *map, unsigned long nr)
{
	static int status[MAX_PAGES];
	unsigned long i, run = 0;

	nodes_of(map, nr, status);
	printf("# place %s", kind);
	for (i = 0; i < nr; i++) {
		run++;
		if (i + 1 == nr || status[i + 1] != status[i]) {
			printf(" %dx%lu", status[i], run);
			run = 0;
		}
	}
	puts("");
}

static char *map_at(char *at, unsigned long pages, int flags, int fd)
{
	char *map = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
			 flags | MAP_FIXED_NOREPLACE, fd, 0);

	if (map == MAP_FAILED)
		err(1, "mmap");
	return map;
}

static void bind(char *map, unsigned long pages, int mode, unsigned long mask, int flags)
{
	if (syscall(SYS_mbind, map, pages * PAGE, mode, &mask, MAX_NODES + 1, flags))
		err(1, "mbind");
}

static void touch(char *map, unsigned long pages)
{
	unsigned long i;

	for (i = 0; i < pages; i++)
		map[i * PAGE] = 1;
}

static void anonymous(const char *kind, int mode, int advice, bool vma)
{
	char *map = map_at(ADDRESS, PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (madvise(map, PAGES * PAGE, advice))
		err(1, "madvise");
	if (vma)
		bind(map, PAGES, mode, node_mask, 0);
	else
		set_policy(mode);
	touch(map, PAGES);
	set_policy(MPOL_DEFAULT);
	show(kind, map, PAGES);
	/* And the halves of a VMA that was cut */
	if (vma && advice == MADV_NOHUGEPAGE) {
		if (madvise(map, PAGES * PAGE, MADV_DONTNEED) ||
		    mprotect(map + 5 * PAGE, PAGE, PROT_READ) ||
		    mprotect(map + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE) ||
		    munmap(map + 77 * PAGE, PAGE))
			err(1, "cut");
		touch(map, 77);
		touch(map + 78 * PAGE, PAGES - 78);
		show("cut", map, PAGES);
	}
	munmap(map, PAGES * PAGE);
}

static void moved(void)
{
	unsigned long first = 1UL << nodes[0];
	char *map = map_at(ADDRESS, PAGES, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (madvise(map, PAGES * PAGE, MADV_NOHUGEPAGE))
		err(1, "madvise");
	bind(map, PAGES, MPOL_BIND, first, 0);
	touch(map, PAGES);
	bind(map, PAGES, MPOL_INTERLEAVE, nr_nodes > 2 ? node_mask & ~first : node_mask,
	     MPOL_MF_MOVE);
	show("moved", map, PAGES);
	munmap(map, PAGES * PAGE);
}

static void shmem(const char *dir, int number, int advice)
{
	char name[256], kind[64];
	struct stat st;
	char *map;
	int fd;

	snprintf(name, sizeof(name), "%s/%d", dir, number);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, PAGES * PAGE) || fstat(fd, &st))
		err(1, "%s", name);
	/* Aligned, or there are no huge pages */
	map = map_at(ADDRESS - 3 * PAGE, PAGES, MAP_SHARED, fd);
	if (madvise(map, PAGES * PAGE, advice))
		err(1, "madvise");
	bind(map, PAGES, MPOL_INTERLEAVE, node_mask, 0);
	touch(map, PAGES);
	snprintf(kind, sizeof(kind), "shmem-%s-inode-%lu",
		 advice == MADV_HUGEPAGE ? "huge" : "small", (unsigned long)st.st_ino);
	show(kind, map, PAGES);
	munmap(map, PAGES * PAGE);
	close(fd);
}

static void hugetlb(void)
{
	unsigned long pages = 8 * HUGE;
	char *map, path[128];
	FILE *f;
	int i;

	for (i = 0; i < nr_nodes; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages",
			 nodes[i]);
		f = fopen(path, "w");
		if (!f || fprintf(f, "8\n") < 0 || fclose(f))
			err(1, "%s", path);
	}
	map = map_at(ADDRESS - 3 * PAGE, pages, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	bind(map, pages, MPOL_INTERLEAVE, node_mask, 0);
	touch(map, pages);
	show("hugetlb", map, pages);
	munmap(map, pages * PAGE);
}

int main(int argc, char **argv)
{
	int i;

	if (argc != 2)
		errx(1, "usage: placement DIR");
	setvbuf(stdout, NULL, _IOLBF, 0);
	find_nodes();
	set_granularity(1);
	anonymous("vma", MPOL_INTERLEAVE, MADV_NOHUGEPAGE, true);
	anonymous("vma-weighted", WEIGHTED_INTERLEAVE, MADV_NOHUGEPAGE, true);
	anonymous("vma-huge", MPOL_INTERLEAVE, MADV_HUGEPAGE, true);
	anonymous("task", MPOL_INTERLEAVE, MADV_NOHUGEPAGE, false);
	anonymous("task-huge", MPOL_INTERLEAVE, MADV_HUGEPAGE, false);
	moved();
	for (i = 0; i < 3; i++)
		shmem(argv[1], i, MADV_NOHUGEPAGE);
	for (i = 3; i < 6; i++)
		shmem(argv[1], i, MADV_HUGEPAGE);
	hugetlb();
	return 0;
}
