// SPDX-License-Identifier: GPL-2.0
/*
 * key_flip: switch static keys that nothing else knows, while all CPUs run the
 * code that they patch.
 *
 * Whether a kernel that dies of a patched-out int3 ("Oops: int3") has a fault of
 * its own, or runs on a machine that executes bytes which are no longer there,
 * is told by keys whose only user is this file.
 *
 * Loading does the work: it returns when all flips are done. The last line, also
 * when the kernel dies of it, is "key_flip: N flips, N calls, N wrong".
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/jump_label.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/panic_notifier.h>
#include <linux/prandom.h>
#include <linux/sched/signal.h>

static unsigned int flips = 1000;
module_param(flips, uint, 0444);
MODULE_PARM_DESC(flips, "how often to switch a key");

static unsigned int seconds;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "stop after so long (0: never)");

static unsigned int keys = 64;
module_param(keys, uint, 0444);
MODULE_PARM_DESC(keys, "how many of the 64 keys to use");

static unsigned int pause_us;
module_param(pause_us, uint, 0444);
MODULE_PARM_DESC(pause_us, "microseconds between two flips");

static unsigned int spin;
module_param(spin, uint, 0444);
MODULE_PARM_DESC(spin, "iterations that a CPU idles between two calls, at most");

/* As many as vm_numa_stat_key has in the base. */
#define SITES	4

/* Functions, so that each place has a block of QEMU's translator of its own. */
#define SITE(n, m)							\
static noinline int site_##n##_##m(void)				\
{									\
	return static_branch_unlikely(&key_##n) ? 1 : 0;		\
}
#define KEY(n)								\
static DEFINE_STATIC_KEY_FALSE(key_##n);				\
SITE(n, 0) SITE(n, 1) SITE(n, 2) SITE(n, 3)
#define KEYS4(n)	KEY(n##0) KEY(n##1) KEY(n##2) KEY(n##3)
#define KEYS16(n)	KEYS4(n##0) KEYS4(n##1) KEYS4(n##2) KEYS4(n##3)
KEYS16(0) KEYS16(1) KEYS16(2) KEYS16(3)

#define ENTRY(n)							\
{									\
	&key_##n, { site_##n##_0, site_##n##_1, site_##n##_2, site_##n##_3 } \
},
#define ENTRIES4(n)	ENTRY(n##0) ENTRY(n##1) ENTRY(n##2) ENTRY(n##3)
#define ENTRIES16(n)	ENTRIES4(n##0) ENTRIES4(n##1) ENTRIES4(n##2) ENTRIES4(n##3)
static const struct {
	struct static_key_false *key;
	int (*site[SITES])(void);
} table[] = {
	ENTRIES16(0) ENTRIES16(1) ENTRIES16(2) ENTRIES16(3)
};

static DEFINE_PER_CPU(struct task_struct *, runner);
static DEFINE_PER_CPU(unsigned long, calls);
static unsigned int flip, wrong;

static int run(void *unused)
{
	struct rnd_state rnd;
	unsigned long n = 0;
	unsigned int i;

	prandom_seed_state(&rnd, smp_processor_id());
	while (!kthread_should_stop()) {
		i = prandom_u32_state(&rnd);
		n += table[i / SITES % keys].site[i % SITES]() + 1;
		if (spin)
			for (i = prandom_u32_state(&rnd) % spin; i; i--)
				cpu_relax();
		if (!(n & 63))
			cond_resched();
		__this_cpu_inc(calls);
	}
	return 0;
}

static void stop_runners(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct task_struct *task = per_cpu(runner, cpu);

		if (task)
			kthread_stop(task);
	}
}

static int start_runners(void)
{
	struct task_struct *task;
	int cpu;

	for_each_online_cpu(cpu) {
		task = kthread_run_on_cpu(run, NULL, cpu, "key_flip/%u");
		if (IS_ERR(task))
			return PTR_ERR(task);
		per_cpu(runner, cpu) = task;
	}
	return 0;
}

/* The next key gets its other value. True if that is then what it does. */
static bool flip_one(void)
{
	unsigned int i = flip % keys, m;
	bool right = true;
	int on = !(flip / keys % 2);

	if (on)
		static_branch_enable(table[i].key);
	else
		static_branch_disable(table[i].key);
	for (m = 0; m < SITES; m++)
		right &= table[i].site[m]() == on;
	return right;
}

static void report(void)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(calls, cpu);
	pr_info("key_flip: %u flips, %lu calls, %u wrong\n", flip, sum, wrong);
}

static int at_panic(struct notifier_block *nb, unsigned long event, void *unused)
{
	report();
	return NOTIFY_DONE;
}

static struct notifier_block panic_block = { .notifier_call = at_panic };

static int __init key_flip_init(void)
{
	unsigned long end = jiffies + seconds * HZ;
	int ret;

	if (!keys || keys > ARRAY_SIZE(table))
		return -EINVAL;

	atomic_notifier_chain_register(&panic_notifier_list, &panic_block);
	ret = start_runners();
	for (; !ret && flip < flips; flip++) {
		if (signal_pending(current) || (seconds && time_after(jiffies, end)))
			break;
		wrong += !flip_one();
		if (pause_us)
			fsleep(pause_us);
	}
	stop_runners();
	atomic_notifier_chain_unregister(&panic_notifier_list, &panic_block);
	report();
	return ret;
}
module_init(key_flip_init);

static void __exit key_flip_exit(void)
{
}
module_exit(key_flip_exit);

MODULE_DESCRIPTION("Switch a static key under load");
MODULE_LICENSE("GPL");
