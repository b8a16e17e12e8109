// SPDX-License-Identifier: GPL-2.0
/*
 * read_requests: how many requests a disk is sent for the reading of a file.
 *
 *	read_requests cached KIB MEMORY FILE
 *	read_requests direct KIB MEMORY FILE
 *
 * Reads SIZE from FILE, in order, KIB at a time: through the page cache, which
 * it drops before, or with O_DIRECT into a buffer of pages of order 0. Prints
 * what the statistics of the disk, DISK, have counted meanwhile, and of how many
 * pieces of physical memory the buffer consists (0 if cached):
 *
 *	REQUESTS SECTORS PIECES
 *
 * The memory policy is the caller's. MEMORY says what the free memory of the nodes
 * 0 and 1 is like, whatever has happened in them before:
 *
 *	blocks		whole blocks of 2 MiB, as after boot
 *	recycled	more than SIZE of these has been used, and freed page by page
 *			in random order
 *	scattered	the same, but every other page is still in use
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <string.h>

#include "order0.h"

#define DISK "/sys/block/vda/stat"
#define SIZE (64UL << 20)
#define PAGES (SIZE / PAGE)

static void recycle(bool every_other)
{
	/* Without interleaving, one node gives all pages. */
	unsigned long pages = (every_other ? 2 : 1) * PAGES + PAGES / 8;
	unsigned long node, i, j, nr = 0;
	char **order = malloc(NODES * pages * sizeof(*order));
	char *page;

	if (!order)
		err(1, "malloc");
	for (node = 0; node < NODES; node++) {
		page = use(node, pages);
		for (i = 0; i < pages; i += every_other ? 2 : 1)
			order[nr++] = page + i * PAGE;
	}
	srand(1);
	for (i = nr; i; i--) {
		j = rand() % i;
		page = order[j];
		order[j] = order[i - 1];
		if (madvise(page, PAGE, MADV_DONTNEED))
			err(1, "madvise");
	}
}

static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	if (fd < 0 || write(fd, "3", 1) != 1)
		err(1, "drop_caches");
	close(fd);
}

static void disk_stat(unsigned long *requests, unsigned long *sectors)
{
	FILE *file = fopen(DISK, "r");

	if (!file || fscanf(file, "%lu %*u %lu", requests, sectors) != 2)
		err(1, DISK);
	fclose(file);
}

int main(int argc, char **argv)
{
	unsigned long requests[2], sectors[2], done, step, nr_pieces = 0;
	bool direct;
	char *buffer;
	int fd;

	if (argc != 5)
		errx(1, "usage: read_requests cached|direct KIB MEMORY FILE");
	direct = !strcmp(argv[1], "direct");
	step = strtoul(argv[2], NULL, 10) << 10;
	if (!step || SIZE % step)
		errx(1, "%s KiB do not divide %lu bytes", argv[2], SIZE);

	/* All of this stays in use until the program ends. */
	drop_caches();
	use_small_blocks();
	if (strcmp(argv[3], "blocks"))
		recycle(!strcmp(argv[3], "scattered"));

	buffer = map((direct ? SIZE : step) / PAGE);
	touch(buffer, (direct ? SIZE : step) / PAGE);
	if (direct)
		nr_pieces = pieces(buffer, PAGES);
	fd = open(argv[4], O_RDONLY | (direct ? O_DIRECT : 0));
	if (fd < 0)
		err(1, "%s", argv[4]);

	disk_stat(&requests[0], &sectors[0]);
	for (done = 0; done < SIZE; done += step)
		if (read(fd, buffer + (direct ? done : 0), step) != step)
			err(1, "%s", argv[4]);
	disk_stat(&requests[1], &sectors[1]);
	printf("%lu %lu %lu\n", requests[1] - requests[0],
	       sectors[1] - sectors[0], nr_pieces);
	return 0;
}
