// SPDX-License-Identifier: GPL-2.0
/*
 * read_cost: what it costs to read files of the kernel from start to end.
 *
 *	read_cost FILE...
 *
 * The files stay open and are read one after the other, time and again, as a
 * monitoring program does. Prints the time of one pass over all of them in
 * cycles of the time stamp counter (with QEMU's -icount: instructions), less
 * that of as many reads of /dev/null, which is the cost of asking:
 *
 *	MIN MEDIAN MAX SAME ROUNDS
 *
 * Now and then a timer interrupt falls into a pass; the shortest has none, or
 * the fewest when a pass takes longer than a tick.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <x86intrin.h>

#define MAX_ROUNDS 101
#define MIN_ROUNDS 11
/* All rounds together, about: huge files are read less often. */
#define CYCLES 50000000
/* Files a pass reads at most. */
#define FILES 64

static char buffer[1 << 20];

/* Read all of @fd, as the end of a file tells; return the number of reads. */
static unsigned int read_all(int fd)
{
	unsigned int reads = 0;
	off_t at = 0;
	ssize_t got;

	do {
		got = pread(fd, buffer, sizeof(buffer), at);
		at += got;
		reads++;
	} while (got > 0);
	if (got < 0)
		err(1, "read");
	return reads;
}

static int compare(const void *a, const void *b)
{
	unsigned long long x = *(const unsigned long long *)a;
	unsigned long long y = *(const unsigned long long *)b;

	return x < y ? -1 : x > y;
}

static unsigned long long nothing(int null, unsigned int reads)
{
	unsigned long long time, best = -1;
	unsigned int i, round;

	for (round = 0; round < MAX_ROUNDS; round++) {
		time = __rdtsc();
		for (i = 0; i < reads; i++)
			if (pread(null, buffer, sizeof(buffer), 0))
				err(1, "/dev/null");
		time = __rdtsc() - time;
		if (time < best)
			best = time;
	}
	return best;
}

int main(int argc, char **argv)
{
	unsigned long long empty, times[MAX_ROUNDS];
	unsigned int i, reads, round, rounds = MIN_ROUNDS, same;
	int fds[FILES], files = argc - 1;
	int null = open("/dev/null", O_RDONLY);

	if (files < 1 || files > FILES)
		errx(1, "usage: read_cost FILE...");
	if (null < 0)
		err(1, "/dev/null");
	for (i = 0; i < files; i++) {
		fds[i] = open(argv[i + 1], O_RDONLY);
		if (fds[i] < 0)
			err(1, "%s", argv[i + 1]);
	}

	/* One pass more than counted: the first one allocates the buffers. */
	for (round = 0; round <= rounds; round++) {
		unsigned long long time = __rdtsc();

		reads = 0;
		for (i = 0; i < files; i++)
			reads += read_all(fds[i]);
		time = __rdtsc() - time;
		if (round)
			times[round - 1] = time;
		else if (CYCLES / time > MIN_ROUNDS)
			rounds = CYCLES / time > MAX_ROUNDS ? MAX_ROUNDS : CYCLES / time;
	}
	empty = nothing(null, reads);

	qsort(times, rounds, sizeof(*times), compare);
	for (same = 0; same < rounds && times[same] == times[0]; same++)
		;
	printf("%llu %llu %llu %u %u\n", times[0] - empty,
	       times[rounds / 2] - empty, times[rounds - 1] - empty, same, rounds);
	return 0;
}
