// SPDX-License-Identifier: GPL-2.0
/*
 * place_pages: where the pages of 64 MiB come to lie, by the caller's policy.
 *
 *	place_pages
 *
 * The pages are of order 0 and are touched in order; what is free when they are
 * is whole blocks of 2 MiB, as after boot. Prints a strip of the first 64 pages,
 * a digit each, which is the node; a strip of the MiB, where - is one of several
 * nodes; the pages in each node; and the pieces of physical memory that they make.
 */
#define _GNU_SOURCE
#include "order0.h"

#define PAGES 16384UL
#define STRIP 64
#define MIB 256

/* The node of @pages from @at on, or - if it is not one. */
static char node_of(const int *at, unsigned int pages)
{
	unsigned int i;

	for (i = 1; i < pages; i++)
		if (at[i] != at[0])
			return '-';
	return '0' + at[0];
}

int main(void)
{
	static void *addresses[PAGES];
	unsigned long i, n, in[NODES] = { };
	static int nodes[PAGES];
	char *p;

	use_small_blocks();
	p = map(PAGES);
	touch(p, PAGES);

	for (i = 0; i < PAGES; i++)
		addresses[i] = p + i * PAGE;
	if (syscall(SYS_move_pages, 0, PAGES, addresses, NULL, nodes, 0))
		err(1, "move_pages");
	for (i = 0; i < PAGES; i++) {
		if (nodes[i] < 0 || nodes[i] >= NODES)
			errx(1, "page %lu: %d", i, nodes[i]);
		in[nodes[i]]++;
	}

	printf("first pages: ");
	for (i = 0; i < STRIP; i++)
		putchar(node_of(nodes + i, 1));
	printf("\neach MiB:    ");
	for (i = 0; i < PAGES; i += MIB)
		putchar(node_of(nodes + i, MIB));
	n = pieces(p, PAGES);
	printf("\nnode 0 has %lu pages, node 1 %lu, in %lu pieces of %.1f pages on average\n",
	       in[0], in[1], n, (double)PAGES / n);
	return 0;
}
