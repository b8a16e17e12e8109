/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* What the mpol_turns module and the test that drives it say to each other. */
#ifndef MPOL_TURNS_H
#define MPOL_TURNS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define MPOL_TURNS_STEPS	4096

enum mpol_turns_op {
	MPOL_TURNS_PAGES,	/* 2^arg pages at once */
	MPOL_TURNS_FAIL,	/* an allocation that nobody can serve */
	MPOL_TURNS_BULK,	/* arg pages, at most MPOL_TURNS_STEPS, in bulk */
	MPOL_TURNS_VMALLOC,	/* arg pages, as vmalloc() gets them */
	MPOL_TURNS_CACHE,	/* a page, as the page cache gets it */
	MPOL_TURNS_KMALLOC,	/* kmalloc() of 2^arg pages: more than slabs serve */
	MPOL_TURNS_SLAB,	/* an object that fills a slab, of a cache of its own; held */
	MPOL_TURNS_HOG,		/* take all memory of node arg, and hold it */
	MPOL_TURNS_RELEASE,	/* give back what is held */
};

struct mpol_turns_step {
	__u16 op;
	__s16 nid;		/* out: the first page's node, or -1 */
	__u32 arg;
};

/*
 * Allocate in the context and by the memory policy of the caller, and free again
 * at once, if not said otherwise. Nothing else is allocated in between. A call with
 * a step of BULK or VMALLOC is for that step alone; nids are those of its pages.
 */
struct mpol_turns_call {
	__u32 nr;
	__u32 got;		/* out: pages of BULK, VMALLOC and HOG, and of a slab */
	struct mpol_turns_step steps[MPOL_TURNS_STEPS];
	__s16 nids[MPOL_TURNS_STEPS];
};

#define MPOL_TURNS_CALL		_IOWR('M', 0, unsigned long)

#endif
