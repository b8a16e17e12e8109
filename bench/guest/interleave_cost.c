// SPDX-License-Identifier: GPL-2.0
/*
 * interleave_cost: what it costs to get an interleaved page.
 *
 *	interleave_cost anon		a fault in an interleaved VMA
 *	interleave_cost shmem		a fault in an interleaved shared mapping
 *	interleave_cost read FILE	a read of a page that is not cached, in an
 *					interleaved task; FILE has holes only, so
 *					no disk is waited for
 *
 * Gets pages of order 0 one after the other, in TURNS turns, and prints what
 * WINDOW of them in a row took, in cycles of the time stamp counter (with QEMU's
 * -icount: instructions):
 *
 *	MIN MEDIAN MAX SAME WINDOWS PAGES
 *
 * where SAME of the WINDOWS took just as long as the shortest, and PAGES is
 * WINDOW. Some take longer, because the CPU's list of free pages ran empty, or an
 * interrupt came. The page is cleared, and a read copies it: that is included.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#define PAGE 4096UL
/* As many as a page table of the last level maps: one is all that is needed. */
#define PAGES 512
#define SIZE (PAGES * PAGE)
/* A multiple of 8: at granularities up to that, both of two nodes are asked. */
#define WINDOW 16
#define WINDOWS (PAGES / WINDOW)
#define TURNS 8
#define MPOL_INTERLEAVE 3

static unsigned long long times[TURNS * WINDOWS];

/* SIZE of a mapping of twice that, aligned to SIZE. */
static char *map(int flags, int fd)
{
	unsigned long mask = 3;
	char *p = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	if (madvise(p, 2 * SIZE, MADV_NOHUGEPAGE))
		err(1, "madvise");
	if (syscall(SYS_mbind, p, 2 * SIZE, MPOL_INTERLEAVE, &mask,
		    8 * sizeof(mask), 0))
		err(1, "mbind");
	return (char *)(((unsigned long)p + SIZE - 1) & ~(SIZE - 1));
}

static int compare(const void *a, const void *b)
{
	unsigned long long x = *(const unsigned long long *)a;
	unsigned long long y = *(const unsigned long long *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	unsigned int turn, window, i, same, nr = TURNS * WINDOWS;
	static char buffer[PAGE];
	unsigned long long time;
	char *p = NULL;
	int fd = -1;

	if (argc == 2 && !strcmp(argv[1], "anon")) {
		p = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	} else if (argc == 2 && !strcmp(argv[1], "shmem")) {
		fd = memfd_create("shmem", 0);
		if (fd < 0 || ftruncate(fd, 2 * SIZE))
			err(1, "memfd");
		p = map(MAP_SHARED, fd);
	} else if (argc == 3 && !strcmp(argv[1], "read")) {
		fd = open(argv[2], O_RDONLY);
		if (fd < 0)
			err(1, "%s", argv[2]);
		/* A page at a time: no read-ahead. */
		if (posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
			errx(1, "posix_fadvise");
	} else {
		errx(1, "usage: interleave_cost anon|shmem|read [FILE]");
	}

	/* One turn more than counted: the first one allocates page tables. */
	for (turn = 0; turn <= TURNS; turn++) {
		if (p && fd < 0) {
			if (madvise(p, SIZE, MADV_DONTNEED))
				err(1, "madvise");
		} else if (p) {
			if (madvise(p, SIZE, MADV_REMOVE))
				err(1, "madvise");
		} else if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) {
			errx(1, "posix_fadvise");
		}
		for (window = 0; window < WINDOWS; window++) {
			unsigned long at = window * WINDOW * PAGE;

			time = __rdtsc();
			for (i = 0; i < WINDOW; i++, at += PAGE) {
				if (p)
					*(volatile char *)(p + at) = 1;
				else if (pread(fd, buffer, PAGE, at) != PAGE)
					err(1, "%s", argv[2]);
			}
			time = __rdtsc() - time;
			if (turn)
				times[(turn - 1) * WINDOWS + window] = time;
		}
	}

	qsort(times, nr, sizeof(*times), compare);
	for (same = 0; same < nr && times[same] == times[0]; same++)
		;
	printf("%llu %llu %llu %u %u %u\n", times[0], times[nr / 2],
	       times[nr - 1], same, nr, WINDOW);
	return 0;
}
