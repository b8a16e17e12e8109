// SPDX-License-Identifier: GPL-2.0
/*
 * fault_lines: the cache lines that CPUs pass to each other when all of them fault
 * in memory, for the plugin cachelines (bench/plugin).
 *
 *	fault_lines one-vma|own-vma|processes ROUNDS
 *
 * In each round each CPU touches the next page of its part of memory, one CPU
 * after the other, so that between two faults of one all others have had one. Each
 * part is what the tables of one page map: CPUs share nothing by accident. They are
 * threads, with all parts in one VMA or each in its own, or processes.
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../plugin/marks.h"

#define FAULT	3
#define WARM	8
#define PART	(2ul << 20)
#define PAGE	4096ul

static unsigned int players, rounds;
static char *memory;

/* In a page that processes share too. */
static struct {
	unsigned int turn;
} *shared;

static void *play(void *arg)
{
	unsigned long me = (unsigned long)arg;
	char *part = memory + 2 * me * PART;
	unsigned int round;
	cpu_set_t *cpus = CPU_ALLOC(1024);

	CPU_ZERO_S(CPU_ALLOC_SIZE(1024), cpus);
	CPU_SET_S(me, CPU_ALLOC_SIZE(1024), cpus);
	if (sched_setaffinity(0, CPU_ALLOC_SIZE(1024), cpus))
		err(1, "CPU %lu", me);

	for (round = 0; round < WARM + rounds; round++) {
		while (__atomic_load_n(&shared->turn, __ATOMIC_ACQUIRE) != round * players + me)
			asm volatile("pause");
		if (me == 0 && round == 0)
			mark(MARK_ON);
		if (me == 0 && round == WARM)
			mark(MARK_COUNT);
		mark(MARK_BEGIN + FAULT);
		*(volatile char *)(part + round * PAGE) = 1;
		mark(MARK_END);
		if (me == players - 1 && round == WARM + rounds - 1)
			mark(MARK_OFF);
		__atomic_store_n(&shared->turn, round * players + me + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	size_t size;
	unsigned long i;

	if (argc != 3 || !strstr("one-vma own-vma processes", argv[1]))
		errx(1, "usage: fault_lines one-vma|own-vma|processes ROUNDS");
	players = sysconf(_SC_NPROCESSORS_ONLN);
	rounds = atoi(argv[2]);
	if (rounds < 1 || (WARM + rounds) * PAGE > PART)
		errx(1, "1 to %lu rounds", PART / PAGE - WARM);

	size = 2 * players * PART;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memory = mmap(NULL, size + PART, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED || memory == MAP_FAILED)
		err(1, "mmap");
	memory += PART - (uintptr_t)memory % PART;
	/* Small pages: a huge one would be one fault. */
	madvise(memory, size, MADV_NOHUGEPAGE);
	/* What lies between the parts. */
	if (!strcmp(argv[1], "own-vma"))
		for (i = 0; i < players; i++)
			if (mprotect(memory + (2 * i + 1) * PART, PART, PROT_NONE))
				err(1, "mprotect");

	if (!strcmp(argv[1], "processes")) {
		for (i = 0; i < players; i++) {
			pid_t pid = fork();

			if (pid < 0)
				err(1, "fork");
			if (!pid) {
				play((void *)i);
				_exit(0);
			}
		}
		for (i = 0; i < players; i++) {
			int status;

			if (wait(&status) < 0 || status)
				errx(1, "a process failed");
		}
	} else {
		pthread_t threads[players];

		for (i = 0; i < players; i++)
			if (pthread_create(&threads[i], NULL, play, (void *)i))
				errx(1, "no thread");
		for (i = 0; i < players; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}
