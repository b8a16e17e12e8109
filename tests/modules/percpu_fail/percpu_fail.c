// SPDX-License-Identifier: GPL-2.0
/*
 * percpu_fail: let one task's nth allocation of per-CPU memory fail.
 *
 * The kernel's fault injection knows slabs and pages. The per-CPU allocator takes
 * either only when it grows, so its failures hardly ever come about that way.
 *
 * Write a task's id to the parameter "task", then n to "nth". Each allocation of
 * that task takes one from nth, and the one that makes it 0 returns NULL.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

static int task;
module_param(task, int, 0644);

static unsigned int nth;
module_param(nth, uint, 0644);

/* At the function's first instruction: the return address is on top of the stack. */
static int at_entry(struct kprobe *probe, struct pt_regs *regs)
{
	if (current->pid != task || !nth || --nth)
		return 0;
	regs_set_return_value(regs, 0);
	instruction_pointer_set(regs, *(unsigned long *)kernel_stack_pointer(regs));
	regs->sp += sizeof(unsigned long);
	return 1;
}

/* Keeps the probe from being made a jump, which would not look at what we return. */
static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe = {
	.symbol_name	= "pcpu_alloc_noprof",
	.pre_handler	= at_entry,
	.post_handler	= after,
};

static int __init percpu_fail_init(void)
{
	return register_kprobe(&probe);
}

static void __exit percpu_fail_exit(void)
{
	unregister_kprobe(&probe);
}

module_init(percpu_fail_init);
module_exit(percpu_fail_exit);
MODULE_DESCRIPTION("Failures of the per-CPU allocator");
MODULE_LICENSE("GPL");
