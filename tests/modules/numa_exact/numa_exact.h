/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* What the numa_exact module and the test that drives it say to each other. */
#ifndef NUMA_EXACT_H
#define NUMA_EXACT_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define NUMA_EXACT_NODES	64
#define NUMA_EXACT_BATCH	256

enum numa_exact_op {
	NUMA_EXACT_NODE,	/* from node nid alone */
	NUMA_EXACT_TASK,	/* by the caller's memory policy */
	NUMA_EXACT_CPUSET,	/* prefer node nid, take what the caller's cpuset allows */
	NUMA_EXACT_BULK_NODE,	/* the same two, batch pages to a call */
	NUMA_EXACT_BULK_TASK,
};

/*
 * Allocate count times and free again. At most batch allocations are held at
 * any time, and a bulk call asks for batch pages. The caller must be bound to
 * one CPU, and be the only one there.
 */
struct numa_exact_call {
	__u32 op;
	__u32 nid;
	__u32 order;
	__u32 batch;
	__u64 count;
	/* Out: these allocations (in bulk: pages), by the node that gave them. */
	__u64 got[NUMA_EXACT_NODES];
	/* Out: what the kernel allocated for itself on the way, such as slabs. */
	__u64 extra[NUMA_EXACT_NODES];
};

/* All allocations of the machine since the module was loaded. */
struct numa_exact_oracle {
	__u64 seen[NUMA_EXACT_NODES];
	/* Of these, in the context of a task whose own policy is to interleave. */
	__u64 interleaver[NUMA_EXACT_NODES];
	__u64 lost;		/* calls that could not be seen through */
};

#define NUMA_EXACT_CALL		_IOWR('N', 0, struct numa_exact_call)
#define NUMA_EXACT_ORACLE	_IOR('N', 1, struct numa_exact_oracle)
/* Return when each allocation under way, of any task, is counted and seen. */
#define NUMA_EXACT_SETTLE	_IO('N', 2)

#endif
