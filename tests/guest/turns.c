// SPDX-License-Identifier: GPL-2.0
/*
 * turns: hold each node from which MPOL_INTERLEAVE takes memory for a task
 * against a model. Started by the test numa-turns; the module mpol_turns
 * allocates.
 *
 * The model is deficit round robin as its inventors describe it, with a credit
 * for each node, and for a granularity of 1 what the kernel has always done. On
 * a kernel without the sysctl only the latter is tested.
 *
 * "turns pages" does without large allocations: where memory is in pieces, these
 * rightly come from another node than the one that was asked. "turns strict" is for
 * a kernel with slab_strict_numa, and looks at slabs alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/mempolicy.h>

#include "../modules/mpol_turns/mpol_turns.h"

#define SYSCTL		"/proc/sys/vm/numa_interleave_granularity"
#define DEFRAG_RATIO	"/sys/kernel/slab/mpol_turns/remote_node_defrag_ratio"
#define MAX_NODES	((int)(8 * sizeof(long)))

static struct {
	int nodes[MAX_NODES], nr;
	long credit[MAX_NODES];
	int cur;
	long granularity;
} model;

static struct mpol_turns_call call;
static int device, number, failed;

static void result(bool good, const char *format, ...)
{
	va_list args;

	printf("%sok %d ", good ? "" : "not ", ++number);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts("");
	failed += !good;
}

static void give_up(const char *what)
{
	printf("# %s: %s\n", what, strerror(errno));
	printf("Bail out! %s\n", what);
	exit(1);
}

static void set_granularity(long pages)
{
	FILE *f = fopen(SYSCTL, "w");

	if (!f && pages != 1)
		give_up(SYSCTL);
	if (f && (fprintf(f, "%ld\n", pages) < 0 || fclose(f)))
		give_up(SYSCTL);
}

/* All nodes with memory, or those that @mask leaves of them */
static void find_nodes(unsigned long mask)
{
	char list[256] = "", *at = list;
	FILE *f = fopen("/sys/devices/system/node/has_memory", "r");

	if (!f || !fgets(list, sizeof(list), f))
		give_up("nodes with memory");
	fclose(f);
	model.nr = 0;
	while (*at >= '0' && *at <= '9') {
		int first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		for (; first <= last && first < MAX_NODES; first++)
			if (mask & 1UL << first)
				model.nodes[model.nr++] = first;
		at += *at == ',';
	}
}

static void set_policy(void)
{
	unsigned long mask = 0;
	int i;

	for (i = 0; i < model.nr; i++)
		mask |= 1UL << model.nodes[i];
	if (syscall(__NR_set_mempolicy, MPOL_INTERLEAVE, &mask, MAX_NODES + 1))
		give_up("set_mempolicy");
}

static void default_policy(void)
{
	if (syscall(__NR_set_mempolicy, MPOL_DEFAULT, NULL, 0))
		give_up("set_mempolicy");
}

/* The node that the kernel says it takes from next */
static int kernel_next(void)
{
	int node = -1;

	if (syscall(__NR_get_mempolicy, &node, NULL, 0, NULL, MPOL_F_NODE))
		return -1;
	return node;
}

/*
 * A new policy and a new model; nothing may be allocated from here on. With a
 * granularity the first node may be any.
 */
static void begin(long granularity)
{
	int i;

	set_granularity(granularity);
	memset(model.credit, 0, sizeof(model.credit));
	model.cur = model.nr - 1;
	model.granularity = granularity;
	set_policy();
	for (i = 0; granularity > 1 && i < model.nr; i++)
		if (model.nodes[i] == kernel_next())
			model.cur = (i + model.nr - 1) % model.nr;
}

/* Index of the node that is asked next */
static int model_next(void)
{
	int i;

	if (model.granularity > 1 && model.credit[model.cur] > 0)
		return model.cur;
	i = (model.cur + 1) % model.nr;
	while (model.granularity > 1 && model.credit[i] + model.granularity <= 0) {
		model.credit[i] += model.granularity;
		model.cur = i;
		i = (i + 1) % model.nr;
	}
	return i;
}

static int model_take(long pages)
{
	int i = model_next();

	if (model.granularity > 1 && model.credit[model.cur] <= 0)
		model.credit[i] += model.granularity;
	if (model.granularity > 1)
		model.credit[i] -= pages;
	model.cur = i;
	return model.nodes[i];
}

static int model_fail(void)
{
	if (model.granularity == 1)
		model.cur = model_next();
	return -1;
}

static void run(void)
{
	if (ioctl(device, MPOL_TURNS_CALL, &call))
		give_up("mpol_turns");
}

static unsigned int seed;

/* The same in every run, whatever the C library */
static unsigned int rnd(unsigned int limit)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % limit;
}

enum pattern { PAGES, MIXED, ALTERNATE, FAILING, CACHE, KMALLOC };
static const char * const patterns[] = {
	"pages", "orders 0, 3 and 9 at random", "orders 0 and 9 in turn", "some fail",
	"page cache", "kmalloc of orders 2, 3 and 9 at random",
};

static void test_pattern(long granularity, enum pattern pattern)
{
	static const unsigned int orders[] = { 0, 3, 9 };
	long pages[MAX_NODES] = {}, least, most, spread = 0;
	int round, wrong = 0;
	unsigned int i, j;

	seed = 1;
	begin(granularity);
	for (round = 0; round < 4; round++) {
		call.nr = MPOL_TURNS_STEPS;
		for (i = 0; i < call.nr; i++) {
			struct mpol_turns_step *step = &call.steps[i];

			step->op = MPOL_TURNS_PAGES;
			step->arg = 0;
			if (pattern == MIXED)
				step->arg = orders[rnd(3)];
			else if (pattern == ALTERNATE)
				step->arg = i % 2 ? 9 : 0;
			else if (pattern == FAILING && rnd(3) == 0)
				step->op = MPOL_TURNS_FAIL;
			else if (pattern == CACHE)
				step->op = MPOL_TURNS_CACHE;
			else if (pattern == KMALLOC) {
				step->op = MPOL_TURNS_KMALLOC;
				step->arg = rnd(3) ? 2 + rnd(2) : 9;
			}
		}
		run();
		for (i = 0; i < call.nr; i++) {
			struct mpol_turns_step *step = &call.steps[i];
			int want = step->op == MPOL_TURNS_FAIL ? model_fail() :
							model_take(1L << step->arg);

			if (step->nid != want && wrong++ < 3)
				printf("# step %u: node %d, the model says %d\n",
				       i, step->nid, want);
			if (step->nid >= 0 && step->nid < MAX_NODES)
				pages[step->nid] += 1L << step->arg;
			least = most = pages[model.nodes[0]];
			for (j = 1; j < (unsigned int)model.nr; j++) {
				long n = pages[model.nodes[j]];

				least = n < least ? n : least;
				most = n > most ? n : most;
			}
			spread = most - least > spread ? most - least : spread;
		}
		if (kernel_next() != model.nodes[model_next()] && wrong++ < 3)
			printf("# MPOL_F_NODE: %d, the model says %d\n",
			       kernel_next(), model.nodes[model_next()]);
	}
	default_policy();
	result(!wrong, "granularity %ld: %s", granularity, patterns[pattern]);
	if (granularity > 1)
		result(spread <= granularity + 512, "granularity %ld: %s: balanced to a chunk and the largest",
		       granularity, patterns[pattern]);
	printf("# nodes differ by %ld pages at most\n", spread);
}

static void test_bulk(long granularity)
{
	static const unsigned int sizes[] = { 1, 3, 67, 100, 7, 100, 100, 512, 2, 1000 };
	unsigned int s, i, wrong = 0;

	begin(granularity);
	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		unsigned int nr = sizes[s];
		int first = model.cur;

		call.nr = 1;
		call.steps[0].op = MPOL_TURNS_BULK;
		call.steps[0].arg = nr;
		run();
		if (call.got != nr) {
			wrong++;
			continue;
		}
		for (i = 0; i < nr; i++) {
			int want;

			if (granularity > 1) {
				want = model_take(1);
			} else {
				/* Each node a share; the first few one page more. */
				unsigned int share = nr / model.nr, more = nr % model.nr;
				unsigned int at = i < more * (share + 1) ? i / (share + 1) :
					more + (i - more * (share + 1)) / share;

				want = model.nodes[(first + 1 + at) % model.nr];
			}
			if (call.nids[i] != want && wrong++ < 3)
				printf("# bulk of %u, page %u: node %d, the model says %d\n",
				       nr, i, call.nids[i], want);
		}
	}
	default_policy();
	result(!wrong, "granularity %ld: bulk", granularity);
}

/* kmemleak allocates an object of its own for each of kmalloc(), by the same policy. */
static bool kmemleak(void)
{
	return !access("/sys/kernel/debug/kmemleak", F_OK);
}

static void set_defrag_ratio(int percent)
{
	FILE *f = fopen(DEFRAG_RATIO, "w");

	if (!f || fprintf(f, "%d\n", percent) < 0 || fclose(f))
		give_up(DEFRAG_RATIO);
}

/*
 * Slabs of one object each. With slab_strict_numa the object counts as a page; else
 * the slab counts, and to look for one with room does not. Without a granularity a
 * look is a turn, as ever, and comes at random: have none.
 */
static void test_slabs(long granularity, bool strict)
{
	unsigned int i, wrong = 0;

	set_defrag_ratio(granularity > 1 ? 100 : 0);
	begin(granularity);
	call.nr = 600;
	for (i = 0; i < call.nr; i++)
		call.steps[i].op = MPOL_TURNS_SLAB;
	run();
	default_policy();
	for (i = 0; i < call.nr; i++) {
		int want = model_take(strict ? 1 : call.got);

		if (call.steps[i].nid != want && wrong++ < 3)
			printf("# slab %u: node %d, the model says %d\n",
			       i, call.steps[i].nid, want);
	}
	printf("# slabs of %u pages\n", call.got);
	call.nr = 1;
	call.steps[0].op = MPOL_TURNS_RELEASE;
	run();
	result(!wrong, "granularity %ld: slabs%s", granularity, strict ? ", strict" : "");
}

/*
 * vmalloc() takes pages of the largest order that it can get, and splits them; the
 * kernel allocates a little before and in between. So only the balance is known.
 */
static void test_vmalloc(long granularity)
{
	static const unsigned int sizes[] = { MPOL_TURNS_STEPS, 100, 1, 777, 3000, 50 };
	long pages[MAX_NODES] = {}, least, most, largest = 1024;
	unsigned int s, i, missing = 0;

	begin(granularity);
	for (s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		call.nr = 1;
		call.steps[0].op = MPOL_TURNS_VMALLOC;
		call.steps[0].arg = sizes[s];
		run();
		missing += call.got != sizes[s];
		for (i = 0; i < call.got; i++)
			pages[call.nids[i]]++;
	}
	default_policy();
	least = most = pages[model.nodes[0]];
	for (i = 1; i < (unsigned int)model.nr; i++) {
		long n = pages[model.nodes[i]];

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	printf("# nodes differ by %ld pages\n", most - least);
	result(!missing && most - least <= granularity + largest + 100,
	       "granularity %ld: vmalloc", granularity);
}

/* The pages of a node's turns that others gave; -1: not as the model has it */
static int turns_of_full_node(long granularity, int full)
{
	unsigned int i, j, want;
	int elsewhere = 0;

	begin(granularity);
	/* A chunk of each node, and one more */
	for (i = 0; i < 32 * (unsigned int)(model.nr + 1); i++) {
		call.nr = granularity > 32 ? granularity / 32 : 1;
		for (j = 0; j < call.nr; j++) {
			call.steps[j].op = MPOL_TURNS_PAGES;
			call.steps[j].arg = 0;
		}
		run();
		for (j = 0; j < call.nr; j++) {
			want = model_take(1);
			if (call.steps[j].nid < 0)
				return -1;
			if ((int)want == full)
				elsewhere += call.steps[j].nid != full;
		}
		if (kernel_next() != model.nodes[model_next()])
			return -1;
	}
	return elsewhere;
}

/*
 * A node without free memory: others serve, and its turn passes all the same. When
 * kswapd has found some pages there meanwhile, these are taken as well, and again.
 */
static void test_full_node(long granularity)
{
	int full = model.nodes[model.nr - 1], elsewhere = 0, try;

	for (try = 0; try < 10 && !elsewhere; try++) {
		call.nr = 1;
		call.steps[0].op = MPOL_TURNS_HOG;
		call.steps[0].arg = full;
		run();
		printf("# node %d had %u free pages\n", full, call.got);
		elsewhere = turns_of_full_node(granularity, full);
	}
	default_policy();
	call.nr = 1;
	call.steps[0].op = MPOL_TURNS_RELEASE;
	run();
	printf("# %d pages of its turns came from elsewhere\n", elsewhere);
	result(elsewhere > 0, "granularity %ld: a full node's turn passes", granularity);
}

/* Children begin on any node, with a granularity; the parent goes on with its own. */
static void test_fork(long granularity)
{
	int status = -1, before, i, wrong = 0;
	unsigned long seen = 0, all = 0;
	pid_t pid;

	for (i = 0; i < model.nr; i++)
		all |= 1UL << model.nodes[i];
	begin(granularity);
	before = kernel_next();
	call.nr = 1;
	call.steps[0].op = MPOL_TURNS_PAGES;
	call.steps[0].arg = 0;
	run();
	for (i = 0; i < 100; i++) {
		pid = fork();
		if (!pid)
			_exit(kernel_next());
		waitpid(pid, &status, 0);
		if (WIFEXITED(status))
			seen |= 1UL << WEXITSTATUS(status);
		else
			wrong++;
		/* What a fork allocates does not fill such a chunk. */
		if (granularity == 262144)
			wrong += kernel_next() != before;
	}
	default_policy();
	printf("# children began on nodes 0x%lx of 0x%lx\n", seen, all);
	result(!wrong && seen == all, "granularity %ld: fork", granularity);
}

/* So does a new policy; without a granularity it begins with the first node. */
static void test_new_policy(long granularity)
{
	unsigned long seen = 0, all = 0;
	int i, j;

	for (i = 0; i < model.nr; i++)
		all |= 1UL << model.nodes[i];
	for (i = 0; i < 100; i++) {
		begin(granularity);
		seen |= 1UL << kernel_next();
		call.nr = 3;
		for (j = 0; j < 3; j++) {
			call.steps[j].op = MPOL_TURNS_PAGES;
			call.steps[j].arg = j == 2 ? 9 : 0;
		}
		run();
	}
	default_policy();
	printf("# policies began on nodes 0x%lx of 0x%lx\n", seen, all);
	result(seen == (granularity > 1 ? all : 1UL << model.nodes[0]),
	       "granularity %ld: a new policy", granularity);
}

int main(int argc, char **argv)
{
	bool only_pages = argc == 2 && !strcmp(argv[1], "pages");
	bool strict = argc == 2 && !strcmp(argv[1], "strict");
	static const long granularities[] = { 1, 2, 8, 512, 4096, 262144 };
	long most = (1L << 30) / sysconf(_SC_PAGESIZE);
	unsigned int i;
	bool has = !access(SYSCTL, F_OK);

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("TAP version 13");
	find_nodes(~0UL);
	if (model.nr < 2) {
		puts("1..0 # SKIP one node with memory");
		return 0;
	}
	device = open("/dev/mpol_turns", O_RDWR);
	if (device < 0)
		give_up("/dev/mpol_turns");

	for (i = 0; i < sizeof(granularities) / sizeof(*granularities); i++) {
		long granularity = granularities[i];
		enum pattern pattern;

		if (granularity > most || (granularity > 1 && !has))
			continue;
		if (strict) {
			test_slabs(granularity, true);
			continue;
		}
		test_pattern(granularity, PAGES);
		test_bulk(granularity);
		if (only_pages)
			continue;
		for (pattern = MIXED; pattern < KMALLOC; pattern++)
			test_pattern(granularity, pattern);
		if (kmemleak())
			printf("ok %d granularity %ld: %s # SKIP kmemleak takes turns, too\n",
			       ++number, granularity, patterns[KMALLOC]);
		else
			test_pattern(granularity, KMALLOC);
		test_slabs(granularity, false);
		if (granularity > 1 && granularity <= 512)
			test_vmalloc(granularity);
		if (granularity > 1 && granularity <= 512)
			test_full_node(granularity);
		if (granularity >= 4096)
			test_fork(granularity);
		test_new_policy(granularity);
		if (model.nr > 2) {
			/* Every other node */
			find_nodes(0xaaaaaaaaaaaaaaaaUL | 1);
			test_pattern(granularity, MIXED);
			find_nodes(~0UL);
		}
	}
	set_granularity(1);
	printf("1..%d\n", number);
	return !!failed;
}
