/* SPDX-License-Identifier: GPL-2.0 */
/*
 * lines.h: a model of the cache lines that CPUs pass to each other.
 *
 * Of each line of 64 bytes it keeps who wrote it last and who has a copy. Caches
 * have no end, so a line leaves one only because another CPU writes it: what is
 * counted is communication, and nothing else.
 *
 *	load	with a copy			nothing
 *		without, another wrote it last	LINE_FETCH: its data must come
 *		without, nobody wrote it	nothing: it comes from memory
 *	store	with the only copy		nothing
 *		with a copy, others have one	LINE_UPGRADE: theirs must go
 *		without, others have one	LINE_OWN: both
 *		without, nor has anybody	nothing
 *
 * After a load the CPU has a copy; after a store, the only one.
 *
 * Where all begins nobody has a copy. So a line counts from its second user on,
 * and whoever wants to count what goes on for ever lets some rounds go by first.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BITS	6
#define LINES_MAX_CPUS	256

enum line_event { LINE_FETCH, LINE_OWN, LINE_UPGRADE, LINE_EVENTS, LINE_NOTHING = -1 };

struct line {
	/* Number of the line plus one, so that 0 is an empty slot. */
	uint64_t key;
	uint64_t copies[LINES_MAX_CPUS / 64];
	bool written;
};

/* All lines that were ever used: open addressing, at most half full. */
struct lines {
	struct line *slots;
	size_t size, used;
};

static inline struct line *lines_slot(struct lines *lines, uint64_t key)
{
	size_t i = (key * 0x9e3779b97f4a7c15ull) >> 20;

	for (;; i++) {
		struct line *line = &lines->slots[i & (lines->size - 1)];

		if (line->key == key || !line->key)
			return line;
	}
}

static inline void lines_grow(struct lines *lines)
{
	struct lines old = *lines;
	size_t i;

	lines->size = old.size ? old.size * 2 : 1 << 16;
	lines->slots = calloc(lines->size, sizeof(*lines->slots));
	if (!lines->slots)
		abort();
	for (i = 0; i < old.size; i++)
		if (old.slots[i].key)
			*lines_slot(lines, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

static inline void lines_forget(struct lines *lines)
{
	if (lines->slots)
		memset(lines->slots, 0, lines->size * sizeof(*lines->slots));
	lines->used = 0;
}

/* @cpu loads from or stores to the line of physical address @paddr. */
static inline enum line_event lines_access(struct lines *lines, uint64_t paddr,
					   unsigned int cpu, bool store)
{
	uint64_t key = (paddr >> LINE_BITS) + 1, bit = 1ull << (cpu % 64);
	enum line_event event = LINE_NOTHING;
	bool mine, others = false;
	struct line *line;
	unsigned int i;

	if (lines->used >= lines->size / 2)
		lines_grow(lines);
	line = lines_slot(lines, key);
	if (!line->key) {
		line->key = key;
		lines->used++;
	}
	mine = line->copies[cpu / 64] & bit;

	if (!store) {
		/* Written, and no copy here: so another CPU has written it. */
		if (!mine && line->written)
			event = LINE_FETCH;
		line->copies[cpu / 64] |= bit;
		return event;
	}

	for (i = 0; i < LINES_MAX_CPUS / 64; i++)
		others |= line->copies[i] & ~(i == cpu / 64 ? bit : 0);
	if (others)
		event = mine ? LINE_UPGRADE : LINE_OWN;
	memset(line->copies, 0, sizeof(line->copies));
	line->copies[cpu / 64] = bit;
	line->written = true;
	return event;
}

#endif
