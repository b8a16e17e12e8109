// SPDX-License-Identifier: GPL-2.0
/*
 * mpol_turns: allocate pages by the caller's memory policy, and tell the nodes.
 *
 * A process sees where its memory comes to lie, but between two of its pages the
 * kernel allocates for it too. Here nothing comes in between, so that a test can
 * foretell each node.
 */
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "mpol_turns.h"

/* What vmalloc() calls; nobody else needs it, so it is not exported. */
static unsigned long (*bulk_mempolicy)(gfp_t gfp, unsigned long nr_pages,
				       struct page **pages);

static DEFINE_MUTEX(lock);		/* of all that follows */
static struct mpol_turns_call *call;
static struct page *pages[MPOL_TURNS_STEPS];
static LIST_HEAD(hogged);

/*
 * Objects of 32 KiB, the most that a slab is made for: each of them is a slab, so none
 * is ever there in part. SLAB_NOLEAKTRACE keeps the CPUs from stocking objects, which
 * would be allocated at other times than they are asked for.
 */
#define SLAB_OBJECT	SZ_32K
static struct kmem_cache *slabs;
static LIST_HEAD(slab_objects);

static s16 pages_step(unsigned int order)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_NOWARN, order);
	s16 nid;

	if (!page)
		return -1;
	nid = page_to_nid(page);
	__free_pages(page, order);
	return nid;
}

static s16 bulk_step(unsigned int nr)
{
	unsigned long i, got;

	nr = min(nr, MPOL_TURNS_STEPS);
	memset(pages, 0, sizeof(pages));
	got = bulk_mempolicy(GFP_KERNEL, nr, pages);
	for (i = 0; i < got; i++) {
		call->nids[i] = page_to_nid(pages[i]);
		__free_page(pages[i]);
	}
	call->got = got;
	return got ? call->nids[0] : -1;
}

static s16 vmalloc_step(unsigned int nr)
{
	unsigned int i;
	char *area;

	nr = min(nr, MPOL_TURNS_STEPS);
	area = vmalloc(nr * PAGE_SIZE);
	if (!area)
		return -1;
	for (i = 0; i < nr; i++)
		call->nids[i] = page_to_nid(vmalloc_to_page(area + i * PAGE_SIZE));
	vfree(area);
	call->got = nr;
	return call->nids[0];
}

static s16 cache_step(void)
{
	struct page *page = __page_cache_alloc(GFP_KERNEL | __GFP_NOWARN);
	s16 nid;

	if (!page)
		return -1;
	nid = page_to_nid(page);
	put_page(page);
	return nid;
}

static s16 kmalloc_step(unsigned int order)
{
	void *object = kmalloc(PAGE_SIZE << order, GFP_KERNEL | __GFP_NOWARN);
	s16 nid;

	if (!object)
		return -1;
	nid = page_to_nid(virt_to_page(object));
	kfree(object);
	return nid;
}

static s16 slab_step(void)
{
	struct list_head *object = kmem_cache_alloc(slabs, GFP_KERNEL | __GFP_NOWARN);

	if (!object)
		return -1;
	list_add(object, &slab_objects);
	call->got = folio_nr_pages(virt_to_folio(object));
	return page_to_nid(virt_to_page(object));
}

static void release(void)
{
	struct list_head *object, *next_object;
	struct page *page, *next;

	list_for_each_safe(object, next_object, &slab_objects) {
		list_del(object);
		kmem_cache_free(slabs, object);
	}
	/* Or empty slabs would be used again. */
	kmem_cache_shrink(slabs);
	list_for_each_entry_safe(page, next, &hogged, lru) {
		list_del(&page->lru);
		__free_page(page);
	}
}

/* Without reclaim: what cannot be had now will not be had by the steps either. */
static s16 hog_step(unsigned int nid)
{
	struct page *page;

	if (nid >= MAX_NUMNODES || !node_state(nid, N_MEMORY))
		return -1;
	call->got = 0;
	while ((page = alloc_pages_node(nid, GFP_HIGHUSER_MOVABLE | __GFP_THISNODE |
					__GFP_NOWARN | __GFP_NORETRY, 0))) {
		list_add(&page->lru, &hogged);
		call->got++;
		cond_resched();
	}
	return nid;
}

static void run(void)
{
	u32 i;

	for (i = 0; i < call->nr; i++) {
		struct mpol_turns_step *step = &call->steps[i];

		switch (step->op) {
		case MPOL_TURNS_PAGES:
			step->nid = step->arg <= MAX_PAGE_ORDER ? pages_step(step->arg) : -1;
			break;
		case MPOL_TURNS_FAIL:
			step->nid = pages_step(MAX_PAGE_ORDER + 1);
			break;
		case MPOL_TURNS_BULK:
			step->nid = bulk_step(step->arg);
			break;
		case MPOL_TURNS_VMALLOC:
			step->nid = vmalloc_step(step->arg);
			break;
		case MPOL_TURNS_CACHE:
			step->nid = cache_step();
			break;
		case MPOL_TURNS_KMALLOC:
			step->nid = step->arg <= MAX_PAGE_ORDER ? kmalloc_step(step->arg) : -1;
			break;
		case MPOL_TURNS_SLAB:
			step->nid = slab_step();
			break;
		case MPOL_TURNS_HOG:
			step->nid = hog_step(step->arg);
			break;
		case MPOL_TURNS_RELEASE:
			release();
			step->nid = -1;
			break;
		default:
			step->nid = -1;
		}
	}
}

static long mpol_turns_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	long ret = -EFAULT;

	if (cmd != MPOL_TURNS_CALL)
		return -ENOTTY;

	mutex_lock(&lock);
	if (copy_from_user(call, user, sizeof(*call)))
		goto out;
	ret = -EINVAL;
	if (call->nr > MPOL_TURNS_STEPS)
		goto out;
	call->got = 0;
	run();
	ret = copy_to_user(user, call, sizeof(*call)) ? -EFAULT : 0;
out:
	mutex_unlock(&lock);
	return ret;
}

static const struct file_operations mpol_turns_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= mpol_turns_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};

static struct miscdevice mpol_turns_dev = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "mpol_turns",
	.fops	= &mpol_turns_fops,
	.mode	= 0600,
};

static int __init mpol_turns_init(void)
{
	struct kprobe find = { .symbol_name = "alloc_pages_bulk_mempolicy_noprof" };
	int ret;

	ret = register_kprobe(&find);
	if (ret)
		return ret;
	bulk_mempolicy = (void *)find.addr;
	unregister_kprobe(&find);

	call = vzalloc(sizeof(*call));
	if (!call)
		return -ENOMEM;
	ret = -ENOMEM;
	slabs = kmem_cache_create("mpol_turns", SLAB_OBJECT, 0,
				  SLAB_NO_MERGE | SLAB_NOLEAKTRACE, NULL);
	if (!slabs)
		goto err_call;
	ret = misc_register(&mpol_turns_dev);
	if (ret)
		goto err_slabs;
	return 0;

err_slabs:
	kmem_cache_destroy(slabs);
err_call:
	vfree(call);
	return ret;
}

static void __exit mpol_turns_exit(void)
{
	misc_deregister(&mpol_turns_dev);
	release();
	kmem_cache_destroy(slabs);
	vfree(call);
}

module_init(mpol_turns_init);
module_exit(mpol_turns_exit);
MODULE_DESCRIPTION("Allocates pages by memory policy, and tells their nodes");
MODULE_LICENSE("GPL");
