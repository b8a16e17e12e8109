/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Nodes, policies over all of them, and where pages lie, for the programs that look
 * at that. Each program is one file, hence all is static.
 */
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#define SYSCTL		"/proc/sys/vm/numa_interleave_granularity"
#define PAGE		4096UL
#define MAX_NODES	((int)(8 * sizeof(long)))	/* those of a one-word mask */

static int nodes[MAX_NODES], nr_nodes;
static unsigned long node_mask;

/* Those with memory */
static void find_nodes(void)
{
	char list[256] = "", *at = list;
	FILE *f = fopen("/sys/devices/system/node/has_memory", "r");

	if (!f || !fgets(list, sizeof(list), f))
		err(1, "nodes with memory");
	fclose(f);
	while (*at >= '0' && *at <= '9') {
		int first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		for (; first <= last && first < MAX_NODES; first++) {
			nodes[nr_nodes++] = first;
			node_mask |= 1UL << first;
		}
		at += *at == ',';
	}
}

static void set_policy(int mode)
{
	unsigned long *mask = mode == MPOL_DEFAULT ? NULL : &node_mask;

	if (syscall(SYS_set_mempolicy, mode, mask, mask ? MAX_NODES + 1 : 0))
		err(1, "set_mempolicy");
}

static void set_granularity(long pages)
{
	FILE *f = fopen(SYSCTL, "w");

	if (!f && pages == 1)
		return;
	if (!f || fprintf(f, "%ld\n", pages) < 0 || fclose(f))
		err(1, SYSCTL);
}

/* The nodes of pages that are mapped; negative for those that are not there */
static void nodes_of(char *map, unsigned long nr, int *status)
{
	void **pages = calloc(nr, sizeof(*pages));
	unsigned long i;

	if (!pages)
		err(1, "memory");
	for (i = 0; i < nr; i++)
		pages[i] = map + i * PAGE;
	if (syscall(SYS_move_pages, 0, nr, pages, NULL, status, 0))
		err(1, "move_pages");
	free(pages);
}
