// SPDX-License-Identifier: GPL-2.0
/*
 * numa_exact: allocate known numbers of pages, and see every other allocation.
 *
 * Counters that many CPUs bump while others read them can be off by one in a
 * million, and the kernel always allocates a little for itself. So the test
 * must know both: what it allocates, in the context, policy and cpuset of the
 * process that asks (numa_exact_call), and what anybody allocates (the oracle).
 *
 * The oracle counts on its own, per CPU, one for each successful
 *   - return of the page allocator, at the tracepoint mm_page_alloc;
 *   - page that the bulk allocator took by itself, at a return probe. For a
 *     single page it calls the page allocator, which the tracepoint sees.
 * Nothing else reaches zone_statistics(), except pages that direct compaction
 * captures. They are traced, but not counted: the test must see to it that no
 * memory runs short.
 */
#include <linux/compat.h>
#include <linux/cpuset.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/mempolicy.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>

#include "numa_exact.h"

static DEFINE_PER_CPU(struct numa_exact_oracle, oracle);

/* The call that runs on a CPU, and what was seen in its context. */
struct running {
	struct task_struct *task;
	u64 seen[NUMA_EXACT_NODES];
};

static DEFINE_PER_CPU(struct running *, running);

/* Only the task itself replaces its policy. */
static bool interleaver(const struct task_struct *task)
{
	const struct mempolicy *policy = task->mempolicy;

	return policy && (policy->mode == MPOL_INTERLEAVE ||
			  policy->mode == MPOL_WEIGHTED_INTERLEAVE);
}

static void see(struct page *page)
{
	int nid = page_to_nid(page);
	struct running *run;

	/* Safe against interrupts: this_cpu_inc() is, on every architecture. */
	this_cpu_inc(oracle.seen[nid]);
	if (!in_task())
		return;

	if (interleaver(current))
		this_cpu_inc(oracle.interleaver[nid]);
	run = this_cpu_read(running);
	if (run && run->task == current)
		run->seen[nid]++;
}

static void probe_page_alloc(void *data, struct page *page, unsigned int order,
			     gfp_t gfp, int migratetype)
{
	if (page)
		see(page);
}

struct bulk {
	struct page **pages;
};

static int bulk_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct bulk *bulk = (struct bulk *)ri->data;
	int nr_pages = regs_get_kernel_argument(regs, 3);

	bulk->pages = (struct page **)regs_get_kernel_argument(regs, 4);
	/* No page, or one, which the page allocator gives: not ours to count. */
	if (nr_pages < 2)
		return 1;
	/* Filled in part: the return value does not tell how many are new. */
	if (bulk->pages[0]) {
		this_cpu_inc(oracle.lost);
		return 1;
	}
	return 0;
}

static int bulk_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct bulk *bulk = (struct bulk *)ri->data;
	unsigned long i, nr = regs_return_value(regs);

	/* One of many comes from the page allocator. */
	if (nr >= 2)
		for (i = 0; i < nr; i++)
			see(bulk->pages[i]);
	return 0;
}

static struct kretprobe bulk_probe = {
	.kp.symbol_name	= "alloc_pages_bulk_noprof",
	.entry_handler	= bulk_entry,
	.handler	= bulk_return,
	.data_size	= sizeof(struct bulk),
	.maxactive	= 256,
};

/* What vmalloc() calls; nobody else needs it, so it is not exported. */
static unsigned long (*bulk_mempolicy)(gfp_t gfp, unsigned long nr_pages,
				       struct page **pages);

static unsigned long fill(const struct numa_exact_call *call,
			  struct page **pages, unsigned long nr)
{
	gfp_t gfp = GFP_KERNEL | __GFP_COMP | __GFP_NOWARN;
	nodemask_t any = node_states[N_MEMORY];
	struct folio *folio;
	unsigned long i;

	memset(pages, 0, nr * sizeof(*pages));
	switch (call->op) {
	case NUMA_EXACT_BULK_NODE:
		return alloc_pages_bulk_node(GFP_KERNEL | __GFP_THISNODE,
					     call->nid, nr, pages);
	case NUMA_EXACT_BULK_TASK:
		return bulk_mempolicy(GFP_KERNEL, nr, pages);
	}

	for (i = 0; i < nr; i++) {
		switch (call->op) {
		case NUMA_EXACT_NODE:
			pages[i] = alloc_pages_node(call->nid,
						    gfp | __GFP_THISNODE,
						    call->order);
			break;
		case NUMA_EXACT_TASK:
			pages[i] = alloc_pages(gfp, call->order);
			break;
		case NUMA_EXACT_CPUSET:
			/*
			 * Without a node mask, the cpuset's would be taken, and
			 * the preferred zone would be one that it allows.
			 */
			folio = __folio_alloc(gfp, call->order, call->nid,
					      &any);
			pages[i] = folio ? folio_page(folio, 0) : NULL;
			break;
		}
		if (!pages[i])
			break;
	}
	return i;
}

static int allocate(struct numa_exact_call *call)
{
	unsigned long i, nr, want;
	struct page **pages;
	u64 left;
	int ret = 0;

	pages = kmalloc_array(call->batch, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;

	for (left = call->count; left && !ret; left -= nr) {
		want = min_t(u64, left, call->batch);
		nr = fill(call, pages, want);
		for (i = 0; i < nr; i++) {
			call->got[page_to_nid(pages[i])]++;
			put_page(pages[i]);
		}
		/* The bulk allocator may give less than it was asked for. */
		if (!nr)
			ret = -ENOMEM;
		else if (signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}

	kfree(pages);
	return ret;
}

static int do_call(struct numa_exact_call *call)
{
	struct running *run;
	int nid, ret;

	if (call->op > NUMA_EXACT_BULK_TASK || call->nid >= nr_node_ids ||
	    !node_online(call->nid) || call->order > 3 || !call->batch ||
	    call->batch > NUMA_EXACT_BATCH)
		return -EINVAL;
	/* `running' is found through the CPU. */
	if (current->nr_cpus_allowed != 1)
		return -EINVAL;

	run = kzalloc_obj(*run);
	if (!run)
		return -ENOMEM;
	run->task = current;
	memset(call->got, 0, sizeof(call->got));

	if (this_cpu_cmpxchg(running, NULL, run)) {
		kfree(run);
		return -EBUSY;
	}
	ret = allocate(call);
	this_cpu_write(running, NULL);

	for (nid = 0; nid < NUMA_EXACT_NODES; nid++)
		call->extra[nid] = run->seen[nid] - call->got[nid];
	kfree(run);
	return ret;
}

static void sum_oracle(struct numa_exact_oracle *sum)
{
	int cpu, nid;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		struct numa_exact_oracle *o = per_cpu_ptr(&oracle, cpu);

		for (nid = 0; nid < NUMA_EXACT_NODES; nid++) {
			sum->seen[nid] += READ_ONCE(o->seen[nid]);
			sum->interleaver[nid] += READ_ONCE(o->interleaver[nid]);
		}
		sum->lost += READ_ONCE(o->lost);
	}
	sum->lost += bulk_probe.nmissed + bulk_probe.kp.nmissed;
}

static long numa_exact_ioctl(struct file *file, unsigned int cmd,
			     unsigned long arg)
{
	void __user *user = (void __user *)arg;
	long ret = 0;

	switch (cmd) {
	case NUMA_EXACT_CALL: {
		struct numa_exact_call *call = memdup_user(user, sizeof(*call));

		if (IS_ERR(call))
			return PTR_ERR(call);
		ret = do_call(call);
		if (!ret && copy_to_user(user, call, sizeof(*call)))
			ret = -EFAULT;
		kfree(call);
		return ret;
	}
	case NUMA_EXACT_ORACLE: {
		struct numa_exact_oracle *sum = kmalloc_obj(*sum);

		if (!sum)
			return -ENOMEM;
		sum_oracle(sum);
		if (copy_to_user(user, sum, sizeof(*sum)))
			ret = -EFAULT;
		kfree(sum);
		return ret;
	}
	case NUMA_EXACT_SETTLE:
		/*
		 * A task can be preempted, and a CPU interrupted, after an
		 * allocation is counted and before the oracle sees it. Wait
		 * until each task has slept or left the kernel, and until all
		 * interrupt handlers have ended.
		 */
		synchronize_rcu_tasks();
		synchronize_rcu();
		return 0;
	}
	return -ENOTTY;
}

static const struct file_operations numa_exact_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= numa_exact_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice numa_exact_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "numa_exact",
	.fops	= &numa_exact_fops,
	.mode	= 0600,
};

static struct tracepoint *page_alloc_tp;

/* The tracepoint is not exported, but all of them can be walked. */
static void find_tracepoint(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "mm_page_alloc"))
		page_alloc_tp = tp;
}

static void *find_symbol(const char *name)
{
	struct kprobe kp = { .symbol_name = name };
	void *addr;

	if (register_kprobe(&kp))
		return NULL;
	addr = kp.addr;
	unregister_kprobe(&kp);
	return addr;
}

static int __init numa_exact_init(void)
{
	int ret;

	BUILD_BUG_ON(MAX_NUMNODES > NUMA_EXACT_NODES);

	for_each_kernel_tracepoint(find_tracepoint, NULL);
	bulk_mempolicy = find_symbol("alloc_pages_bulk_mempolicy_noprof");
	if (!page_alloc_tp || !bulk_mempolicy)
		return -ENOENT;

	ret = register_kretprobe(&bulk_probe);
	if (ret)
		return ret;
	ret = tracepoint_probe_register(page_alloc_tp, probe_page_alloc, NULL);
	if (ret)
		goto no_tracepoint;
	ret = misc_register(&numa_exact_misc);
	if (ret)
		goto no_device;
	return 0;

no_device:
	tracepoint_probe_unregister(page_alloc_tp, probe_page_alloc, NULL);
	tracepoint_synchronize_unregister();
no_tracepoint:
	unregister_kretprobe(&bulk_probe);
	return ret;
}
module_init(numa_exact_init);

static void __exit numa_exact_exit(void)
{
	misc_deregister(&numa_exact_misc);
	tracepoint_probe_unregister(page_alloc_tp, probe_page_alloc, NULL);
	tracepoint_synchronize_unregister();
	unregister_kretprobe(&bulk_probe);
}
module_exit(numa_exact_exit);

MODULE_DESCRIPTION("Known page allocations and an oracle for the NUMA counters");
MODULE_LICENSE("GPL");
