// SPDX-License-Identifier: GPL-2.0
/*
 * ping_pong: two threads that pass lines to each other in known ways, to test the
 * plugin cachelines (tests/bats/cachelines.bats). They take turns, whatever runs
 * them how, so each of ROUNDS rounds makes the same transfers:
 *
 *	kind				fetch	own	upgrade, of both together
 *	1 add to what the other added to	2	0	2
 *	2 the same, locked			0	2	0
 *	3 exchange, which is always locked	0	2	0
 *	4 store beside what the other stores	0	2	0
 *	5 store that lies across two lines	0	4	0
 *	6 add to a line of its own		0	0	0
 *	7 one stores, the other loads		1	0	1
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

#include "../../bench/plugin/marks.h"

#define ROUNDS	100
/* Before that all pages are there, and each line is where it goes on. */
#define WARM	10

struct line {
	uint64_t words[8];
} __attribute__((aligned(64)));

/* A model with lines twice as long would take own[0] and own[1] for one. */
static struct {
	struct line own[2], turn, added, locked, exchanged, beside, across[2], told;
} shared __attribute__((aligned(128)));

static void play(unsigned long me, unsigned int round)
{
	uint64_t value = round;

	mark(MARK_BEGIN + 1);
	asm volatile("incq %0" : "+m" (shared.added.words[0]));
	mark(MARK_END);

	mark(MARK_BEGIN + 2);
	asm volatile("lock incq %0" : "+m" (shared.locked.words[0]));
	mark(MARK_END);

	mark(MARK_BEGIN + 3);
	asm volatile("xchgq %0, %1" : "+m" (shared.exchanged.words[0]), "+r" (value));
	mark(MARK_END);

	mark(MARK_BEGIN + 4);
	asm volatile("movq %1, %0" : "=m" (shared.beside.words[me]) : "r" (value));
	mark(MARK_END);

	mark(MARK_BEGIN + 5);
	asm volatile("movq %1, 60(%0)" : : "r" (shared.across), "r" (value) : "memory");
	mark(MARK_END);

	mark(MARK_BEGIN + 6);
	asm volatile("incq %0" : "+m" (shared.own[me].words[0]));
	mark(MARK_END);

	mark(MARK_BEGIN + 7);
	if (me)
		asm volatile("movq %1, %0" : "=r" (value) : "m" (shared.told.words[0]));
	else
		asm volatile("movq %1, %0" : "=m" (shared.told.words[0]) : "r" (value));
	mark(MARK_END);
}

static void *thread(void *arg)
{
	unsigned long me = (unsigned long)arg;
	unsigned int round;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(me, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		err(1, "CPU %lu", me);

	for (round = 0; round < WARM + ROUNDS; round++) {
		while (__atomic_load_n(&shared.turn.words[0], __ATOMIC_ACQUIRE) != me)
			asm volatile("pause");
		if (me == 0 && round == 0)
			mark(MARK_ON);
		if (me == 0 && round == WARM)
			mark(MARK_COUNT);
		play(me, round);
		/* The other has no more to do. */
		if (me == 1 && round == WARM + ROUNDS - 1)
			mark(MARK_OFF);
		__atomic_store_n(&shared.turn.words[0], !me, __ATOMIC_RELEASE);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	unsigned long i;

	for (i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)i))
			errx(1, "no thread");
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%d rounds\n", ROUNDS);
	return 0;
}
