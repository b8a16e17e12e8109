// SPDX-License-Identifier: GPL-2.0
/*
 * folios FILE: how MPOL_INTERLEAVE deals out the page cache of a file whose folios are
 * of one page and of 512, for each vm.numa_interleave_granularity. Started by the test
 * numa-folios, with a file system that has large folios.
 *
 * What the kernel allocates for the task in between (buffer heads, nodes of trees)
 * takes its part of the chunks, and is not seen here: hence the twentieth.
 */
#define _GNU_SOURCE
#include "nodes.h"

#define CYCLES		12
#define MAX_PIECES	(CYCLES * 16)
#define HUGE		512

/* In the order of their allocation */
static struct piece {
	long at, pages, folio;	/* in pages; the size of the folio at its start */
	int node;
} pieces[MAX_PIECES];
static int nr_pieces, number, failed;

static void result(int good, long granularity, const char *what)
{
	printf("%sok %d granularity %ld: %s\n", good ? "" : "not ", ++number, granularity, what);
	failed += !good;
}

/*
 * Seven pages, a huge one and eight pages, over and over: with chunks of 8, a kernel
 * that forgets what is taken beyond a chunk gives all the huge ones to the same of two
 * nodes. Pages that belong together are 512 apart, or they would be one large folio.
 */
static void lay_out(void)
{
	long at = 0;
	int i;

	nr_pieces = 0;
	for (i = 0; i < MAX_PIECES; i++) {
		struct piece *p = &pieces[nr_pieces++];

		p->at = at;
		p->pages = i % 16 == 7 ? HUGE : 1;
		at += HUGE;
	}
}

static long flag_of(int file, uint64_t pfn)
{
	uint64_t flags;

	if (pread(file, &flags, sizeof(flags), pfn * sizeof(flags)) != sizeof(flags))
		err(1, "kpageflags");
	return flags;
}

/* Pages of the folio that begins with this one */
static long folio_size(char *page)
{
	int map = open("/proc/self/pagemap", O_RDONLY), flags = open("/proc/kpageflags", O_RDONLY);
	uint64_t entry;
	long size = 1;

	if (map < 0 || flags < 0 ||
	    pread(map, &entry, sizeof(entry), (uintptr_t)page / PAGE * sizeof(entry)) !=
		    sizeof(entry))
		err(1, "pagemap");
	entry &= (1ULL << 55) - 1;
	if (flag_of(flags, entry) & 1 << 15)		/* head */
		while (flag_of(flags, entry + size) & 1 << 16)	/* tail */
			size++;
	close(map);
	close(flags);
	return size;
}

static void find_pieces(int fd)
{
	static int status[HUGE];
	int i;

	for (i = 0; i < nr_pieces; i++) {
		struct piece *p = &pieces[i];
		long j;
		char *map = mmap(NULL, p->pages * PAGE, PROT_READ, MAP_SHARED, fd, p->at * PAGE);

		if (map == MAP_FAILED)
			err(1, "mmap");
		for (j = 0; j < p->pages; j++)
			*(volatile char *)(map + j * PAGE);
		nodes_of(map, p->pages, status);
		p->folio = folio_size(map);
		p->node = status[0];
		munmap(map, p->pages * PAGE);
	}
}

static void judge(long granularity, const char *what)
{
	long pages[MAX_NODES] = {}, total = 0, spread = 0, large = 0, turns = 1;
	char text[64];
	int i, j;

	for (i = 0; i < nr_pieces; i++) {
		long least, most;

		large += pieces[i].folio == HUGE;
		pages[pieces[i].node] += pieces[i].pages;
		total += pieces[i].pages;
		turns += i && pieces[i].node != pieces[i - 1].node;
		least = most = pages[nodes[0]];
		for (j = 1; j < nr_nodes; j++) {
			long n = pages[nodes[j]];

			least = n < least ? n : least;
			most = n > most ? n : most;
		}
		spread = most - least > spread ? most - least : spread;
	}
	printf("# %ld pages, %ld folios of %d; nodes differ by %ld at most, %ld turns\n",
	       total, large, HUGE, spread, turns);
	snprintf(text, sizeof(text), "%s: large folios", what);
	result(large == CYCLES, granularity, text);
	if (granularity == 1)
		return;
	snprintf(text, sizeof(text), "%s: balanced to a chunk and the largest", what);
	result(spread <= granularity + HUGE + total / 20, granularity, text);
	snprintf(text, sizeof(text), "%s: chunks", what);
	result(turns <= total * 21 / 20 / granularity + nr_nodes, granularity, text);
}

static void test(const char *name, long granularity)
{
	static char buffer[HUGE * PAGE];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600), i;

	if (fd < 0)
		err(1, "%s", name);
	set_granularity(granularity);
	lay_out();
	set_policy(MPOL_INTERLEAVE);
	for (i = 0; i < nr_pieces; i++)
		if (pwrite(fd, buffer, pieces[i].pages * PAGE, pieces[i].at * PAGE) < 0)
			err(1, "write");
	set_policy(MPOL_DEFAULT);
	find_pieces(fd);
	judge(granularity, "written");
	close(fd);
	unlink(name);
}

int main(int argc, char **argv)
{
	static const long granularities[] = { 1, 2, 8, 512, 4096, 262144 };
	unsigned int i;

	if (argc != 2)
		errx(1, "usage: folios FILE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("TAP version 13");
	find_nodes();
	for (i = 0; i < sizeof(granularities) / sizeof(*granularities); i++)
		if (granularities[i] == 1 || !access(SYSCTL, F_OK))
			test(argv[1], granularities[i]);
	set_granularity(1);
	printf("1..%d\n", number);
	return !!failed;
}
