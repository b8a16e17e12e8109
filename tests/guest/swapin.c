// SPDX-License-Identifier: GPL-2.0
/*
 * swapin: interleaved memory that went to swap comes back to the nodes it belongs
 * to, also what read-ahead brings. Started by the test numa-swapin.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#define SYSCTL		"/proc/sys/vm/numa_interleave_granularity"
/* Of the cgroup that numa-swapin has put us in */
#define RECLAIM		"/tmp/cgroup/swapin/memory.reclaim"
#define MAX_NODES	((int)(8 * sizeof(long)))
#define PAGES		2048

static int nodes[MAX_NODES], nr_nodes, number, failed;
static unsigned long mask;

static void give_up(const char *what)
{
	printf("Bail out! %s (%s)\n", what, strerror(errno));
	exit(1);
}

static void find_nodes(void)
{
	char list[256] = "", *at = list;
	FILE *f = fopen("/sys/devices/system/node/has_memory", "r");

	if (!f || !fgets(list, sizeof(list), f))
		give_up("nodes with memory");
	fclose(f);
	while (*at >= '0' && *at <= '9') {
		int first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		for (; first <= last && first < MAX_NODES; first++) {
			nodes[nr_nodes++] = first;
			mask |= 1UL << first;
		}
		at += *at == ',';
	}
}

static long page_size;

/* Pages of the mapping by node (negative: not there) */
static void where(char *map, int *status)
{
	static void *pages[PAGES];
	int i;

	for (i = 0; i < PAGES; i++)
		pages[i] = map + i * page_size;
	if (syscall(__NR_move_pages, 0, (long)PAGES, pages, NULL, status, 0))
		give_up("move_pages");
}

/* A line of /proc/vmstat */
static long vmstat(const char *key)
{
	char line[128], name[64];
	long pages = 0, value;
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %ld", name, &value) == 2 && !strcmp(name, key))
			pages = value;
	if (f)
		fclose(f);
	return pages;
}

/* Pages that were written out are still there until somebody wants the memory. */
static void empty_swap_cache(void)
{
	int fd;

	usleep(300000);
	fd = open(RECLAIM, O_WRONLY);
	if (fd < 0)
		give_up(RECLAIM);
	/* EAGAIN: there was less than that, which is as well */
	if (write(fd, "32M", 3) < 0 && errno != EAGAIN)
		give_up(RECLAIM);
	close(fd);
}

static void test(int order, int step)
{
	static int status[PAGES];
	int i, out = 0, in = 0, wrong = 0;
	long ahead, read;
	FILE *f = fopen(SYSCTL, "w");
	char *map;

	if (f && (fprintf(f, "%d\n", 1 << order) < 0 || fclose(f)))
		give_up(SYSCTL);
	/* Over the boundary of two chunks, whatever their size */
	map = mmap((char *)(1UL << 40) - PAGES / 2 * page_size, PAGES * page_size,
		   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED || madvise(map, PAGES * page_size, MADV_NOHUGEPAGE) ||
	    syscall(__NR_mbind, map, PAGES * page_size, MPOL_INTERLEAVE, &mask,
		    MAX_NODES + 1, 0))
		give_up("mapping");
	for (i = 0; i < PAGES; i++)
		map[i * page_size] = i;
	if (madvise(map, PAGES * page_size, MADV_PAGEOUT))
		give_up("MADV_PAGEOUT");
	empty_swap_cache();
	where(map, status);
	for (i = 0; i < PAGES; i++)
		out += status[i] < 0;

	/* Each step'th page faults; of those between, read-ahead brings what it can. */
	ahead = vmstat("swap_ra");
	read = vmstat("pswpin");
	for (i = 0; i < PAGES; i += step)
		wrong += map[i * page_size] != (char)i;
	for (i = 0; i < PAGES; i++)
		wrong += map[i * page_size] != (char)i;
	ahead = vmstat("swap_ra") - ahead;
	read = vmstat("pswpin") - read;
	where(map, status);
	for (i = 0; i < PAGES; i++) {
		unsigned long pgoff = (uintptr_t)(map + i * page_size) / page_size;
		int want = nodes[(pgoff >> order) % nr_nodes];

		in += status[i] >= 0;
		if (status[i] != want && wrong++ < 3)
			printf("# page %d: node %d, should be %d\n", i, status[i], want);
	}
	printf("# %d of %d pages went out, %ld were read, %ld of them ahead\n",
	       out, PAGES, read, ahead);
	wrong |= in != PAGES || out <= PAGES / 2 || read <= PAGES / 2 ||
		 ahead <= PAGES / 4;
	printf("%sok %d granularity %d, each page of %d faults\n",
	       wrong ? "not " : "", ++number, 1 << order, step);
	failed += !!wrong;
	munmap(map, PAGES * page_size);
}

int main(void)
{
	int has = !access(SYSCTL, F_OK);

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("TAP version 13");
	page_size = sysconf(_SC_PAGESIZE);
	find_nodes();
	test(0, 1);
	test(0, 8);
	if (has) {
		test(1, 8);
		test(3, 8);
		test(3, 5);
		test(9, 8);
		test(12, 8);
		test(18, 8);
		test(0, 8);
	}
	printf("1..%d\n", number);
	return !!failed;
}
