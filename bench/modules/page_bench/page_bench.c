// SPDX-License-Identifier: GPL-2.0
/*
 * page_bench: what one allocation and its freeing cost one CPU.
 *
 * In the manner of Jesper Dangaard Brouer's page_bench01: the same pair of
 * calls over and over, so that the page always comes from the CPU's own list
 * and goes back there. What is left is the cost that no allocation escapes.
 *
 * Write "single ORDER NODE" or "bulk PAGES NODE" to the file page_bench in
 * debugfs, then read it: what PAIRS pairs cost, less an empty loop, in cycles
 * of the time stamp counter, which QEMU's -icount advances by one an
 * instruction:
 *
 *	MIN MEDIAN MAX SAME ROUNDS PAIRS
 *
 * where SAME of the ROUNDS took just as long as the shortest. NODE -1 leaves
 * the node to the memory policy of the process that writes; any other node is
 * the only one asked. The process must be bound to one CPU.
 */
#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timex.h>
#include <linux/uaccess.h>

#define ROUNDS		21
/*
 * A round is timed with interrupts off, so it must end long before a watchdog
 * barks: about a million instructions. A multiple of 8, so that interleaving
 * over 2, 4 or 8 nodes asks each of them equally often.
 */
#define PAIRS		840
#define MAX_PAGES	128
/* The highest order measured. */
#define MAX_ORDER	3

/* Must not sleep, and be quick in the way that most allocations are. */
#define BENCH_GFP	(GFP_NOWAIT | __GFP_COMP | __GFP_NOWARN)

struct bench {
	bool (*pair)(struct bench *bench);
	unsigned int order;
	unsigned int nr_pages;
	int nid;
	struct page *pages[MAX_PAGES];
};

/* Guards result, and keeps two runs from disturbing each other. */
static DEFINE_MUTEX(bench_lock);
static char result[80];

/* What vmalloc() calls; nobody else needs it, so it is not exported. */
static unsigned long (*bulk_mempolicy)(gfp_t gfp, unsigned long nr_pages,
				       struct page **pages);

/*
 * An allocation of more than one page looks for the lowest order, and in it for
 * the first type, that has a free block: its cost depends on what happened
 * before. So each node is given such blocks of each order that is measured: of
 * those allocated here, every other one is freed, and cannot merge because its
 * neighbours are kept until the module goes. They get past the CPU's own list
 * only if that is short: vm.percpu_pagelist_high_fraction.
 */
static LIST_HEAD(kept);

static void pin_free_blocks(int nid, unsigned int order)
{
	gfp_t gfp = GFP_KERNEL | __GFP_COMP | __GFP_NOWARN | __GFP_THISNODE;
	struct page *page, *next;
	LIST_HEAD(blocks);
	int i;

	for (i = 0; i < 2048; i++) {
		page = alloc_pages_node(nid, gfp, order);
		if (page)
			list_add(&page->lru, i & 1 ? &kept : &blocks);
	}
	list_for_each_entry_safe(page, next, &blocks, lru)
		__free_pages(page, order);
}

static bool free_blocks_pinned(unsigned int order)
{
	struct page *page;

	list_for_each_entry(page, &kept, lru)
		if (compound_order(page) == order &&
		    list_empty(&page_zone(page)->free_area[order]
					.free_list[MIGRATE_UNMOVABLE]))
			return false;
	return true;
}

static bool empty_pair(struct bench *bench)
{
	return true;
}

static bool policy_pair(struct bench *bench)
{
	struct page *page = alloc_pages(BENCH_GFP, bench->order);

	if (!page)
		return false;
	__free_pages(page, bench->order);
	return true;
}

static bool node_pair(struct bench *bench)
{
	struct page *page = alloc_pages_node(bench->nid,
					     BENCH_GFP | __GFP_THISNODE,
					     bench->order);

	if (!page)
		return false;
	__free_pages(page, bench->order);
	return true;
}

static bool free_bulk(struct bench *bench, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		__free_page(bench->pages[i]);
		/* The bulk allocator fills what is empty. */
		bench->pages[i] = NULL;
	}
	/* It may also give less than was asked for: another cost. */
	return nr == bench->nr_pages;
}

static bool bulk_policy_pair(struct bench *bench)
{
	return free_bulk(bench, bulk_mempolicy(BENCH_GFP & ~__GFP_COMP,
					       bench->nr_pages, bench->pages));
}

static bool bulk_node_pair(struct bench *bench)
{
	gfp_t gfp = (BENCH_GFP & ~__GFP_COMP) | __GFP_THISNODE;

	return free_bulk(bench, alloc_pages_bulk_node(gfp, bench->nid,
						      bench->nr_pages,
						      bench->pages));
}

/* One round: how long @nr pairs take, or 0 when one failed. */
static u64 time_pairs(struct bench *bench, unsigned int nr)
{
	unsigned long flags;
	unsigned int i;
	bool ok = true;
	cycles_t time;

	/*
	 * Preemption off too: otherwise each preempt_enable() in the allocator
	 * would ask whether to switch when a tick has been waiting.
	 */
	preempt_disable();
	local_irq_save(flags);

	/* An interrupt may have emptied the CPU's list since the last round. */
	for (i = 0; i < 8; i++)
		ok &= bench->pair(bench);

	time = get_cycles();
	for (i = 0; i < nr; i++)
		ok &= bench->pair(bench);
	time = get_cycles() - time;

	local_irq_restore(flags);
	preempt_enable();

	return ok ? time : 0;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static int time_rounds(struct bench *bench, unsigned int nr, u64 *times)
{
	unsigned int i;

	/* The first is not counted: it brings the lists to their usual size. */
	for (i = 0; i <= ROUNDS; i++) {
		u64 time = time_pairs(bench, nr);

		if (!time)
			return -ENOMEM;
		if (i)
			times[i - 1] = time;
		cond_resched();
	}
	sort(times, ROUNDS, sizeof(*times), compare, NULL);
	return 0;
}

static int measure(struct bench *bench)
{
	bool (*pair)(struct bench *bench) = bench->pair;
	unsigned int same, nr = round_up(PAIRS / bench->nr_pages, 8);
	u64 empty, times[ROUNDS];
	int ret;

	bench->pair = empty_pair;
	ret = time_rounds(bench, nr, times);
	if (ret)
		return ret;
	empty = times[0];

	bench->pair = pair;
	ret = time_rounds(bench, nr, times);
	if (ret)
		return ret;

	for (same = 0; same < ROUNDS && times[same] == times[0]; same++)
		;
	scnprintf(result, sizeof(result), "%llu %llu %llu %u %u %u\n",
		  times[0] - empty, times[ROUNDS / 2] - empty,
		  times[ROUNDS - 1] - empty, same, ROUNDS, nr);
	return 0;
}

static int parse(struct bench *bench, const char *text)
{
	unsigned int number;
	bool any;

	if (sscanf(text, "single %u %d", &number, &bench->nid) == 2) {
		if (number > MAX_ORDER)
			return -EINVAL;
		bench->order = number;
		bench->nr_pages = 1;
	} else if (sscanf(text, "bulk %u %d", &number, &bench->nid) == 2) {
		if (number < 2 || number > MAX_PAGES)
			return -EINVAL;
		bench->nr_pages = number;
	} else {
		return -EINVAL;
	}

	any = bench->nid == NUMA_NO_NODE;
	if (!any && (bench->nid < 0 || bench->nid >= nr_node_ids ||
		     !node_online(bench->nid)))
		return -EINVAL;

	if (bench->nr_pages > 1)
		bench->pair = any ? bulk_policy_pair : bulk_node_pair;
	else
		bench->pair = any ? policy_pair : node_pair;
	return 0;
}

static ssize_t page_bench_write(struct file *file, const char __user *from,
				size_t size, loff_t *ppos)
{
	struct bench *bench;
	char text[32] = "";
	int ret;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	/* Another CPU has other lists. */
	if (current->nr_cpus_allowed != 1)
		return -EINVAL;

	bench = kzalloc_obj(*bench);
	if (!bench)
		return -ENOMEM;

	mutex_lock(&bench_lock);
	result[0] = '\0';
	ret = parse(bench, text);
	if (!ret)
		ret = measure(bench);
	if (!ret && !free_blocks_pinned(bench->order))
		ret = -EAGAIN;
	mutex_unlock(&bench_lock);

	kfree(bench);
	return ret ?: size;
}

static ssize_t page_bench_read(struct file *file, char __user *to, size_t size,
			       loff_t *ppos)
{
	ssize_t ret;

	mutex_lock(&bench_lock);
	ret = simple_read_from_buffer(to, size, ppos, result, strlen(result));
	mutex_unlock(&bench_lock);
	return ret;
}

static const struct file_operations page_bench_fops = {
	.owner	= THIS_MODULE,
	.write	= page_bench_write,
	.read	= page_bench_read,
};

static struct dentry *page_bench_file;

static int __init page_bench_init(void)
{
	struct kprobe kp = {
		.symbol_name = "alloc_pages_bulk_mempolicy_noprof",
	};
	unsigned int order;
	int nid, ret;

	ret = register_kprobe(&kp);
	if (ret)
		return ret;
	bulk_mempolicy = (void *)kp.addr;
	unregister_kprobe(&kp);

	for_each_node_state(nid, N_MEMORY)
		for (order = 1; order <= MAX_ORDER; order++)
			pin_free_blocks(nid, order);

	page_bench_file = debugfs_create_file("page_bench", 0600, NULL, NULL,
					      &page_bench_fops);
	return 0;
}
module_init(page_bench_init);

static void __exit page_bench_exit(void)
{
	struct page *page, *next;

	debugfs_remove(page_bench_file);
	list_for_each_entry_safe(page, next, &kept, lru)
		__free_pages(page, compound_order(page));
}
module_exit(page_bench_exit);

MODULE_DESCRIPTION("Cost of an allocation and its freeing");
MODULE_LICENSE("GPL");
